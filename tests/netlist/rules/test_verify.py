"""How `verifying` runs the checks: follow-on findings, broken objects, copies, the phases, and large files."""

import time
from collections.abc import Set

import pytest

from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.rules.book import verifying
from buda_emu.support.checker import Diagnostic
from buda_emu.support.checker.checks import MAX_SEARCHES
from buda_emu.support.checker.result import run_steps
from netlist.rules import bases as b
from netlist.rules.cases import edited


def rules(text: str, arch: str | None = None) -> list[str]:
    return [item.rule for item in check_text(text, arch=arch).diagnostics]


def accepted(text: str) -> Netlist:
    netlist = check_text(text).netlist
    assert netlist is not None
    return netlist


def verified(netlist: Netlist, skip: Set[str] = frozenset()) -> list[Diagnostic]:
    return run_steps(verifying(netlist, skip=skip))


def test_an_accepted_netlist_has_no_findings() -> None:
    assert verified(accepted(b.MATMUL)) == []


def test_an_op_without_sizes_is_not_measured() -> None:
    # Its ublock, cores, tiles and the sizes around it would all be wrong as well.
    assert set(rules(edited(b.COPY, (("cp", "mblock: [2, 2], ublock: [1, 2], ", ""),)))) == {"V024"}


def test_a_queue_without_sizes_is_not_measured() -> None:
    assert set(rules(edited(b.COPY, (("o", "t: 1", "t: 0"), ("o", "grid_size: [1, 1]", "grid_size: [0, 0]"))))) == {
        "V012",
        "V014",
    }


def test_an_unknown_op_does_not_make_its_queue_settings_wrong() -> None:
    assert rules(edited(b.COPY, (("cp", "inputs: [a]", "inputs: [z]"),))) == ["V017"]


def test_independent_errors_are_all_found() -> None:
    edits = (
        ("x", "entries: 2", "entries: 0"),
        ("mm", "ublock_order: r", "ublock_order: c"),
        ("mm", "buf_size_mb: 2, ", ""),
        ("", "rd_ptr_local: $lp", "rd_ptr_local: ''"),
    )
    found = set(rules(edited(b.MATMUL, edits)))
    assert found == {"V012", "V025", "V118"}
    assert "V026" in rules(edited(b.MATMUL, (edits[1],)))


def test_skipped_objects_are_not_judged() -> None:
    netlist = check_text(edited(b.COPY, (("cp", "buf_size_mb: 2", "buf_size_mb: 3"),))).netlist
    assert netlist is not None
    assert [item.rule for item in verified(netlist)] == ["V080"]
    assert verified(netlist, skip={"cp"}) == []


def test_copies_on_several_devices_report_once() -> None:
    text = edited(b.ON_DEVICES, (("k0", "ublock: [1, 1]", "ublock: [3, 3]"),))
    assert [item.message for item in check_text(text).diagnostics if item.rule == "V040"] == [
        "op k0.0: ublock [3, 3] has 9 tiles, half of dest holds 8"
    ]


def test_a_definition_used_twice_alike_is_judged_once() -> None:
    text = edited(b.FUSED_INT, (("f1", "type: add", "type: exp"),))
    second = b.op(
        "f9",
        "fused_op",
        "a, b, s",
        in_df="Int8, Int8, Float32",
        out_df="Float32",
        grid_loc="[3, 3]",
        attributes="{fused_op_id: 9}",
        **b.INTEGERS,
    )
    twice = edited(text, (("", "programs:", f"{second}\nprograms:"),))
    assert rules(twice) == rules(text) == ["V141"]


def test_device_rules_wait_until_the_netlist_loads() -> None:
    outside = ("cp", "grid_loc: [0, 0]", "grid_loc: [10, 0]")
    assert rules(edited(b.COPY, (outside,))) == ["V150"]
    assert rules(edited(b.COPY, (outside, ("cp", "out_df: Float16_b", "out_df: UInt16")))) == ["V100"]


@pytest.mark.parametrize("arch", ["grayskull", "wormhole", "wormhole_b0", "blackhole"])
def test_the_base_matmul_is_valid_everywhere(arch: str) -> None:
    assert rules(b.MATMUL, arch) == []


def test_the_order_of_checks_does_not_depend_on_imports() -> None:
    # V137 explains what V139 would only notice; its file is imported later.
    assert rules(edited(b.FUSED_REDUCE, (("r2", "broadcast: {c: 4}", "broadcast: {r: 1}"),))) == ["V137"]


