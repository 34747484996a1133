"""Fixes of findings: exact edits, made so that nothing gets worse."""

import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from buda_emu.netlist import fixes
from buda_emu.netlist.fixes import apply_fixes
from buda_emu.netlist.load import check_text
from buda_emu.support.checker.fix import Edit, Fix
from buda_emu.support.checker.fix import apply_fixes as apply_to_lines
from netlist.rules.bases import ADD as TWO_INPUTS
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
    result = apply_fixes(spoilt(old, new), check)
    assert result.text.replace("'queue'", "queue") == GOOD
    assert len(result.removed) == 1


def test_an_instruction_that_says_nothing_is_left_out():
    text = GOOD.rstrip("\n") + "\n"
    head, programs = text.split("programs:\n")
    last = next(line for line in reversed(programs.splitlines()) if line.lstrip().startswith("- "))
    indent = last[: len(last) - len(last.lstrip())]
    longer = programs.replace(last, f"{last}\n{indent}- endprogram")
    assert apply_fixes(f"{head}programs:\n{longer}", check).text == text


def test_unsafe_fixes_are_made_only_when_asked_for():
    text = spoilt("df: Float16_b", "df: Float16")
    found = [item for item in check(text) if item.fix is not None]
    assert found
    assert not any(item.fix.safe for item in found)
    assert apply_fixes(text, check).text == text
    assert len(apply_fixes(text, check, unsafe=True).removed) == len(found)


def test_a_fix_that_would_refuse_a_good_netlist_is_not_made():
    seen = []

    def biased(text):
        seen.append(text)
        found = check(text)
        return [*found, *check(spoilt("type: queue", "type: qeue"))] if text != GOOD else _wrong(GOOD)

    result = apply_fixes(GOOD, biased, unsafe=True)
    assert result.text == GOOD
    assert result.removed == ()
    assert len(seen) > 1


def _wrong(text):
    """A finding about a sound text, whose fix breaks it."""
    item = check(text.replace("type: queue", "type: qeue", 1))[0]
    edit = Edit(item.line, item.column, item.line, item.column + 5, "qeue")
    return [replace(item, severity="warning", fix=Fix("worse", True, (edit,)))]


def test_edits_that_meet_are_made_one_after_the_other():
    one, other = (Fix("", True, (Edit(1, 1, 1, 3, text),)) for text in "xy")
    assert apply_to_lines(["abc\n"], [one, other]) == ("xc\n", [one])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("entries: 2, grid_size: [1, 1], ", "entries: 2, "),
        ("target_device: 0, loc", "loc"),
        ("loc: dram, ", ""),
        ("grid_loc: [0, 0], grid_size: [2, 1], ", "grid_loc: [0, 0], "),
        ("t: 1, mblock: [1, 3], ublock: [2, 2], ublock_order", "mblock: [1, 3], ublock: [2, 2], ublock_order"),
        ("mblock: [1, 3], ublock: [2, 2], ublock_order", "ublock: [2, 2], ublock_order"),
        ("ublock: [2, 2], ublock_order", "ublock_order"),
        ("m_k: 4, ", ""),
        ("u_kt: 2, ", ""),
        ("    target_device: 0\n", ""),
    ],
)
def test_a_missing_field_that_can_be_one_thing_alone_is_written(old, new):
    result = apply_fixes(spoilt(old, new), check)
    assert [item.fix.safe for item in result.removed] == [True]
    assert _model(result.text) == _model(GOOD)


def _model(text):
    """Its queues and graphs, wherever they stand in the text."""
    net = check_text(text).netlist
    ops = [replace(op, source=None, name_node=None) for op in net.ops.values()]
    graphs = [replace(graph, source=None, name_node=None, ops=()) for graph in net.graphs.values()]
    return [replace(queue, source=None, name_node=None) for queue in net.queues.values()], graphs, ops


@pytest.mark.parametrize(
    "field",
    [
        "input: HOST, ", "type: queue, ", "entries: 2, ", "df: Float16_b, ", "ublock_order: r, ", "buf_size_mb: 2,",
        "out_df: Float16_b, ", "intermed_df: Float16_b, ", "math_fidelity: HiFi3,", "    input_count: 2\n",
        "in_df: [Float16_b, Bfp8_b, Float16_b], ",
    ],
)  # fmt: skip
def test_a_missing_field_that_could_be_several_things_is_written_when_asked_for(field):
    text = spoilt(field, "")
    assert apply_fixes(text, check).text == text
    result = apply_fixes(text, check, unsafe=True)
    assert len(result.removed) == 1
    assert not any(item.severity == "error" for item in result.left)


