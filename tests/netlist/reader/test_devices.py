import pytest

from buda_emu.netlist.load import check_text
from netlist.netlist_texts import DEVICES, NETLIST, edited, found, rules


def with_arch(arch: str) -> str:
    return edited(DEVICES, f"devices: {{arch: {arch}}}\n")


@pytest.mark.parametrize(
    ("arch", "requested", "chosen"),
    [
        ("grayskull", None, "grayskull"),
        ("Wormhole_B0", None, "wormhole_b0"),
        ("[grayskull, WORMHOLE_B0]", None, "wormhole_b0"),
        ("[blackhole, grayskull]", None, "blackhole"),
        ("[blackhole, grayskull]", "grayskull", "grayskull"),
        ("[blackhole, grayskull]", "GRAYSKULL", "grayskull"),
        ("jawbridge", None, "jawbridge"),
    ],
)
def test_the_architecture_is_chosen(arch: str, requested: str | None, chosen: str) -> None:
    netlist = check_text(with_arch(arch), arch=requested).netlist
    assert netlist is not None
    assert netlist.arch_name == chosen


def test_the_listed_architectures_are_kept() -> None:
    netlist = check_text(with_arch("[Grayskull, blackhole]")).netlist
    assert netlist is not None
    assert netlist.archs == ("grayskull", "blackhole")


@pytest.mark.parametrize(
    "arch", ["wormhole_b", "invalid", "[]", "[grayskull, nope]", "[grayskull, [wormhole]]", "", "{a: b}"]
)
def test_an_unknown_architecture_is_refused(arch: str) -> None:
    assert rules(with_arch(arch)) == ["V002"]


def test_a_near_architecture_is_suggested() -> None:
    (finding,) = found(with_arch("wormhole_bo"))
    assert finding.text == "wormhole_bo"
    assert finding.diagnostic.hint == "did you mean 'wormhole_b0'?"


def test_a_requested_architecture_must_be_in_the_list() -> None:
    (finding,) = found(with_arch("[grayskull, blackhole]"), "wormhole_b0")
    assert (finding.rule, finding.text) == ("V002", "[grayskull, blackhole]")


def test_a_single_architecture_cannot_be_overruled() -> None:
    result = check_text(with_arch("grayskull"), arch="wormhole_b0")
    assert result.netlist is not None
    assert result.netlist.arch_name == "grayskull"
    (warning,) = result.diagnostics
    assert (warning.rule, warning.severity) == ("V002", "warning")


def test_another_key_is_refused() -> None:
    (finding,) = found(edited("{arch:", "{archs: 1, arch:"))
    assert (finding.rule, finding.text, finding.diagnostic.hint) == ("V001", "archs", "did you mean 'arch'?")


def test_the_section_may_not_be_missing() -> None:
    assert rules(edited(DEVICES, "")) == ["V002"]
    assert rules(edited(DEVICES, "devices: {}\n")) == ["V002"]
    assert rules(edited(DEVICES, "devices: grayskull\n")) == ["V002"]


def test_other_sections_are_read_even_without_an_architecture() -> None:
    assert rules(edited(DEVICES, "", NETLIST.replace("entries: 2", "entries: x"))) == ["V002", "V180", "V180"]
