"""Tables and figures in plain text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.report.terminal.text import correlation, number, percent, plural, shape, table


def test_a_table():
    rows = [("a", "1", "x"), ("longer", "10", "")]
    assert table(("name", "n", "note"), rows, right=(1,)).splitlines() == [
        "name     n  note",
        "a        1  x",
        "longer  10",
    ]


def test_a_table_refuses_rows_of_another_length():
    with pytest.raises((ValueError, IndexError)):
        table(("a", "b"), [("only one",)])


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0.0, "0"), (1.23456, "1.235"), (1e-9, "1e-09"), (float("inf"), "inf")]
)
def test_figures(value, text):
    assert number(value) == text


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (1.0, "1"), (0.5, "0.500000"), (-1.0, "-1.000000")])
def test_correlations(value, text):
    assert correlation(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (1, "100 %"), (0.5, "50.00 %"), (0.99999, "99.99 %"), (1e-9, "0.01 %"), (0.99994, "99.99 %")],
)
def test_shares(share, text):
    assert percent(share) == text


@given(st.floats(0, 1))
def test_only_all_is_all_and_only_nothing_is_nothing(share):
    assert (percent(share) == "100 %") is (share == 1)
    assert (percent(share) == "0 %") is (share == 0)
    assert abs(float(percent(share).removesuffix(" %")) - 100 * share) <= 0.0101


def test_words():
    assert shape((4, 1, 64, 128)) == "4x1x64x128"
    assert [plural(count, "netlist") for count in (0, 1, 2)] == ["0 netlists", "1 netlist", "2 netlists"]
