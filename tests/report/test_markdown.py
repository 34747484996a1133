"""report.md."""

import re
from dataclasses import replace

import pytest

from buda_emu.report.test_report import markdown
from report.results import finished_run


def test_it_holds_verdicts_reasons_and_commands():
    run = finished_run()
    page = markdown(run, run.cases)
    assert page.startswith("# buda-emu test: 2 of 6 netlists passed\n")
    for case in run.cases:
        assert case.command in page
    assert "| `lossy.yaml` | failed | 1 | o: Exact, elements 0..127: 1" in page
    assert "loop count 0 is 0" in page


def test_tables_have_as_many_cells_in_every_row():
    page = markdown(finished_run(), finished_run().cases)
    width = None
    for line in page.splitlines():
        if not line.startswith("|"):
            width = None
            continue
        cells = len(re.split(r"(?<!\\)\|", line))
        assert width in (None, cells), line
        width = cells


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>.yaml",
        "![x](evil.png)[ok](javascript:alert(1)).yaml",
        "\\[x](http://e).yaml",
        "a\x1b[31mred\u202e.yaml",
        "a\n## b.yaml",
    ],
)
def test_names_are_shown_and_not_interpreted(name):
    run = finished_run()
    case = replace(
        run.cases[0], netlist=name, message="", doubts=(f"{name} is doubtful",), command=f"buda-emu test {name}"
    )
    page = markdown(replace(run, cases=(case,)), [case])
    outside_of_code = re.sub(r"```.*?```|`[^`\n]*`", "", page, flags=re.DOTALL)
    assert "<" not in outside_of_code
    assert not re.search(r"(?<!\\)(\\\\)*\[", outside_of_code)
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert [line for line in page.splitlines() if line.startswith("## b")] == []


def test_no_section_without_details():
    assert "## " not in markdown(finished_run(), [])
