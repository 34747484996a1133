"""Instructions as error texts show them."""

import pytest

from buda_emu.netlist.load import check_text
from buda_emu.netlist.program.settings import Place, instruction_text
from buda_emu.support.stopped import Round
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text


@pytest.fixture(scope="module")
def instructions():
    net = check_text(
        text(
            [queue("a"), queue("o", "n")],
            [graph("g", op("n", "nop", ["a"]))],
            [
                program(
                    "p",
                    "param: [$p_x, $p_y]",
                    "var: {$c_zero: 0, $i: 3}",
                    "staticvar: [$s]",
                    "loop: $p_x",
                    "varinst: [$i, incwrap, 1, 8]",
                    execute("g", fifo_settings("a", more=", rd_ptr_autoinc: 2")),
                    "endloop",
                )
            ],
        )
    ).netlist
    assert net is not None
    return net.programs["p"].instructions


def test_instructions_as_they_stand(instructions):
    assert [instruction_text(one) for one in instructions] == [
        "param: [$p_x, $p_y]",
        "var: {$c_zero: 0, $i: 3}",
        "staticvar: {$s: 0}",
        "loop: $p_x",
        "varinst: [$i, incwrap, 1, 8]",
        (
            "execute: {graph_name: g, queue_settings: {a: {prologue: false, epilogue: false, zero: false, "
            "rd_ptr_local: $c_zero, rd_ptr_global: $c_zero, rd_ptr_autoinc: 2}}}"
        ),
        "endloop",
    ]


def test_a_place_is_named(instructions):
    place = Place("p", 5, instructions[5], (Round(12, "$p_x", 2, 3),), {"$i": 4})
    assert str(place) == f"program p, instruction 5 (execute, line {place.line})"
    assert str(place.rounds[0]) == "round 2 of 3 of the loop of line 12"


def test_of_many_settings_the_first_are_shown_or_those_of_the_queue():
    settings = [fifo_settings(name) for name in "abcd"]
    source = text(
        [*(queue(name) for name in "abcd"), queue("m", kind="ram"), queue("o", "n", entries=8)],
        [
            graph(
                "g",
                op("n", "add", ["a", "b"]),
                op("k", "add", ["c", "d"], loc=(0, 1)),
                op("j", "add", ["k", "m"], loc=(0, 2)),
                op("i", "add", ["n", "j"], loc=(0, 3)),
            )
        ],
        [program("p", "var: {$c_zero: 0}", execute("g", *settings, ram_settings("m")))],
    )
    net = check_text(source.replace("input: n", "input: i")).netlist
    assert net is not None
    (_, run) = net.programs["p"].instructions
    shown = instruction_text(run)
    assert [name for name in "abcdm" if f"{name}: {{" in shown] == ["a", "b", "c"]
    assert shown.endswith(", ...}}")
    one = instruction_text(run, "m")
    assert "m: {prologue: false, epilogue: false, zero: false, rd_ptr_global: $c_zero, wr_ptr_global: $c_zero}" in one
    assert "a: {" not in one
