"""Mutants: a valid netlist, and one in which the checker finds one named rule and nothing else."""

import pytest

import buda_emu as be
from buda_emu.netlist.load import check_text
from buda_emu.netlist.rules.book import RULES
from buda_emu.spec.archs import ARCHS
from buda_emu.testing import broken
from buda_emu.testing.coverage.features import found_by_check
from buda_emu.testing.mutants import NOT_ALONE

QUICK = (
    "V001", "V003", "V004", "V007", "V008", "V010", "V012", "V013", "V014", "V015", "V016", "V017", "V022", "V023",
    "V024", "V025", "V028", "V032", "V110", "V113", "V115", "V128", "V180", "V183", "V184", "V185", "V271",
    "V005", "V059", "V107", "V200", "V210",
)  # fmt: skip
"""Found within a second each."""


def rules_found(text, rule):
    arch = next((name for name in ARCHS if name in f"{RULES[rule].wrong} {RULES[rule].right}".split()), None)
    return {item.rule for item in check_text(text, "broken.yaml", arch).diagnostics}


def assert_breaks_alone(rule, seed=0):
    made = broken(rule, seed=seed)
    before, after = rules_found(made.valid, rule), rules_found(made.text, rule)
    assert after - before == {rule}
    assert check_text(made.valid, arch=None).netlist is not None
    assert {item.rule for item in made.findings} == {rule}


@pytest.mark.parametrize("rule", QUICK)
def test_a_mutant_breaks_one_rule(rule):
    assert_breaks_alone(rule)


def is_broken_alone(rule):
    try:
        assert_breaks_alone(rule)
    except be.HostError:
        return False
    return True


@pytest.mark.slow
def test_nearly_every_other_rule_is_broken_alone():
    """Which not is printed (`-s`): a few take more luck than one seed has."""
    left = [rule for rule in found_by_check() if not is_broken_alone(rule)]
    print("\n".join(f"{rule}: {RULES[rule].summary}" for rule in left))
    assert len(found_by_check()) - len(left) >= 175


def test_what_no_edit_breaks_alone_is_said_with_the_reason():
    assert set(found_by_check()) > NOT_ALONE.keys()
    assert len(NOT_ALONE) <= 13
    with pytest.raises(be.HostError, match="rule V365: no edit breaks it alone: a queue would have to change its name"):
        broken("V365")


def test_a_mutant_hangs_on_its_seed_alone():
    assert broken("V012", seed=4).text == broken("V012", seed=4).text
    assert broken("V012", seed=4).text != broken("V012", seed=5).text


def test_what_cannot_be_broken_is_said():
    with pytest.raises(be.HostError, match="rule V9999: known are V000"):
        broken("V9999")
    with pytest.raises(be.HostError, match="rule V073 cannot be broken: Every graph is given a temporal graph"):
        broken("V073")
    with pytest.raises(be.HostError, match="rule V350 is one of pipes and streams, which `check --strict` makes"):
        broken("V350")
    with pytest.raises(be.HostError, match="none of 1 edits breaks V141 alone"):
        broken("V141", edits=1)
