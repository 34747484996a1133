"""The walk of a program: what is certain, where it stops to know, and how long it takes at most."""

import time

import pytest

from buda_emu.netlist.load import check_text
from buda_emu.netlist.rules.programs.flow import WALKED
from netlist.rules import bases as b
from netlist.rules.cases import edited

START, END = "    - loop: $p_n\n", "    - endloop\n"
G0 = "    - execute: {graph_name: g0, queue_settings: {a: {rd_ptr_local: $lp, rd_ptr_global: $gp}}}\n"


def with_body(base: str, body: str, rounds: str = "$p_n") -> str:
    """The base with other instructions after its declarations."""
    start, end = base.index(START), base.index(END) + len(END)
    return base[:start] + (f"    - loop: {rounds}\n{body}{END}" if rounds else body) + base[end:]


def rules(text: str) -> list[str]:
    found = check_text(text, arch="wormhole_b0")
    assert found.netlist is not None, found.diagnostics
    return [item.rule for item in found.diagnostics if item.rule in WALKED]


def test_a_queue_fills_up_in_the_rounds_that_are_known() -> None:
    assert rules(with_body(b.IN_TURN, G0, "2")) == []
    found = check_text(with_body(b.IN_TURN, G0, "3"), arch="wormhole_b0").diagnostics
    (told,) = (item.message for item in found if item.rule == "V283")
    assert told == "program main: writes 1 entry to queue b, which has 0 of 2 entries free"


def test_rounds_that_a_parameter_gives_are_not_known() -> None:
    assert rules(with_body(b.IN_TURN, G0, "$p_n")) == []


def test_behind_a_loop_that_runs_on_nothing_is_known_of_what_it_changes() -> None:
    loop = f"    - loop: $p_n\n{G0}{END}"
    assert rules(with_body(b.IN_TURN, G0 + G0 + G0, "")) == ["V283"]
    assert rules(with_body(b.IN_TURN, loop + G0 + G0 + G0, "")) == []


@pytest.mark.parametrize(("rounds", "found"), [("100", ["V274"]), ("100000", [])])
def test_a_loop_of_many_rounds_is_left_when_the_budget_is_spent(rounds: str, found: list[str]) -> None:
    """The counter is back at 0 after the loop, which nobody counts that far."""
    counted = f"    - loop: {rounds}\n    - varinst: [$gp, incwrap, 1, 4]\n{END}    - loop: $gp\n{G0}{END}"
    assert rules(with_body(b.IN_TURN, counted, "")) == found


@pytest.mark.parametrize("count", ["$c_one", "$p_n", "2147483647"])
def test_loops_in_loops_take_no_longer_than_their_text(count: str) -> None:
    depth = 6_000
    body = f"    - loop: {count}\n    - varinst: [$gp, incwrap, 1, 4]\n" * depth + G0 + END * depth
    text = with_body(b.IN_TURN, body, "")
    start = time.process_time()
    check_text(text, arch="wormhole_b0")
    took = time.process_time() - start
    assert took < 2 + 2 * len(text) / 1e6, took


def test_where_nothing_is_known_any_more_names_still_are() -> None:
    """Beyond what may be widened no value is known, but a variable that was never declared is still none."""
    depth = 1_000
    inner = "    - varinst: [$gp, incwrap, 1, 4]\n" * 400
    body = "    - loop: $p_n\n" * depth + inner + END * depth
    behind = "    - varinst: [$gp, set, 0]\n    - loop: $gp\n" + G0 + END + "    - varinst: [$gp, set, $nope]\n"
    assert rules(with_body(b.IN_TURN, G0 + behind, "")) == ["V274", "V270"]
    assert rules(with_body(b.IN_TURN, G0 + body + behind, "")) == ["V270"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [("$lpp", "did you mean '$lp'?"), ("$p_m", "did you mean '$p_n'?"), ("$zebra", "")],
)
def test_a_misspelt_variable_is_told_with_the_name_that_was_meant(words: str, hint: str) -> None:
    edit = ("", "[$lp, incwrap, $c_one, 4]", f"[$lp, incwrap, {words}, 4]")
    (found,) = check_text(edited(b.COPY, (edit,)), arch="wormhole_b0").diagnostics
    assert (found.rule, found.hint) == ("V270", hint)
    assert found.message == f"program main: variable {words} has no value here"


