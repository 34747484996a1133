"""The verdict on every netlist and mutant of the corpus is the reference parser's, for its reason."""

from collections import Counter
from pathlib import Path

import pytest

from buda_emu.netlist.load import NetlistResult, check
from buda_emu.netlist.rules import RULES

# Words in the mutants' rule column for what NETLIST 2 has no number for, and the rules that say it here.
NAMED = {
    "INT": "V180", "BOOL": "V181", "FLOAT": "V182", "LIST": "V183", "MAP": "V184", "ALLOC": "V185", "KB": "V186",
    "RELU": "V187", "SFPUTHR": "V188", "SRND": "V189", "FFIELD": "V190", "FATTR": "V191", "ORDER": "V017",
    "LOC": "V015", "DAG": "V170", "MMBIAS": "V171", "TOPK": "V172", "SUBN": "V174", "SUBINPUT": "V175", "IMIDX": "V176",
    "DUPQS": "V177", "V109G": "V109", "queue name HOST": "V170", "op same as queue": "V170",
}  # fmt: skip
# NETLIST 11.1 A4 is a rule of its own; the column names the one whose check fails over the missing operand.
FLOW = {id for id in RULES if "V270" <= id <= "V293"}
OTHER_REASON = {"345_bin-1-in_nop.yaml": "V171"}


def table(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def error_rules(result: NetlistResult) -> set[str]:
    return {item.rule for item in result.diagnostics if item.severity == "error"}


def test_every_real_netlist_has_the_verdict_of_the_reference(corpus: Path) -> None:
    rows = table(corpus / "verdicts.tsv")
    assert len(rows) == 353
    wrong = {}
    for name, verdict, arch, *_ in rows:
        result = check(corpus / "netlists" / name, arch or None)
        if result.ok != (verdict == "accept"):
            wrong[name] = (verdict, error_rules(result))
    assert wrong == {}


# What programs of public netlists do in vain, or otherwise than most likely meant; docs/netlists/check.md says of each
# why.
FLAGGED = {"V278": 2, "V279": 35, "V280": 3, "V281": 1, "V286": 12, "V290": 2, "V293": 1}


def test_the_linter_of_programs_finds_nothing_in_public_netlists_but_what_is_told(corpus: Path) -> None:
    found: Counter[str] = Counter()
    for name, verdict, arch, *_ in table(corpus / "verdicts.tsv"):
        if verdict == "accept":
            rules = {item.rule for item in check(corpus / "netlists" / name, arch or None).diagnostics}
            found.update(rule for rule in rules if rule in FLOW)
    assert found == FLAGGED


def test_every_mutant_has_the_verdict_of_the_reference_for_its_reason(corpus: Path) -> None:
    rows = table(corpus / "mutants" / "verdicts.tsv")
    assert len(rows) == 634
    wrong = {}
    for name, verdict, arch, rule in rows:
        result = check(corpus / "mutants" / name, arch)
        rules = error_rules(result)
        expected = OTHER_REASON.get(name, NAMED.get(rule, rule))
        if result.ok != (verdict == "accept") or (verdict == "reject" and expected not in rules):
            wrong[name] = (verdict, rule, rules)
    assert wrong == {}


@pytest.mark.parametrize("share", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_findings_lie_within_the_file(corpus: Path, share: int) -> None:
    """One of five always, all with --slow."""
    for name, *_ in table(corpus / "mutants" / "verdicts.tsv")[::share]:
        path = corpus / "mutants" / name
        lines = path.read_text(encoding="utf-8").split("\n")
        for item in check(path).diagnostics:
            assert item.source_line == lines[item.line - 1], (name, item)
            assert 1 <= item.column <= item.end_column, (name, item)


def test_strict_adds_errors_and_takes_none_away(corpus: Path) -> None:
    for name, _, arch, _ in table(corpus / "mutants" / "verdicts.tsv")[::10]:
        path = corpus / "mutants" / name
        assert error_rules(check(path, arch)) <= error_rules(check(path, arch, strict=True)), name
