"""report.md."""

import re

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


def test_no_section_without_details():
    assert "## " not in markdown(finished_run(), [])