def test_a_variable_that_is_declared_further_down_is_no_other() -> None:
    text = with_body(b.COPY, "    - varinst: [$lp, set, $t]\n    - var: [$t]\n", "")
    (found,) = (item for item in check_text(text, arch="wormhole_b0").diagnostics if item.rule == "V270")
    assert found.hint == "it is declared further down"


@pytest.mark.parametrize(("second", "found"), [("$lp", []), ("$gp", ["V275"]), ("0", ["V275"])])
def test_graphs_that_run_at_the_same_time_need_the_same_settings(second: str, found: list[str]) -> None:
    text = b.TWO_CHIPS.replace("inputs: [k0], in_df: [Float16_b]", "inputs: [k0, a], in_df: [Float16_b, Float16_b]")
    text = text.replace("type: exp", "type: add")
    g1 = "        graph_name: g1\n        queue_settings:\n"
    assert rules(text.replace(g1, f"{g1}          a: {{rd_ptr_local: {second}, rd_ptr_global: $gp}}\n")) == found


def test_that_the_name_that_was_meant_is_not_read_is_no_finding_of_its_own() -> None:
    found = check_text(edited(b.COPY, (("", "{rd_ptr_local: $lp,", "{rd_ptr_local: $lpp,"),)), arch="wormhole_b0")
    assert [item.rule for item in found.diagnostics] == ["V270"]


@pytest.mark.parametrize(
    ("pointers", "told"),
    [
        ("rd_ptr_local: 0, rd_ptr_global: 0", []),
        ("rd_ptr_local: 1, rd_ptr_global: 0", ["reads queue b beyond what it holds: 1 of 2 entries"]),
        ("rd_ptr_local: 0, rd_ptr_global: 1", ["reads queue b, which is empty"]),
        ("rd_ptr_local: 3, rd_ptr_global: 3", ["reads queue b in slot 1, which nothing was written to"]),
    ],
)
def test_a_queue_is_read_where_it_holds_something(pointers: str, told: list[str]) -> None:
    text = b.IN_TURN.replace("b: {rd_ptr_local: $lp, rd_ptr_global: $gp}", f"b: {{{pointers}}}")
    found = check_text(text, arch="wormhole_b0").diagnostics
    assert [item.message.removeprefix("program main: ") for item in found if item.rule == "V282"] == told


def test_a_queue_between_ops_of_one_epoch_is_read_where_it_was_written() -> None:
    """Each input is written before it is read; one that lies elsewhere is not there."""
    base = b.IN_TURN.replace("  g1:\n    target_device: 0\n    input_count: 1\n", "")
    start = base.index("    - execute:\n        graph_name: g1")
    settings = (
        "          b: {rd_ptr_local: 0, rd_ptr_global: $gp}\n          d: {rd_ptr_global: $z, wr_ptr_global: $z}\n"
    )
    text = base[:start] + settings + base[base.index("    - varinst: [$lp") :]
    text = edited(text, (("k1", "grid_loc: [0, 0]", "grid_loc: [1, 0]"),))
    assert rules(text) == []
    assert rules(text.replace("rd_ptr_local: 0", "rd_ptr_local: 1")) == ["V282"]


def test_a_queue_that_another_program_pops_is_not_kept() -> None:
    kept = b.IN_TURN.replace("b: {rd_ptr_local: $lp, rd_ptr_global: $gp}", "b: {rd_ptr_local: $lp, rd_ptr_global: 0}")
    assert rules(kept) == ["V290"]
    g1 = "graph_name: g1, queue_settings: {b: {rd_ptr_local: 0, rd_ptr_global: 0, rd_ptr_autoinc: 0, %s}}"
    other = "  - other:\n    - execute: {" + g1 + "}\n"
    assert rules(kept + other % "global_rdptr_autoinc: 1") == []
    assert rules(kept + other % "global_rdptr_autoinc: 0") == ["V290", "V290"]
