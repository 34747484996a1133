"""Books of rules: declaration, order, follow-on findings, and where findings stand."""

import pytest

from buda_emu.support.checker import ByteOffset, Diagnostic, Finding, RuleBook, TextPlace
from buda_emu.support.checker.checks import MAX_SEARCHES


def book() -> RuleBook:
    return RuleBook("schedule", "G")


def test_a_check_gives_diagnostics_with_rule_and_place() -> None:
    rules = book()

    @rules.rule("G041", "error", "two tensors share a byte", source="GEMINI 4", fix="move one of them")
    def shared(numbers):
        for number in numbers:
            yield Finding(f"0/{number}/buffer", f"tensor {number} overlaps")

    assert [(item.rule, item.severity, item.where, item.message, item.hint) for item in rules.run([10, 9])] == [
        ("G041", "error", "0/9/buffer", "tensor 9 overlaps", "move one of them"),
        ("G041", "error", "0/10/buffer", "tensor 10 overlaps", "move one of them"),
    ]
    assert rules.rules["G041"].source in rules.rules["G041"].explanation


def test_every_kind_of_place() -> None:
    rules = book()

    @rules.rule("G001", "note", "n")
    def places():
        yield Finding(ByteOffset(0x1F40, "DmaHint.size"), "bytes")
        yield Finding(TextPlace(5, 27, 31), "text")
        yield Finding("a/b", "pointer")
        yield Finding("", "whole")

    found = {item.message: item for item in rules.run(path="x")}
    assert {name: item.where for name, item in found.items()} == {
        "bytes": "0x1f40 DmaHint.size",
        "text": "5:27",
        "pointer": "a/b",
        "whole": "",
    }
    assert (found["text"].line, found["text"].column, found["text"].end_column) == (5, 27, 31)
    assert (found["bytes"].offset, found["bytes"].element) == (0x1F40, "DmaHint.size")
    assert {item.path for item in found.values()} == {"x"}


def test_findings_are_sorted_by_place() -> None:
    rules = book()

    @rules.rule("G002", "error", "n")
    def places():
        for place in ("1/10/x", "1/9/x", "-1/in/0", "1/9"):
            yield Finding(place, "m")

    assert [item.pointer for item in rules.run()] == ["1/9", "1/9/x", "1/10/x", "-1/in/0"]


def test_basic_errors_stop_the_rest_and_basic_notes_do_not() -> None:
    for severity, expected in (("error", ["G001"]), ("note", ["G001", "G002"])):
        rules = book()

        @rules.rule("G002", "error", "later")
        def later():
            yield Finding("b", "m")

        @rules.rule("G001", severity, "first", basic=True)
        def first():
            yield Finding("a", "m")

        assert [item.rule for item in rules.run()] == expected


def test_errors_of_reading_stop_the_rest() -> None:
    rules = book()
    rules.declare("G001", "error", "found while reading")

    @rules.rule("G002", "error", "later")
    def later():
        yield Finding("b", "m")

    read = rules.diagnostic("net.json", "G001", "0", "no list")
    assert rules.run(path="net.json", reading_findings=[read]) == [read]
    assert [item.rule for item in rules.run()] == ["G002"]


def test_a_rule_is_silent_where_a_better_one_spoke() -> None:
    rules = book()
    called = []

    @rules.rule("G003", "error", "weak", unless=("G004",))
    def weak(things):
        called.append(things)
        yield from (Finding(thing, "weak", about=thing) for thing in things)

    @rules.rule("G004", "error", "exact")
    def exact(things):
        for thing in things:
            if thing == "whole":
                yield Finding(thing, "exact")
            elif thing == "a":
                yield Finding(thing, "exact", about=thing)

    assert [(item.rule, item.pointer) for item in rules.run(["a", "b"])] == [("G004", "a"), ("G003", "b")]
    called.clear()
    assert [item.rule for item in rules.run(["whole"])] == ["G004"]
    assert called == []  # not even run: it could not know what to make of the document


def test_more_than_one_check_of_a_rule_and_rules_in_a_circle() -> None:
    rules = book()

    @rules.rule("G001", "error", "one", unless=("G002",))
    def one():
        yield Finding("a", "one")

    @rules.check("G001")
    def two():
        yield Finding("b", "two")

    @rules.rule("G002", "error", "other", unless=("G001",))
    def other():
        yield Finding("c", "other")

    assert [item.message for item in rules.run()] in (["one", "two"], ["two", "other"])


def test_an_id_is_taken_once_and_has_the_prefix() -> None:
    rules = book()
    rules.declare("G001", "error", "n")
    for name in ("G001", "X001"):
        with pytest.raises(ValueError, match=name):
            rules.declare(name, "error", "n")


def test_the_same_finding_is_said_once_and_hints_are_searched_for_the_first() -> None:
    rules = book()
    searches = []

    @rules.rule("G001", "warning", "n", strict="error")
    def many():
        for number in range(MAX_SEARCHES + 10):
            for _ in range(2):
                yield Finding(f"{number}", "m", lambda: searches.append(1) or "did you mean 'x'?")

    found = rules.run(strict=True)
    assert len(found) == MAX_SEARCHES + 10
    assert len(searches) == MAX_SEARCHES
    assert {item.severity for item in found} == {"error"}
    assert {item.severity for item in rules.run()} == {"warning"}


def test_a_diagnostic_needs_no_place() -> None:
    assert Diagnostic("p", "G001", "error", "m").where == ""
