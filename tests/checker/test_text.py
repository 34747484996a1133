"""Pieces of a document in messages."""

import pytest

from buda_emu.checker.text import quoted, shown


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [("ab", 40, "'ab'"), ("a" * 40, 40, repr("a" * 40)), ("a" * 41, 40, repr("a" * 37 + "...")), ("a\n", 40, r"'a\n'"),
     ("abcdef", 5, "'ab...'")],
)  # fmt: skip
def test_a_quoted_text_is_no_longer_than_its_limit(text, limit, expected):
    assert quoted(text, limit) == expected
    assert quoted("b" * 41) == repr("b" * 37 + "...")


def test_a_shown_name_is_short_and_printable():
    assert shown("a" * 160) == "a" * 160
    assert shown("a" * 161) == "a" * 160 + "..."
    assert shown("") == ""
    assert shown(12) == "12"
    assert shown("naïve") == "naïve"
    assert shown("a\x1b[31m\n") == r"a\x1b[31m\n"
