"""Hints of findings: what was meant where no word is near."""

import pytest

from buda_emu.netlist.load import check_text
from buda_emu.support.checker.render import summary
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

SETTINGS = fifo_settings("acts", "$at", "$at")
BODY = text(
    [queue("acts", entries=4), queue("o", "last", entries=4)],
    [
        graph(
            "g",
            op("first", "nop", ["acts"]),
            op("act", "nop", ["first"], loc=(0, 1)),
            op("last", "nop", ["act"], loc=(0, 2)),
        )
    ],
    [program("p", "param: [$rounds]", "staticvar: {$at: 0}", "loop: $rounds", execute("g", SETTINGS), "endloop")],
)


def hints(old, new, *, rule):
    """The hints of the findings of a rule about the netlist with one piece replaced."""
    assert old in BODY
    findings = check_text(BODY.replace(old, new, 1), "net.yaml").diagnostics
    return [str(finding.hint) for finding in findings if finding.rule == rule]


def test_the_netlist_is_sound():
    assert check_text(BODY, "net.yaml", strict=True).diagnostics == ()


@pytest.mark.parametrize(
    ("old", "new", "rule", "hint"),
    [
        ("math_fidelity: HiFi4", "math_fidelity: FAST", "V025", "one of LoFi, HiFi2, HiFi3, HiFi4, HiFi2_A, HiFi2_B"),
        ("math_fidelity: HiFi4", "math_fidelity: hifi4", "V025", "did you mean 'HiFi4'?"),
        ("mblock: [1, 1]", "mblock: 1x2", "V003", "write [1, 2]"),
        ("mblock: [1, 1]", "mblock: wide", "V003", ""),
        ("param: [$rounds]", "param: $rounds", "V112", "write [$rounds]"),
        ("loop: $rounds", "loop: rounds", "V271", "did you mean '$rounds'?"),
        ("prologue: false", "prologue: no", "V271", "write false"),
        ("prologue: false", "prologue: Yes", "V271", "write true"),
        ("prologue: false", "prologue: perhaps", "V271", ""),
        ("graph_name: g", "graph_name: fwd", "V128", "the netlist has g"),
        (
            "inputs: [acts]",
            "inputs: [act]",
            "V170",
            "did op first mean to read queue 'acts', which nothing reads, in place of 'act'?",
        ),
        ("inputs: [acts]", "inputs: [first]", "V170", "feed values back through a queue of type ram"),
    ],
)
def test_what_was_meant(old, new, rule, hint):
    assert hints(old, new, rule=rule) == [hint]


def test_the_last_line_explains_an_error_before_a_warning():
    refused = check_text(BODY.replace("HiFi4", "FAST", 1), "net.yaml").diagnostics
    warned = check_text(BODY.replace("$at: 0", "$at: 0, $spare: 0"), "net.yaml").diagnostics
    assert [finding.severity for finding in (*warned, *refused)] == ["warning", "error"]
    assert "`buda-emu explain V025` tells more" in summary([*warned, *refused])