def test_what_cannot_be_known_is_not_written():
    text = spoilt("mblock: [2, 4], ", "")
    assert apply_fixes(text, check, unsafe=True).text == text


def test_of_a_field_that_stands_twice_the_first_is_left_out_if_it_says_the_same():
    text = spoilt("entries: 2, ", "entries: 2, entries: 2, ")
    (found,) = [item for item in check(text) if item.rule == "V211"]
    assert "entries occurs again in line" in found.message
    assert apply_fixes(text, check).text == text
    assert apply_fixes(text, check, unsafe=True).text == GOOD
    block = spoilt("    input_count: 2\n", "    input_count: 2\n    input_count: 2\n")
    assert apply_fixes(block, check, unsafe=True).text == GOOD
    for other in (text.replace("entries: 2", "entries: 4", 1), block.replace("input_count: 2", "input_count: 9", 1)):
        assert [item.hint for item in check(other) if item.rule == "V211"] == ["leave one of them out"]
        assert apply_fixes(other, check, unsafe=True).text == other
    lists = spoilt("in_df: [Float16_b, Bfp8_b, Float16_b]", "in_df: [Float16_b], in_df: [Bfp8_b, Float16_b]")
    assert not [item for item in check(lists) if item.rule == "V211"]  # appended (NETLIST 11.3 C1)


def test_the_same_name_with_the_same_words_is_left_out():
    line = next(line for line in GOOD.splitlines() if line.startswith("  weights:"))
    text = spoilt(line, f"{line}\n{line}")
    assert apply_fixes(text, check).text == GOOD
    other = spoilt(line, f"{line}\n{line.replace('entries: 1', 'entries: 2')}")
    assert apply_fixes(other, check, unsafe=True).text == other  # which of the two is right, nobody knows


ATTENTION = (ROOT / "netlists/attention.yaml").read_text()


def _typed_twice(name, other, text=ATTENTION):
    """A netlist in which the name of an object was typed in place of that of another one."""
    lines = text.splitlines(keepends=True)
    declared = re.compile(rf" +{other}: {{(input|type): \w")
    place = next(index for index, line in enumerate(lines) if declared.match(line))
    lines[place] = lines[place].replace(f"{other}:", f"{name}:", 1)
    return "".join(lines)


def test_an_op_whose_name_was_typed_twice_gets_the_name_that_is_missing():
    ops = list(check_text(ATTENTION).netlist.ops)
    text = _typed_twice(ops[0], ops[1])
    (found,) = [item for item in check(text) if item.rule == "V020"]
    assert found.hint == f"is one of them '{ops[1]}', which is missing?"
    assert apply_fixes(text, check).text == text
    assert apply_fixes(text, check, unsafe=True).text == ATTENTION


def _pairs():
    netlist = check_text(ATTENTION).netlist
    for names in (list(netlist.ops), list(netlist.queues)):
        yield from ((name, other) for name in names for other in names if name != other)


def _drawn_pairs():
    pairs = list(_pairs())
    few = set(Random(7).sample(range(len(pairs)), 20))
    return [pair if index in few else pytest.param(*pair, marks=pytest.mark.slow) for index, pair in enumerate(pairs)]


@pytest.mark.parametrize(("name", "other"), _drawn_pairs())
def test_no_fix_removes_words_that_differ(name, other):
    """Whatever object gets the name of another one: each of its words is still there, and so are all others."""
    text = _typed_twice(name, other)
    result = apply_fixes(text, check, unsafe=True)
    assert _words(result.text) >= _words(text) - Counter([name])


def _words(text):
    return Counter(re.findall(r"[\w.$]+", text))


