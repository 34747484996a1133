"""Columns of a table within a terminal."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rich.cells import cell_len

from buda_emu.report.terminal.plain_table import Column, cut, fit
from buda_emu.report.terminal.text import table, wrap
from buda_emu.support.screen import LEAST_COLUMNS, Screen, printing_on

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "M", "Z"]), min_size=1, max_size=60)
FIGURES = st.integers(-(10**9), 10**9).map(lambda value: f"{value:,}")


@st.composite
def tables(draw):
    """Headings, rows, which columns are figures, prose, verdicts."""
    kinds = draw(st.lists(st.sampled_from(["name", "prose", "figure", "verdict"]), min_size=1, max_size=12))
    headers = [draw(st.lists(st.text("abcdef", min_size=1, max_size=9), min_size=1, max_size=3)) for _ in kinds]
    cells = {
        "name": WORDS,
        "prose": st.lists(WORDS, max_size=9).map(" ".join),
        "figure": FIGURES,
        "verdict": st.sampled_from(["passed", "FAILED"]),
    }
    rows = draw(st.lists(st.tuples(*(cells[kind] for kind in kinds)), max_size=5))
    return [" ".join(words) for words in headers], rows, kinds


def columns(kinds, *wanted):
    return [number for number, kind in enumerate(kinds) if kind in wanted]


@given(tables(), st.integers(LEAST_COLUMNS, 200))
def test_no_table_is_wider_than_the_terminal_and_no_figure_or_verdict_is_cut(drawn, width):
    headers, rows, kinds = drawn
    with printing_on(Screen(width)):
        text = table(
            headers,
            rows,
            right=columns(kinds, "figure"),
            prose=columns(kinds, "prose"),
            whole=columns(kinds, "verdict"),
        )
    assert max((cell_len(line) for line in text.splitlines()), default=0) <= width
    for row in rows:
        for number in columns(kinds, "figure", "verdict"):
            assert row[number] in text


@given(tables())
def test_without_a_terminal_nothing_is_cut_or_split(drawn):
    headers, rows, kinds = drawn
    assume(all("".join(row).strip() for row in rows))  # a blank line at the end is none
    lines = table(headers, rows, right=columns(kinds, "figure")).splitlines()
    assert len(lines) == 1 + len(rows)
    for line, row in zip(lines, [headers, *rows], strict=True):
        assert line.split() == " ".join(row).split()


def test_names_are_cut_in_the_middle():
    assert cut("encoder_layer_11_attention_output", 15) == "encode...output"
    assert cut("short", 5) == "short"
    assert cut("abcdefgh", 4) == "abcd"
    with printing_on(Screen(40)):
        head, row = table(("op", "n"), [("encoder_layer_11_attention_output_product", "1,000")], right=[1]).splitlines()
    assert row == "encoder_layer_1..._output_product  1,000"
    assert head.split() == ["op", "n"]


def test_what_does_not_fit_goes_on_below_under_the_same_names():
    headers = ("op", *(f"figure {number}" for number in range(8)))
    with printing_on(Screen(40)):
        text = table(headers, [("softmax", *["123,456"] * 8), ("norm", *["7"] * 8)], right=range(1, 9))
    parts = text.split("\n\n")
    assert len(parts) == 3
    for part in parts:
        assert [line.split()[0] for line in part.splitlines()[-2:]] == ["softmax", "norm"]
    assert text.count("123,456") == 8


def test_headings_take_more_lines_before_anything_is_cut():
    with printing_on(Screen(44)):
        lines = table(("op", "waits for input", "waits for room"), [("a_long_name_of_an_op", "1", "2")], [1, 2])
    assert [line.split() for line in lines.splitlines()] == [
        ["waits", "for", "waits", "for"],
        ["op", "input", "room"],
        ["a_long_name_of_an_op", "1", "2"],
    ]


def test_prose_goes_on_in_its_column():
    with printing_on(Screen(40)):
        lines = table(("rule", "says"), [("V041", "two words " * 8)], prose=[1], whole=[0]).splitlines()
    assert len(lines) > 2
    assert all(line.startswith("      ") for line in lines[2:])
    assert " ".join(" ".join(lines[1:]).split()) == "V041 " + ("two words " * 8).strip()


def test_control_characters_do_not_shift_columns_of_a_terminal():
    with printing_on(Screen(60)):
        text = table(("op", "n"), [("a\x1b]0;title\x07", "1"), ("b", "2")], right=[1])
    assert "a\\x1b]0;title\\x07  1" in text


def test_marked_rows_and_verdicts_have_colours_only_on_a_screen_that_shows_them():
    rows = [("a", "passed"), ("b", "FAILED")]
    assert "\x1b" not in table(("op", "verdict"), rows, marked=[1])
    with printing_on(Screen(None, colour=True)):
        shown = table(("op", "verdict"), rows, whole=[1], marked=[])
        marked = table(("op", "n"), [("a", "1"), ("b", "2")], marked=[1])
    assert "\x1b[32mpassed" in shown
    assert "\x1b[1;31mFAILED" in shown
    assert "\x1b[1;33mb" in marked


def test_widths():
    """Even where the least does not fit, the sum does."""
    (widths,) = fit([Column("name", 100, 5, 5)], 40)
    assert widths == {0: 40}
    assert fit([Column("name", 3, 5, 5), Column("whole", 9, 2, 2)], None) == [{0: 5, 1: 9}]


@pytest.mark.parametrize(("columns", "lines"), [(None, 1), (200, 1), (40, 3)])
def test_sentences_go_on_on_the_next_line_of_a_terminal(columns, lines):
    with printing_on(Screen(columns)):
        text = wrap("op exponentials works 14,272 of the 14,272 cycles of an input: it sets the pace")
    assert len(text.splitlines()) == lines
    assert all(line.startswith("  ") for line in text.splitlines()[1:])


def test_a_sentence_breaks_only_at_blanks():
    """A path that is longer than the terminal can still be copied."""
    path = "netlists/a-long-name/" * 3
    with printing_on(Screen(40)):
        lines = wrap(f"the netlist {path} is refused").splitlines()
    assert path in [line.strip() for line in lines]
