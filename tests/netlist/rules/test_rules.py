"""Every rule with a check: broken alone, nearly broken, and the place it points at."""

import pytest

from buda_emu.netlist.load import check_text
from buda_emu.netlist.rules import RULES
from netlist.rules import bases
from netlist.rules.cases import Case, edited, underlined
from netlist.rules.cases_device import CASES as DEVICE
from netlist.rules.cases_formats import CASES as FORMATS
from netlist.rules.cases_fused import CASES as FUSED
from netlist.rules.cases_habits import CASES as HABITS
from netlist.rules.cases_ops import CASES as OPS
from netlist.rules.cases_programs import CASES as PROGRAMS
from netlist.rules.cases_queues import CASES as QUEUES
from netlist.rules.cases_tiles import CASES as TILES

CASES: tuple[Case, ...] = (*QUEUES, *OPS, *TILES, *FORMATS, *PROGRAMS, *FUSED, *DEVICE, *HABITS)
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
