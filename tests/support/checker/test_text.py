"""Pieces of a document in messages."""

import pytest

from buda_emu.support.checker.text import one_line, plural, quote, short_line
from shared_files import ROOT


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [("ab", 40, "'ab'"), ("a" * 40, 40, repr("a" * 40)), ("a" * 41, 40, repr("a" * 37 + "...")), ("a\n", 40, r"'a\n'"),
     ("abcdef", 5, "'ab...'")],
)  # fmt: skip
def test_a_quoted_text_is_no_longer_than_its_limit(text, limit, expected):
    assert quote(text, limit) == expected
    assert quote("b" * 41) == repr("b" * 37 + "...")


def test_a_shown_name_is_short_and_printable():
    assert short_line("a" * 160) == "a" * 160
    assert short_line("a" * 161) == "a" * 160 + "..."
    assert short_line("") == ""
    assert short_line(12) == "12"
    assert short_line("naïve") == "naïve"
    assert short_line("a\x1b[31m\n") == r"a\x1b[31m\n"


@pytest.mark.parametrize(
    ("noun", "many"), [("epoch", "epochs"), ("entry", "entries"), ("key", "keys"), ("mismatch", "mismatches")]
)
def test_one_thing_is_not_called_many(noun, many):
    counts = {0: f"0 {many}", 1: f"1 {noun}", 2: f"2 {many}", 12_000: f"12,000 {many}"}
    assert {count: plural(count, noun) for count in counts} == counts


def test_a_verb_follows_the_count():
    assert [plural(count, "op has", "ops have") for count in (1, 2, 1200)] == [
        "1 op has",
        "2 ops have",
        "1,200 ops have",
    ]


def test_plurals_are_made_in_one_place():
    """`'s' * (count != 1)` in a message is a second one, and so is `"s" if count != 1`."""
    for path in (ROOT / "buda_emu").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not [by_hand for by_hand in ("{'s' *", "'s' if", '"s" if', "[:-1] if count") if by_hand in text], path


def test_a_message_is_one_line():
    assert one_line("op a: has no reader") == "op a: has no reader"
    assert one_line("op a\n::warning::b\x1b[8m: \u202eß") == "op a\\n::warning::b\\x1b[8m: \\u202eß"
