import pytest

from buda_emu.netlist.model import Allocate, Deallocate, Declare, EndLoop, Execute, Loop, Param, Program, VarInst
from buda_emu.netlist.reader import WrittenNetlist, read_document
from buda_emu.netlist.yaml_reader import read_tree
from buda_emu.support.checker.diagnostic import Diagnostic
from netlist.netlist_texts import DEVICES, GRAPHS, NETLIST, PROGRAMS, QUEUES, edited

HEAD = DEVICES + QUEUES + GRAPHS


def read(programs: str) -> WrittenNetlist:
    return read_document(read_tree(HEAD + programs), "net.yaml", None)


def body(*instructions: str) -> Program:
    """A program of these instructions."""
    document = read("programs:\n  - run:\n" + "".join(f"    - {instruction}\n" for instruction in instructions))
    assert not document.diagnostics
    return document.programs["run"]


def findings(*instructions: str) -> list[Diagnostic]:
    return read("programs:\n  - run:\n" + "".join(f"    - {item}\n" for item in instructions)).diagnostics


def test_every_instruction_is_read() -> None:
    program = body(
        "param: [$p_a, $p_b]",
        "var: [$x, $y]",
        "var: {$z: 3}",
        "staticvar: {$s: 1, $t: 2}",
        "varinst: [$x, incwrap, $y, 4]",
        "loop: $p_a",
        "loop: 2",
        "execute: {graph_name: fwd}",
        "endloop",
        "endloop:",
        "allocate_queue: [src, dst]",
        "deallocate_queue: [dst]",
    )
    assert program.instructions == (
        Param(names=("$p_a", "$p_b")),
        Declare(kind="var", variables=(("$x", "0"), ("$y", "0"))),
        Declare(kind="var", variables=(("$z", "3"),)),
        Declare(kind="staticvar", variables=(("$s", "1"), ("$t", "2"))),
        VarInst(out="$x", opcode="incwrap", args=("$y", "4")),
        Loop(count="$p_a"),
        Loop(count="2"),
        Execute(graph="fwd"),
        EndLoop(),
        EndLoop(),
        Allocate(queues=("src", "dst")),
        Deallocate(queues=("dst",)),
    )


def test_queue_settings_are_texts() -> None:
    settings = (
        "{prologue: true, epilogue: False, zero: $z, read_only: yes, rd_ptr_global: $g, rd_ptr_local: , "
        "wr_ptr_global: '', rd_ptr_autoinc: 1, global_rdptr_autoinc: 0x1, global_wrptr_autoinc: ~}"
    )
    (execute,) = body(f"execute: {{graph_name: fwd, queue_settings: {{src: {settings}}}}}").instructions
    assert isinstance(execute, Execute)
    (src,) = execute.queue_settings
    assert (src.queue, src.prologue, src.epilogue, src.zero, src.read_only) == ("src", "true", "False", "$z", "yes")
    assert (src.rd_ptr_global, src.rd_ptr_local, src.wr_ptr_global) == ("$g", "null", "")  # NETLIST 11.2 B9
    assert (src.rd_ptr_autoinc, src.global_rdptr_autoinc, src.global_wrptr_autoinc) == ("1", "0x1", "null")


def test_settings_of_a_queue_named_twice_stay_twice() -> None:
    # NETLIST 11.1 A11
    twice = "{queue_settings: {src: {zero: a}}, queue_settings: {src: {zero: b}, dst: }}"
    (execute,) = body(f"execute: {twice}").instructions
    assert isinstance(execute, Execute)
    assert [(item.queue, item.zero) for item in execute.queue_settings] == [
        ("src", "a"),
        ("src", "b"),
        ("dst", "false"),
    ]


@pytest.mark.parametrize("operand", ["", "{}", "{queue_settings: }"])
def test_an_execute_of_nothing_is_read(operand: str) -> None:
    # NETLIST 11.2 B11
    (execute,) = body(f"execute: {operand}").instructions
    assert isinstance(execute, Execute)
    assert execute.graph == ""


