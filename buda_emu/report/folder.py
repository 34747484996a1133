"""The report folder of a test: report.html, report.md and report.json."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from buda_emu.checker.text import plural
from buda_emu.errors import HostError
from buda_emu.files import write_file
from buda_emu.image.opened import check_file
from buda_emu.netlist.model import Netlist
from buda_emu.report.machine_readable.json_form import as_json
from buda_emu.report.markdown import markdown
from buda_emu.report.pages.tables import severity
from buda_emu.report.pages.testing import Picture, html_page
from buda_emu.report.pictures.charts import op_heat
from buda_emu.report.pictures.grid_svg import grid_svg
from buda_emu.report.terminal.text import correlation, number
from buda_emu.verify.result import CaseResult, TestRun

MOST_DETAILED: Final = 40
"""Netlists with a picture in the page and details in Markdown: to draw one its netlist is read again."""
MOST_PANELS: Final = 12
"""Chips and epochs in a picture of the page; one with more shows the epoch of the first bad op, else the first ones."""


def write_report(run: TestRun, directory: Path) -> None:
    """Write the three files; the directory is made where it is missing. Raises HostError when that fails."""
    detailed = _detailed(run.cases)
    pictures = {case.netlist: _picture(case, f"-{index}") for index, case in enumerate(detailed)}
    texts = {
        "report.html": html_page(run, pictures),
        "report.md": markdown(run, detailed),
        "report.json": json.dumps(as_json(run), indent=1, ensure_ascii=False) + "\n",
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_file(directory / name, lambda stream, text=text: stream.write(text.encode("utf-8", "replace")))
    except OSError as error:
        raise HostError(f"report: cannot write {error.filename}: {error.strerror}") from None


def _detailed(cases: Sequence[CaseResult]) -> list[CaseResult]:
    """The worst first, in the order of the run."""
    return sorted(cases, key=lambda case: severity(case.status))[:MOST_DETAILED]


def _picture(case: CaseResult, mark: str) -> Picture | None:
    """The netlist on its grid, ops reddened by their error. None for a netlist that was not run."""
    if not case.outputs and not case.ops:
        return None
    try:
        netlist = check_file(case.netlist, case.arch).netlist
    except HostError as error:
        return Picture("", f"no picture: {error}")
    if netlist is None:
        return Picture("", "no picture: the netlist has changed since it was tested and is no longer valid")
    notes = {
        op.name: f"PCC {correlation(op.pcc)}, max error {number(op.max_error)}, max ulp {number(op.max_ulp)}"
        for op in case.ops
    }
    epochs, note = _epochs(netlist, case)
    return Picture(grid_svg(netlist, epochs=epochs, heat=op_heat(case.ops), notes=notes, mark=mark), note)


def _epochs(netlist: Netlist, case: CaseResult) -> tuple[list[int] | None, str]:
    """Which epochs to draw (None: all), and what to say of it."""
    temporal = netlist.temporal_graphs
    if len(netlist.graphs) <= MOST_PANELS:
        return None, ""
    note = f"this part of {plural(len(netlist.graphs), 'graph')}; the whole: buda-emu graph {case.netlist} -o FILE.svg"
    if case.first_bad is not None:
        graph = case.ops[case.first_bad.index].graph
        found = [item.id for item in temporal if graph in item.graphs]
        if found:
            return found, f"The epoch of op {case.first_bad.op}, {note}"
    shown: list[int] = []
    panels = 0
    for item in temporal:
        panels += len(item.graphs)
        if panels > MOST_PANELS and shown:
            break
        shown.append(item.id)
    return shown, f"The first epochs, {note}"
