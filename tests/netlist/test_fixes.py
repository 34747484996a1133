"""Fixes of findings: exact edits, made so that nothing gets worse."""

import pytest

from buda_emu.checker.fix import Edit, Fix, applied
from buda_emu.netlist.fixes import fixed
from buda_emu.netlist.load import check_text
from shared_files import ROOT, corpus_files

GOOD = (ROOT / "netlists/matmul.yaml").read_text()


def check(text):
    return check_text(text).diagnostics


def spoilt(old, new):
    assert old in GOOD
    return GOOD.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("type: queue", "type: qeue"),
        ("grid_size: [1, 1]", "gridsize: [1, 1]"),
        ("type: queue", "type: 'queu'"),
        ("input: HOST", "input: host"),
        ("entries: 2", "entries: 2.0"),
        ("math_fidelity: HiFi3", "math_fidelity: hifi3"),
        ("execute: ", "excute: "),
        ("graph_name: ", "graphname: "),
    ],
)
def test_a_word_is_corrected_and_nothing_else_changes(old, new):
    result = fixed(spoilt(old, new), check)
    assert result.text.replace("'queue'", "queue") == GOOD
    assert len(result.removed) == 1


def test_an_instruction_that_says_nothing_is_left_out():
    text = GOOD.rstrip("\n") + "\n"
    head, programs = text.split("programs:\n")
    last = next(line for line in reversed(programs.splitlines()) if line.lstrip().startswith("- "))
    indent = last[: len(last) - len(last.lstrip())]
    longer = programs.replace(last, f"{last}\n{indent}- endprogram")
    assert fixed(f"{head}programs:\n{longer}", check).text == text


def test_unsafe_fixes_are_made_only_when_asked_for():
    text = spoilt("df: Float16_b", "df: Float16")
    found = [item for item in check(text) if item.fix is not None]
    assert found
    assert not any(item.fix.safe for item in found)
    assert fixed(text, check).text == text
    assert len(fixed(text, check, unsafe=True).removed) == len(found)


def test_a_fix_that_would_refuse_a_good_netlist_is_not_made():
    seen = []

    def biased(text):
        seen.append(text)
        found = check(text)
        return [*found, *check(spoilt("type: queue", "type: qeue"))] if text != GOOD else _wrong(GOOD)

    result = fixed(GOOD, biased, unsafe=True)
    assert result.text == GOOD
    assert result.removed == ()
    assert len(seen) > 1


def _wrong(text):
    """A finding about a sound text, whose fix breaks it."""
    from dataclasses import replace

    item = check(text.replace("type: queue", "type: qeue", 1))[0]
    edit = Edit(item.line, item.column, item.line, item.column + 5, "qeue")
    return [replace(item, severity="warning", fix=Fix("worse", True, (edit,)))]


def test_edits_that_meet_are_made_one_after_the_other():
    one, other = (Fix("", True, (Edit(1, 1, 1, 3, text),)) for text in "xy")
    assert applied(["abc\n"], [one, other]) == ("xc\n", [one])


def _hold(paths):
    made = 0
    for path in paths:
        text = path.read_text()
        before = check(text)
        for unsafe in (False, True):
            result = fixed(text, check, unsafe=unsafe)
            made += len(result.removed)
            assert any(item.severity == "error" for item in before) or not any(
                item.severity == "error" for item in result.left
            ), path
            left = {(item.rule, item.message) for item in result.left}
            assert not left & {(item.rule, item.message) for item in result.removed}, path
            if not result.removed:
                assert result.text == text
    return made


MUTANTS = [one.values[0] for one in corpus_files("mutants/*.yaml")]


@pytest.mark.skipif(MUTANTS == [None], reason="no corpus")
def test_some_mutants_are_not_made_worse():
    assert _hold(MUTANTS[30:500:12]) > 0


@pytest.mark.slow
@pytest.mark.skipif(MUTANTS == [None], reason="no corpus")
def test_no_mutant_is_made_worse():
    assert _hold(MUTANTS) > 40