def _many(count: int) -> str:
    queues = [b.queue(f"q{i}", at=f"[{i % 6}, {0x10000000 + i * 0x10000:#x}]") for i in range(count)]
    ops = [b.op(f"n{i}", "nop", f"qq{i}", grid_loc=f"[{i // 8}, {i % 8}]") for i in range(count)]
    return b.netlist(queues, ops, b.settings(*(f"q{i}" for i in range(count))))


def test_only_the_first_findings_search_for_a_similar_name() -> None:
    found = [item for item in check_text(_many(80)).diagnostics if item.rule == "V017"]
    assert len(found) == 80
    assert sum(bool(item.hint) for item in found) == MAX_SEARCHES


def test_huge_sizes_take_no_time() -> None:
    huge = "2000000000"
    text = b.COPY
    for old, new in (
        ("t: 1,", f"t: {huge},"),
        ("mblock: [2, 2]", f"mblock: [{huge}, {huge}]"),
        ("buf_size_mb: 2", f"buf_size_mb: {huge}"),
        ("grid_loc: [0, 0], grid_size: [1, 1]", f"grid_loc: [0, 0], grid_size: [{huge}, {huge}]"),
    ):
        text = text.replace(old, new)
    start = time.process_time()
    assert {"V150", "V152", "V164"} <= set(rules(text))
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("edits", "rule"),
    [
        ((("", "\n  w: {", "\n  x: {"),), "V009"),  # op mm reads w, the program has settings for it
        ((("", "\n  b: {", "\n  x: {"),), "V009"),
        ((("", "\n  o: {input: mm", "\n  o: {input: nm"), ("", "\n  w: {", "\n  x: {")), "V009"),
        ((("", "input_count: 1\n", "input_count: 1\n    mm: {type: nop}\n"),), "V020"),
    ],
)
def test_what_is_missing_beside_a_name_that_stands_twice_is_not_told(
    edits: tuple[tuple[str, str, str], ...], rule: str
) -> None:
    text = edited(b.MATMUL, edits)
    found = rules(text)
    assert rule in found
    assert not {"V016", "V017", "V116", "V128"} & set(found)


def test_settings_of_an_op_that_reads_itself_are_of_no_queue() -> None:
    text = edited(b.COPY, (("", "          a: {", "          cp: {prologue: true, epilogue: false}\n          a: {"),))
    op = next(line.split(":")[0].strip() for line in text.split("\n") if "type: nop" in line)
    text = text.replace("          cp: {", f"          {op}: {{").replace("inputs: [a]", f"inputs: [{op}]")
    assert "V116" in rules(text)


def test_settings_of_a_queue_that_is_missing_beside_another_are_not_walked() -> None:
    text = edited(
        b.COPY, (("", "          a: {", "          gone: {rd_ptr_local: 0, rd_ptr_global: 0}\n          a: {"),)
    )
    assert rules(text) == ["V116"]
    line = next(line for line in text.split("\n") if line.startswith("  o: "))
    assert rules(text.replace(line, f"{line}\n{line}")) == ["V009"]


def test_beside_a_graph_that_stands_twice_the_other_is_not_missed() -> None:
    assert rules(edited(b.IN_TURN, (("", "\n  g1:", "\n  g0:"),))) == ["V020"]


@pytest.mark.parametrize(
    ("edit", "what", "hint"),
    [
        (
            ("mm", "m_k: 3, u_kt: 2", "m_k: 2, u_kt: 2"),
            "m_k * u_kt is 4, by the shapes of the inputs it is 6",
            "m_k: 3",
        ),
        (
            ("mm", "m_k: 3, u_kt: 2", "m_k: 3, u_kt: 4"),
            "m_k * u_kt is 12, by the shapes of the inputs it is 6",
            "u_kt: 2",
        ),
        (("mm", "m_k: 3, u_kt: 2", "m_k: 4, u_kt: 4"), "m_k * u_kt is 16,", "m_k: 6, u_kt: 1"),
    ],
)
def test_a_wrong_inner_dimension_is_told_as_what_it_should_be(edit: tuple[str, str, str], what: str, hint: str) -> None:
    (found,) = check_text(edited(b.MATMUL, (edit,)), arch="wormhole_b0").diagnostics
    assert found.rule == "V179"
    assert what in found.message
    assert "input 0 has [1, 2, 6] after its TMs" in found.message
    assert f"write `{hint}`" in found.hint


def test_inputs_that_do_not_fit_each_other_are_told_one_by_one() -> None:
    found = check_text(edited(b.MATMUL, (("w", "mblock: [3, 2]", "mblock: [4, 2]"), ("mm", "m_k: 3", "m_k: 2"))))
    assert [item.rule for item in found.diagnostics] == ["V179", "V179"]
    assert "input 1 has [1, 8, 4] after its TMs, matmul needs [1, 4, 4]" in found.diagnostics[1].message
