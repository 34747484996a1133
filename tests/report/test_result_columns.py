"""A column that is added in one line stands in every form of a result."""

import csv
import io
import json

import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from buda_emu.report.machine_readable.json_form import as_json
from buda_emu.report.machine_readable.schema import columns_document, schema
from buda_emu.report.pages.engine import page_table
from buda_emu.report.sweep import POINTS
from buda_emu.report.terminal.case_columns import OPS, OUTPUTS
from buda_emu.report.terminal.testing import outputs_table
from buda_emu.report.terminal.text import number
from buda_emu.report.test_report import markdown
from buda_emu.support.columns import Column, Columns, csv_text, figure
from report.results import finished_run

NETLIST = "netlists/matmul.yaml"


def add(monkeypatch, columns, column):
    """Declare a further column."""
    monkeypatch.setattr(columns, "_columns", (*columns.listed, column))


def test_a_column_of_outputs_is_seen_in_all_forms(monkeypatch):
    key = "column_of_this_test"  # which no table has
    title = "column of this test"
    add(monkeypatch, OUTPUTS, figure(key, title, lambda output: 7000 + output.figures.tiles, number))
    run = finished_run()
    case = next(case for case in run.cases if case.outputs)
    wanted = 7000 + case.outputs[0].figures.tiles
    shown = number(wanted)
    assert title in outputs_table(case)
    assert shown in outputs_table(case)
    assert OUTPUTS.row(case.outputs[0])[key] == wanted
    assert csv_text(map(OUTPUTS.row, case.outputs)).splitlines()[0].endswith(f",{key}")
    assert as_json(run)["cases"][run.cases.index(case)]["outputs"][0][key] == wanted
    assert key in schema()["$defs"]["OutputResult"]["required"]
    assert title in markdown(run, run.cases)
    table = page_table(OUTPUTS, case.outputs)
    assert [column.title for column in table.columns][-1] == title
    assert table.rows[0].cells[-1].text == shown


def test_a_column_of_a_sweep_is_seen_in_all_forms(monkeypatch, root, tmp_path, capsys):
    add(monkeypatch, POINTS, figure("kilocycles", "kilocycles", lambda point: (point.cycles or 0) / 1e3, number))
    files = [str(tmp_path / name) for name in ("out.csv", "out.json")]
    arguments = ["perf", str(root / NETLIST), "--sweep", "clock=1000,1200"]
    assert main([*arguments, "--csv", files[0], "--json", files[1], "--report", str(tmp_path)]) == 0
    assert "kilocycles" in capsys.readouterr().out
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    points = json.loads((tmp_path / "out.json").read_text())["points"]
    assert [float(row["kilocycles"]) for row in rows] == [point["kilocycles"] for point in points]
    assert points[0]["kilocycles"] == points[0]["cycles"] / 1e3
    assert ">kilocycles" in (tmp_path / "sweep.html").read_text()
    assert main(["schema", "perf-sweep"]) == 0
    assert "kilocycles" in json.loads(capsys.readouterr().out)["$defs"]["Point"]["required"]


def test_rows_of_an_api_have_the_column(monkeypatch, root):
    add(monkeypatch, OPS, Column("initial", str, lambda op: op.name[0]))
    tested = be.test(root / NETLIST, precision="format", per_op=True, threads=1)
    assert [row["initial"] for row in tested.op_rows] == [row["op"][0] for row in tested.op_rows]
    assert tested.to_json()["cases"][0]["ops"][0]["initial"] == tested.op_rows[0]["initial"]


def test_columns_of_a_record_inside_another():
    inner = Columns[int](Column("twice", int, lambda value: 2 * value))
    outer = Columns[tuple[int, str]](
        *inner.within(tuple[int, str], lambda pair: pair[0]),
        Column("word", str, lambda pair: pair[1]),
        Column("rest", int | None, lambda _pair: None, optional=True),
        Column("parts", [inner], lambda pair: range(pair[0])),
    )
    assert outer.as_json((2, "a")) == {"twice": 4, "word": "a", "parts": [{"twice": 0}, {"twice": 2}]}
    form = columns_document("pairs", outer)
    assert form["required"] == ["schema_version", "twice", "word", "parts"]
    assert form["properties"]["parts"]["items"]["properties"] == {"twice": {"type": "integer"}}


@pytest.mark.parametrize("view", ["rows", "terminal", "markdown", "page", "json"])
def test_a_view_leaves_columns_out(view):
    columns = Columns[int](Column("one", int, lambda value: value, title="one", views=(view,)))
    seen = [name for name in ("rows", "terminal", "markdown", "page", "json") if columns.seen_in(name)]
    assert seen == [view]
    assert columns.seen_in(view, without=("one",)) == []
