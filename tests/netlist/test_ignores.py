"""Comments that silence findings."""

import pytest

from buda_emu.netlist.load import check_text
from netlist.rules.cases import Case, edited
from netlist.rules.cases_habits import CASES as HABITS
from netlist.rules.test_rules import LOADED, ON_DEVICE, name

SMALL = next(case for case in HABITS if case.rule == "V208")
TEXT = edited(SMALL.base, SMALL.broken)
(FINDING,) = check_text(TEXT, arch=SMALL.arch).diagnostics


def found(text: str, case: Case = SMALL, **options: bool) -> list[tuple[str, str]]:
    return [(item.rule, item.message) for item in check_text(text, "n.yaml", case.arch, **options).diagnostics]


def with_comment(text: str, line: int, comment: str, alone: bool = False) -> str:
    """A comment after a line, or alone above it."""
    lines = text.split("\n")
    if alone:
        lines.insert(line - 1, f"    {comment}")
    else:
        lines[line - 1] += f"  {comment}"
    return "\n".join(lines)


@pytest.mark.parametrize("case", ON_DEVICE, ids=name)
@pytest.mark.parametrize("strict", [False, True])
def test_every_rule_that_refuses_nothing_can_be_ignored_where_it_is_broken(case: Case, strict: bool) -> None:
    text = edited(case.base, case.broken)
    lines = {item.line for item in check_text(text, arch=case.arch).diagnostics}
    commented = text
    for line in sorted(lines, reverse=True):
        commented = with_comment(commented, line, f"# buda: ignore[{case.rule}]", alone=bool(line % 2))
    if 0 not in lines:
        assert found(commented, case, strict=strict) == []
        assert check_text(commented, arch=case.arch, strict=strict).ok
    assert found(f"# buda: ignore-file[{case.rule}]\n{text}", case, strict=strict) == []


@pytest.mark.parametrize("case", LOADED[::7], ids=name)
def test_what_refuses_a_netlist_stays(case: Case) -> None:
    text = f"# buda: ignore-file[{case.rule}]\n{edited(case.base, case.broken)}"
    rules = {rule for rule, _ in found(text, case)}
    assert case.rule in rules
    assert ("V210" in rules) is (case.rule != "V000")


def test_several_rules_and_other_comments_between() -> None:
    assert found(with_comment(TEXT, FINDING.line, "# why: see below   # buda: ignore[V208 , V154]")) == [
        ("V210", f"the comment ignores V154, which is not found on line {FINDING.line}")
    ]
    above = with_comment(TEXT, FINDING.line, "# another comment", alone=True)
    assert found(with_comment(above, FINDING.line, "# buda: ignore[V208]", alone=True)) == []


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# buda: ignore[V209]", "the comment ignores V209, which is not found on line"),
        ("# buda: ignore-file[V209]", "the comment ignores V209, which is not found in the document"),
        ("# buda: ignore[V2099]", "the comment ignores 'V2099', which is not a rule"),
        ("# buda: ignore[V041]", "the comment ignores V041, which cannot be ignored"),
        ("# buda: ignore[V210]", "the comment ignores V210, which cannot be ignored"),
        ("# buda: ignore", "the comment names no rule"),
        ("# buda: ignore[]", "the comment names no rule"),
    ],
)
def test_comments_of_no_use_are_said(comment: str, said: str) -> None:
    rules = found(with_comment(TEXT, FINDING.line, comment))
    assert [rule for rule, _ in rules] == ["V208", "V210"]
    assert rules[1][1].startswith(said)


def test_the_finding_about_a_comment_points_at_it() -> None:
    diagnostics = check_text(with_comment(TEXT, 1, "# buda: ignore[V20]"), arch=SMALL.arch).diagnostics
    item = next(item for item in diagnostics if item.rule == "V210")
    assert item.source_line[item.column - 1 : item.end_column - 1] == "# buda: ignore[V20]"


@pytest.mark.parametrize("text", ["x: '#buda: ignore[V208]'", "# budda: ignore[V208]", "# buda: ignored[V208]"])
def test_what_is_no_such_comment(text: str) -> None:
    assert [rule for rule, _ in found(f"{TEXT}\n{text}\n")] == ["V208"]


def test_of_a_netlist_with_errors_nothing_is_said_to_be_superfluous() -> None:
    """Rules may not have been looked at."""
    broken = TEXT.replace("type: queue", "type: qeue", 1)
    assert found(f"# buda: ignore-file[V154]\n{broken}") == found(broken)


def test_a_netlist_from_the_cache_is_ignored_alike(tmp_path) -> None:
    from buda_emu.netlist.load import check

    path = tmp_path / "n.yaml"
    path.write_text(with_comment(TEXT, FINDING.line, "# buda: ignore[V208]"))
    for _ in range(2):
        assert check(path, SMALL.arch).diagnostics == ()