def test_of_two_ops_the_one_that_reads_its_own_name_is_renamed():
    ops = list(check_text(ATTENTION).netlist.ops.values())
    first, second = next(
        (op, reader) for op in ops for reader in ops if op.name in reader.inputs and ops.index(op) < ops.index(reader)
    )
    # The reader stands first and has the name of what it reads.
    text = _typed_twice(first.name, second.name)
    lines = text.splitlines(keepends=True)
    start, end = _block_of(lines, first.name, 0)
    block = lines[start:end]
    del lines[start:end]
    _, end = _block_of(lines, first.name, 0)
    swapped = "".join([*lines[:end], *block, *lines[end:]])
    fixed = apply_fixes(swapped, check, unsafe=True).text
    assert not [item for item in check(fixed) if item.severity == "error"]


def _block_of(lines, name, after):
    """First line of an op and the one after its last."""
    start = next(index for index in range(after, len(lines)) if re.match(rf" +{name}:", lines[index]))
    indent = len(lines[start]) - len(lines[start].lstrip())
    end = start + 1
    while end < len(lines) and len(lines[end]) - len(lines[end].lstrip()) > indent:
        end += 1
    return start, end


def test_where_several_names_are_missing_none_is_chosen():
    ops = list(check_text(ATTENTION).netlist.ops)
    text = _typed_twice(ops[0], ops[1], _typed_twice(ops[0], ops[2]))
    assert {item.hint for item in check(text) if item.rule == "V020"} == {
        "leave one of them out, or choose another name for it"
    }
    assert apply_fixes(text, check, unsafe=True).text == text


def test_settings_of_a_queue_that_stands_twice_go_to_the_queue_without_any():
    text = TWO_INPUTS.replace("          b: {prologue", "          a: {prologue", 1)
    (found,) = [item for item in check(text) if item.rule == "V177"]
    assert found.hint == "did you mean 'b', which has none?"
    assert apply_fixes(text, check, unsafe=True).text == TWO_INPUTS


def test_settings_of_a_queue_that_is_not_read_go_to_the_queue_without_any():
    text = TWO_INPUTS.replace("          b: {prologue: true, ", "          o: {prologue: true, ", 1)
    assert [item.hint for item in check(text) if item.rule in ("V119", "V123", "V281", "V118")]
    assert _words(apply_fixes(text, check, unsafe=True).text) >= _words(text) - Counter("o")


FIELD = re.compile(r"\b[a-z_]+: (?:\[[^\[\]{}]*\]|[\w.-]+)(?:, |(?=\}))")


def _fields(path, every):
    """Texts of a netlist without one of its fields, and with one twice."""
    text = path.read_text()
    for match in list(FIELD.finditer(text))[::every]:
        yield text[: match.start()] + text[match.end() :]
        yield text[: match.end()].removesuffix(", ") + ", " + match[0] + text[match.end() :]


def _hold_fields(paths, every):
    made = 0
    for path in paths:
        for text in _fields(path, every):
            made += _held(text, path)
    return made


def test_netlists_without_a_field_and_with_one_twice():
    assert _hold_fields([ROOT / "netlists/matmul.yaml"], 5) > 10


@pytest.mark.slow
@pytest.mark.skipif(corpus_files("netlists/**/*.yaml")[0].values[0] is None, reason="no corpus")
def test_many_netlists_without_a_field_and_with_one_twice():
    small = [
        path for (path,) in (one.values for one in corpus_files("netlists/**/*.yaml")) if path.stat().st_size < 20_000
    ]
    assert _hold_fields(small[::6], 17) > 200


def _hold(paths):
    made = 0
    for path in paths:
        made += _held(path.read_text(), path)
    return made


def _held(text, path):
    """Nothing gets worse, and what is fixed is gone; how much was."""
    made = 0
    before = check(text)
    for unsafe in (False, True):
        result = apply_fixes(text, check, unsafe=unsafe)
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


def test_fixes_that_do_not_help_are_tried_for_a_bounded_time(monkeypatch):
    monkeypatch.setattr(fixes, "_READ", 100_000)
    text = "devices: {arch: wormhole_b0}\nqueues:\n" + "  q: {}\n" * 1_500
    found = check_text(text, "net.yaml").diagnostics
    tried = []

    def check(new):
        tried.append(new)
        return found

    assert apply_fixes(text, check).text == text
    assert len(found) > 100
    assert len(tried) == 21  # itself, and what is left of 100,000 characters, but at least so many
