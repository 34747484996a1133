"""Tables and figures in plain text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.report.terminal.drawn_table import draw_table
from buda_emu.report.terminal.plain_table import plain
from buda_emu.report.terminal.text import correlation, number, percent, shape, table
from buda_emu.support.screen import Screen

_CELLS = st.one_of(st.sampled_from(["", "a", "1", "12,345", "passed", "FAILED", "two words", "[red]z", "\\[b]", ":x:"]),
                   st.text(max_size=6))  # fmt: skip


@given(st.data())
def test_a_plain_table_is_what_the_library_draws(data):
    columns = data.draw(st.integers(1, 4))
    headers = data.draw(
        st.lists(_CELLS.filter(lambda cell: cell == " ".join(cell.split()) != ""), min_size=columns, max_size=columns)
    )
    rows = data.draw(st.lists(st.lists(_CELLS, min_size=columns, max_size=columns), max_size=4))
    right, prose, marked = (frozenset(data.draw(st.sets(st.integers(0, 4)))) for _ in range(3))
    screen = Screen(data.draw(st.sampled_from([None, 40, 60])), data.draw(st.booleans()))
    found = plain(headers, rows, right, marked, screen)
    if found is not None:
        assert found == draw_table(headers, rows, right, prose, frozenset(), marked, screen)


def test_tables_that_need_the_library():
    for rows, columns in (([["ü"]], None), ([["two\nlines"]], None), ([[" x"]], None), ([["x" * 41]], 40)):
        assert plain(["a"], rows, [], [], Screen(columns)) is None
    assert plain(["a"], [["x" * 40]], [], [], Screen(40)) == "a\n" + "x" * 40


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
