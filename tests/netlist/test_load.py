import gc
from pathlib import Path

import pytest

from buda_emu.netlist.load import check, check_text, load
from buda_emu.support.checker.render import render
from buda_emu.support.errors import NetlistError
from netlist.netlist_texts import DEVICES, FUSED, NETLIST, edited, found, rules


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.yaml"
    path.write_text(NETLIST, encoding="utf-8")
    return path


def test_a_valid_netlist_is_loaded(net: Path) -> None:
    netlist = load(net)
    assert (netlist.path, netlist.arch_name, netlist.arch.name) == (str(net), "wormhole_b0", "wormhole_b0")
    assert list(netlist.queues) == ["src", "dst"]
    assert list(netlist.ops) == ["copy"]
    assert netlist.program_order == ("run",)
    assert [group.graphs for group in netlist.temporal_graphs] == [("fwd",)]
    assert netlist.diagnostics == ()


def test_the_architecture_is_selected(net: Path) -> None:
    assert load(net, "blackhole").arch_name == "blackhole"
    assert load(str(net), "BLACKHOLE").arch_name == "blackhole"


def test_load_raises_every_finding(net: Path) -> None:
    net.write_text(NETLIST.replace("entries: 2", "entries: two"), encoding="utf-8")
    with pytest.raises(NetlistError) as caught:
        load(net)
    assert [(item.rule, item.line) for item in caught.value.diagnostics] == [("V180", 3), ("V180", 4)]
    assert str(caught.value).startswith(f"{net}:3:44: error[V180]: queue src: entries needs an integer, not 'two'\n")
    assert str(caught.value).endswith("\n2 errors; `buda-emu explain V180` tells more")


def test_load_does_not_give_another_architecture_than_asked_for(net: Path) -> None:
    net.write_text(edited(DEVICES, "devices: {arch: grayskull}\n"), encoding="utf-8")
    assert load(net).arch_name == "grayskull"
    assert check(net, "blackhole").ok  # the reference goes on
    with pytest.raises(NetlistError, match=r"error\[V002\]: devices: the netlist is for grayskull only"):
        load(net, "blackhole")


def test_files_that_cannot_be_read_are_findings(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.yaml"):
        result = check(path)
        assert not result.ok
        assert [(item.rule, item.path) for item in result.diagnostics] == [("V000", str(path))]


def test_an_unreadable_document_is_one_finding() -> None:
    assert rules("a: [1") == ["V000"]
    assert rules("") == ["V000"]


def test_rules_of_the_device_are_warnings_unless_strict() -> None:
    text = edited("grid_loc: [0, 0]", "grid_loc: [40, 40]")
    result = check_text(text)
    assert result.ok
    assert result.netlist is not None
    assert [(item.rule, item.severity) for item in result.netlist.diagnostics] == [("V150", "warning")]
    strict = check_text(text, strict=True)
    assert not strict.ok
    assert [(item.rule, item.severity) for item in strict.diagnostics] == [("V150", "error")]


def test_findings_are_sorted_by_place_and_hold_their_line() -> None:
    text = NETLIST.replace("buf_size_mb: 2", "buf_size_mb: x").replace("entries: 2", "entries: x")
    findings = check_text(text).diagnostics
    assert [item.line for item in findings] == [3, 4, 9]
    assert all(item.source_line == text.splitlines()[item.line - 1] for item in findings)


def test_lines_are_counted_as_yaml_counts_them() -> None:
    text = "# form\x0cfeed is not a comment end\n".replace("\x0c", "\u2028# ") + edited("entries: 2", "entries: x")
    (finding,) = found(text)
    assert finding.text == "x"


def test_an_object_that_could_not_be_read_is_judged_no_further() -> None:
    # its other fields would break rules too
    assert rules(edited("math_fidelity: HiFi3", "math_fidelity: HiFi9, ublock_order: q")) == ["V025"]
    assert rules(edited("type: queue, entries: 2", "type: qeue, entries: x")) == ["V180"]
    assert rules(
        edited("type: nop", "type: fused_op, attributes: {fused_op_id: 0}") + FUSED.replace("type: add", "foo: 1")
    ) == ["V190"]


def test_every_missing_field_is_named() -> None:
    text = edited("out_df: Float16_b, intermed_df: Float16_b, ", "")
    assert [item.rule for item in found(text)] == ["V025", "V025"]


def test_the_collector_is_left_as_it_was() -> None:
    check_text(NETLIST)
    assert gc.isenabled()
    gc.disable()
    try:
        check_text(NETLIST)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_equal_netlists_are_equal_wherever_they_stand() -> None:
    first, second = check_text(NETLIST).netlist, check_text("\n\n" + NETLIST).netlist
    assert first is not None
    assert second is not None
    assert first.queues == second.queues
    assert first.ops == second.ops
    assert first.programs == second.programs
    assert hash(first.ops["copy"]) == hash(second.ops["copy"])
    assert first.queues["src"] != first.queues["dst"]
    assert "entries=2" in repr(first.queues["src"])


def test_real_findings_render() -> None:
    text = render(check_text(edited("type: queue", "type: qeue"), "net.yaml").diagnostics)
    assert "error[V013]: queue src: unknown type 'qeue'" in text
    assert "^^^^" in text
