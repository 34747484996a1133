"""Every rule with a check: broken alone, nearly broken, and the place it points at."""

import pytest

from buda_emu.netlist.load import check_text
from buda_emu.netlist.rules import RULES
from netlist.rules import bases
from netlist.rules.cases import Case, edited, underlined
from netlist.rules.cases_device import CASES as DEVICE
from netlist.rules.cases_flow import CASES as FLOW
from netlist.rules.cases_formats import CASES as FORMATS
from netlist.rules.cases_fused import CASES as FUSED
from netlist.rules.cases_habits import CASES as HABITS
from netlist.rules.cases_ops import CASES as OPS
from netlist.rules.cases_programs import CASES as PROGRAMS
from netlist.rules.cases_queues import CASES as QUEUES
from netlist.rules.cases_tiles import CASES as TILES

CASES: tuple[Case, ...] = (*QUEUES, *OPS, *TILES, *FORMATS, *PROGRAMS, *FUSED, *DEVICE, *HABITS, *FLOW)
LOADED = [case for case in CASES if RULES[case.rule].at() == "error"]
ON_DEVICE = [case for case in CASES if case not in LOADED]


def name(case: Case) -> str:
    """The rule and what the case changes."""
    return f"{case.rule}-{case.broken[-1][2] or case.broken[-1][1]}"[:60]


@pytest.mark.tiny
@pytest.mark.parametrize("base", bases.ALL)
def test_a_base_is_clean(base: str) -> None:
    assert check_text(bases.ALL[base]).diagnostics == ()


@pytest.mark.parametrize("case", LOADED, ids=name)
def test_a_broken_rule_is_an_error_and_the_only_one(case: Case) -> None:
    found = case.findings(case.broken)
    assert {item.rule for item in found if item.severity == "error"} == {case.rule}
    assert case.where in {underlined(item) for item in found}
    assert not check_text(edited(case.base, case.broken), arch=case.arch).ok


@pytest.mark.parametrize("case", ON_DEVICE, ids=name)
def test_a_broken_device_rule_is_a_warning_and_the_only_one(case: Case) -> None:
    found = case.findings(case.broken)
    assert {(item.rule, item.severity) for item in found} == {(case.rule, "warning")}
    assert case.where in {underlined(item) for item in found}


@pytest.mark.parametrize("case", [case for case in CASES if case.near], ids=name)
def test_a_near_miss_is_none(case: Case) -> None:
    found = case.findings(case.near)
    assert [item for item in found if item.severity == "error" or item.rule == case.rule] == []


@pytest.mark.parametrize("case", [case for case in ON_DEVICE if RULES[case.rule].stage != "W"], ids=name)
def test_strict_makes_device_rules_errors(case: Case) -> None:
    result = check_text(edited(case.base, case.broken), arch=case.arch, strict=True)
    assert not result.ok
    assert {item.severity for item in result.diagnostics} == {"error"}


def test_messages_name_the_object_and_hints_are_no_messages() -> None:
    for case in CASES:
        for item in case.findings(case.broken):
            assert item.message
            assert item.message[0].islower() or item.rule == "V170"
            assert not item.message.endswith(".")
            assert item.hint != item.message


@pytest.mark.parametrize(("blocks", "rules"), [("[2, 1]", []), ("[1, 2]", []), ("[2, 2]", ["V141"])])
def test_what_scales_dest_has_two_tiles_at_most(blocks: str, rules: list[str]) -> None:
    text = bases.FUSED_INT.replace("intermediates: 1", "intermediates: 0").replace(
        "ublock: [1, 1]", f"ublock: {blocks}"
    )
    text = text.replace("output: intermed0, mblock", "output: dest, mblock")
    text = text.replace("[intermed0, input2], pop: [intermed0]", "[input2, dest]")
    assert [item.rule for item in check_text(text, "net.yaml", "wormhole_b0").diagnostics] == rules


@pytest.mark.tiny
def test_grayskull_keeps_sums_of_several_steps_only() -> None:
    """It has no acc_df Float32 at all (V090); V092 is told beside that where m_k is above 1."""
    text = edited(bases.MATMUL, (("mm", "acc_df: Float16_b", "acc_df: Float32"),))
    once = edited(
        text,
        (
            ("mm", "m_k: 3, u_kt: 2", "m_k: 1, u_kt: 6"),
            ("w", "mblock: [3, 2], ublock: [2, 2]", "mblock: [1, 2], ublock: [6, 2]"),
        ),
    )
    found = [{item.rule for item in check_text(source, "net.yaml", "grayskull").diagnostics} for source in (text, once)]
    assert found == [{"V090", "V092"}, {"V090"}]


def test_an_address_that_is_aligned_only_as_a_hexadecimal_number_lacks_its_prefix() -> None:
    text = bases.COPY.replace("0x10100000", "11200020").replace("0x10f00000", "1048576")
    hints = {item.rule: item.hint for item in check_text(text).diagnostics}
    assert hints == {"V288": "the next one is 0xaae620", "V217": "did you mean 0x11200020?"}


def test_an_address_of_hexadecimal_digits_gets_its_prefix() -> None:
    (finding,) = check_text(bases.COPY.replace("0x10100000", "1a000000")).diagnostics
    assert (finding.rule, finding.hint) == ("V180", "write 0x1a000000")
    assert finding.fix is not None
    assert finding.fix.safe
