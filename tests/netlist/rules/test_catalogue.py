"""The catalogue: complete, consistent, and honest about what is not checked."""

import re

import pytest

from buda_emu.netlist.rules import BOOK, NOT_CHECKED, ROUTED, RULES
from buda_emu.netlist.rules.registry import (
    STAGES,
    fused_check,
    graph_check,
    netlist_check,
    op_check,
    program_check,
    queue_check,
    rule,
)
from buda_emu.support.checker import Rule
from buda_emu.support.errors import InternalError
from netlist.rules.test_rules import CASES
from shared_files import ROOT

KINDS = (fused_check, graph_check, netlist_check, op_check, program_check, queue_check)
CHECKED = {check.rule.id for kind in KINDS for check in kind.all}

# Found while a value is read, by buda_emu.netlist.reader.
READING = {
    "V000", "V001", "V002", "V003", "V004", "V005", "V006", "V007", "V008", "V009", "V010", "V011", "V020",
    "V022", "V023", "V032", "V035", "V036", "V037", "V038", "V110", "V111", "V112", "V114", "V115", "V180",
    "V181", "V182", "V183", "V184", "V185", "V186", "V187", "V188", "V189", "V190", "V191",
}  # fmt: skip
# Found in sections that tests read: test-config and performance-check.
SECTIONS = {"V200", "V201", "V202", "V203", "V204", "V205", "V206", "V207", "V216", "V218", "V220"}
# Found in comments, by buda_emu.netlist.ignores.
COMMENTS = {"V210"}


def test_every_rule_is_checked_somewhere_or_says_that_it_is_not() -> None:
    assert set(RULES) == CHECKED | READING | SECTIONS | COMMENTS | ROUTED | NOT_CHECKED
    assert not CHECKED & READING
    assert not CHECKED & (NOT_CHECKED | ROUTED)
    for name in NOT_CHECKED:
        assert "not checked" in RULES[name].why


@pytest.mark.parametrize("name", sorted(CHECKED))
def test_a_checked_rule_has_a_case(name: str) -> None:
    """A parameter each, so that `-k RULE` of a new rule fails without one."""
    assert any(case.rule == name for case in CASES), f"{name} needs a Case in a cases_*.py of this folder"


def test_every_case_is_of_a_checked_rule() -> None:
    assert {case.rule for case in CASES} <= CHECKED


@pytest.mark.parametrize("name", sorted(NOT_CHECKED))
def test_what_is_not_checked_does_not_promise_a_finding(name: str) -> None:
    text = BOOK.explain_stage(RULES[name])
    assert text.endswith("It is not checked here.")
    assert "--strict" not in text


def test_every_rule_of_the_facts_is_there() -> None:
    """NETLIST 2 numbers its rules up to V164, with holes."""
    holes = {19, 52, 53, 54, 68, 69, 86, 87, 88, 89, 129, 143, 144, 145, 146, 147, 148, 149}
    assert {f"V{number:03}" for number in range(165) if number not in holes} <= set(RULES)


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_explains_itself(rule: Rule) -> None:
    assert re.fullmatch(r"V\d{3}", rule.id)
    assert RULES[rule.id] is rule
    assert rule.stage in STAGES
    assert len(rule.summary) < 90
    assert not rule.summary.endswith(".")
    assert rule.why.endswith(".")
    assert bool(rule.wrong) == bool(rule.right)
    assert rule.why in rule.explanation
    assert rule.wrong in rule.explanation
    assert rule.source in rule.explanation
    if rule.source.startswith("docs/"):  # a rule of this project
        assert (ROOT / rule.source).is_file()
    else:
        assert re.match(r"(NETLIST|OPS) \d", rule.source) or rule.id in ROUTED


def test_a_rule_says_who_states_it() -> None:
    with pytest.raises(InternalError, match=r"rule V999 does not say who states it: source=\.\.\."):
        rule("V999", "W", "a fault", "It is one.")


def test_severity_depends_on_the_stage() -> None:
    assert RULES["V040"].at() == RULES["V040"].at(strict=True) == "error"
    assert (RULES["V150"].at(), RULES["V150"].at(strict=True)) == ("warning", "error")
    assert RULES["V127"].at(strict=True) == "warning"
