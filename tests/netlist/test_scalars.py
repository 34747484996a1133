import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.netlist.yaml_text import leading_integer, parse_address, parse_bool, parse_float, parse_int


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("7", 7), ("+2", 2), ("-3", -3), ("2 ", 2), ("010", 8), ("00", 0), ("0x1F", 31), ("0X2", 2),
        ("-0x10", -16), ("2147483647", 2147483647), ("-2147483648", -2147483648),
    ],
)  # fmt: skip
def test_integers(text: str, value: int) -> None:
    assert parse_int(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 2",
        "08",
        "0b10",
        "1_0",
        "2.0",
        "1e3",
        "0x",
        "two",
        "--1",
        "2 3",
        "2147483648",
        "0x80000000",
        "9" * 5000,
        "٣",
    ],
)
def test_not_integers(text: str) -> None:
    assert parse_int(text) is None


@pytest.mark.parametrize(
    ("text", "value"), [("0xf9000000", 0xF9000000), ("4294967295", 4294967295), ("0", 0), ("+1", 1)]
)
def test_addresses_are_unsigned(text: str, value: int) -> None:
    assert parse_address(text) == value


@pytest.mark.parametrize("text", ["-1", "-0", "4294967296", "x", ""])
def test_not_addresses(text: str) -> None:
    assert parse_address(text) is None


@given(st.integers())
def test_every_decimal_integer_is_read_or_out_of_range(value: int) -> None:
    assert parse_int(str(value)) == (value if -(2**31) <= value < 2**31 else None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("True", True),
        ("YES", True),
        ("on", True),
        ("y", True),
        ("n", False),
        ("No", False),
        ("FALSE", False),
    ],
)
def test_booleans(text: str, value: bool) -> None:
    assert parse_bool(text) is value


@pytest.mark.parametrize("text", ["0", "1", "fAlse", "tRUE", "", "t", "none"])
def test_not_booleans(text: str) -> None:
    assert parse_bool(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-3", 1e-3), ("6.000000e+00", 6.0), (".5", 0.5), ("5.", 5.0), ("-2", -2.0), ("+.inf", math.inf),
     ("-.INF", -math.inf), ("1e-60", 1e-60), ("3.4028235e38", 3.4028235e38)],
)  # fmt: skip
def test_numbers(text: str, value: float) -> None:
    assert parse_float(text) == value


def test_nan_is_a_number() -> None:
    assert math.isnan(parse_float(".NaN") or 0)


@pytest.mark.parametrize("text", ["", "0x10", "1.0f", "1_0", "inf", "nan", "1e", "1e39", "-3.5e38", "1,5", " 1"])
def test_not_numbers(text: str) -> None:
    assert parse_float(text) is None


@pytest.mark.parametrize(("text", "value"), [("2", 2), ("0_foo", 0), ("-1x", -1), (" 3", 3), ("x", None), ("", None)])
def test_leading_integer(text: str, value: int | None) -> None:
    assert leading_integer(text) == value
