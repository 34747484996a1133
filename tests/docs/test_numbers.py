"""The pictures and the table of docs/reference/numbers-on-the-chip.md are what the arithmetic gives."""

from math import exp, tanh

import pytest

from draw_numerics import FOLDER, PICTURES, function_error, gelu, matmul_error, matmul_table
from shared_files import ROOT

PAGE = ROOT / "docs" / "reference" / "numbers-on-the-chip.md"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_the_script_draws(name):
    assert (FOLDER / name).read_text() == PICTURES[name](), "run tools/draw_numerics.py"
    assert f"(../pictures/{name})" in PAGE.read_text()


def test_the_table_of_matmul_errors():
    assert matmul_table() in PAGE.read_text()


@pytest.mark.parametrize(
    ("fidelity", "dst", "tf32", "expected"),
    [
        ("LoFi", "fp32", False, 0.22),
        ("LoFi", "fp32", True, 0.22),
        ("HiFi2_B", "fp32", False, 0.20),
        ("HiFi3", "fp32", False, 0.0026),
        ("HiFi4", "fp32", False, 0.0026),
        ("HiFi4", "fp32", True, 0.0045),
        ("HiFi4", "fp16", False, 0.0084),
        ("HiFi4", "bf16", False, 0.040),
    ],
)
def test_errors_are_of_the_expected_size(fidelity, dst, tf32, expected):
    """DEVICE_NUMERICS 6.4, for normal data at K = 64."""
    assert 8 * matmul_error(64, fidelity, dst, tf32) == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize(
    ("name", "exact", "ends", "most"), [("gelu", gelu, (-6, 6), 0.023), ("tanh", tanh, (-4, 4), 0.145)]
)
def test_absolute_errors_of_functions(name, exact, ends, most):
    """DEVICE_NUMERICS 3.3."""
    assert max(map(abs, function_error(name, exact, ends)[1])) == pytest.approx(most, rel=0.05)


@pytest.mark.parametrize(
    ("ends", "approximate", "most"), [((-1, 1), False, 0.013), ((4, 8), False, 0.09), ((-80, 80), True, 0.031)]
)
def test_relative_errors_of_exp(ends, approximate, most):
    """DEVICE_NUMERICS 3.3."""
    x, off = function_error("exp", exp, ends, approximate)
    assert max(abs(e) / exp(at) for at, e in zip(x, off, strict=True)) == pytest.approx(most, rel=0.05)