@pytest.mark.parametrize(
    ("instruction", "rule"),
    [
        ("foo: 1", "V110"),
        ("endprogram:", "V110"),
        ("[endloop]", "V110"),
        ("{}", "V110"),
        ("{loop: 1, endloop: }", "V110"),
        ("loop: [1]", "V110"),
        ("endprogram", "V111"),
        ("execute", "V111"),
        ("", "V111"),
        ("var: $x", "V112"),
        ("staticvar: $x", "V112"),
        ("var: {$x: [1]}", "V180"),
        ("var: {$x: 1.5}", "V180"),
        ("var: {$x: $y}", "V180"),
        ("var: {$x: true}", "V180"),
        ("var: {$x: }", "V180"),
        ("var: {$x: 1x}", "V180"),
        ("var: {$x: 2147483648}", "V180"),
        ("staticvar: {$x: 1.0}", "V180"),
        ("var: [[$x]]", "V112"),
        ("param: $x", "V112"),
        ("param: {$x: 1}", "V112"),
        ("varinst: [$x]", "V113"),
        ("varinst: {$x: 1}", "V113"),
        ("varinst: [$x, set, [1]]", "V113"),
        ("allocate_queue: src", "V114"),
        ("allocate_queue: [srk]", "V114"),
        ("deallocate_queue: [srk]", "V114"),
        ("execute: fwd", "V115"),
        ("execute: [fwd]", "V115"),
        ("execute: {graph: fwd}", "V115"),
        ("execute: {graph_name: [fwd]}", "V115"),
        ("execute: {queue_settings: [src]}", "V115"),
        ("execute: {queue_settings: {src: 1}}", "V115"),
        ("execute: {queue_settings: {src: {foo: 1}}}", "V115"),
        ("execute: {queue_settings: {src: {zero: [1]}}}", "V115"),
    ],
)
def test_malformed_instructions(instruction: str, rule: str) -> None:
    assert [item.rule for item in findings(instruction)] == [rule]


def test_param_without_names_is_a_warning() -> None:
    document = read("programs:\n  - run:\n    - param: []\n")
    assert [(item.rule, item.severity) for item in document.diagnostics] == [("V112", "warning")]
    assert not document.programs["run"].broken


def test_what_fails_only_when_it_runs_is_read() -> None:
    # NETLIST 11.2 B7
    body("varinst: [$one, set]", "loop: 0", "endloop", "endloop", "var: [x, x]", "loop: $nosuch")


@pytest.mark.parametrize("programs", ["programs:\n  run:\n    - endloop\n", "programs: run\n", "programs:\n  - run\n"])
def test_the_section_is_a_list_of_maps(programs: str) -> None:
    assert read(programs).diagnostics[0].rule == "V110"


def test_a_program_is_a_one_key_map() -> None:
    assert [item.rule for item in read("programs:\n  - {a: [], b: []}\n").diagnostics] == ["V110"]
    assert [item.rule for item in read("programs:\n  - run: 5\n").diagnostics] == ["V110"]


def test_a_program_may_be_empty() -> None:
    for empty in ("", " []"):
        assert read(f"programs:\n  - run:{empty}\n").programs["run"].instructions == ()


def test_the_last_body_of_a_name_counts_and_both_are_listed() -> None:
    # NETLIST 3, 11.1 A16
    document = read("programs:\n  - run: [endloop]\n  - other: []\n  - run: []\n")
    assert document.program_order == ["run", "other", "run"]
    assert document.programs["run"].instructions == ()


def test_syntax_of_a_replaced_body_is_still_judged() -> None:
    assert [item.rule for item in read("programs:\n  - run: [bogus: 1]\n  - run: []\n").diagnostics] == ["V110"]


def test_allocations_know_only_the_queues_above() -> None:
    text = DEVICES + edited("    - endloop", "    - allocate_queue: [src]\n    - endloop", PROGRAMS) + QUEUES + GRAPHS
    assert [item.rule for item in read_document(read_tree(text), "net.yaml", None).diagnostics] == ["V114"]


def test_the_small_netlist_is_read_whole() -> None:
    document = read_document(read_tree(NETLIST), "net.yaml", None)
    assert not document.diagnostics
    names = [type(item).__name__ for item in document.programs["run"].instructions]
    assert names == ["Param", "Declare", "Loop", "Execute", "VarInst", "EndLoop"]
