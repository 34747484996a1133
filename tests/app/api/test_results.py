"""`be.test`, `be.numerics`, `be.perf`: rows, short words for them, and what a notebook shows."""

import json
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import buda_emu as be
from shared_files import ROOT

SOFTMAX = ROOT / "netlists" / "softmax.yaml"
CHIPS = ROOT / "netlists" / "two_chips.yaml"


@pytest.fixture(scope="module")
def tested():
    return be.test([CHIPS, str(ROOT / "netlists" / "matmul.yaml")], precision="format", per_op=True, threads=1)


@pytest.fixture(scope="module")
def explained():
    return be.numerics(CHIPS, threads=1)


def plain(rows):
    """Columns are alike, and values are what a data frame takes."""
    assert rows
    assert len({tuple(row) for row in rows}) == 1
    for row in rows:
        for value in row.values():
            assert value is None or isinstance(value, str | int | float | bool | tuple), value
    return rows


def test_rows_of_a_test(tested):
    assert tested.passed
    assert [row["netlist"] for row in plain(tested.rows)] == [str(CHIPS), str(ROOT / "netlists" / "matmul.yaml")]
    assert [row["status"] for row in tested.rows] == ["passed", "passed"]
    (output, _) = plain(tested.output_rows)
    assert (output["output"], output["passed"], output["bad_tiles"]) == ("out", True, 0)
    assert {row["op"] for row in plain(tested.op_rows)} >= {"product", "activate"}
    assert repr(tested).startswith("<Tested 2 netlists: 2 passed, ")
    assert tested.to_json()["schema_version"] == 1
    json.dumps(tested.to_json(), allow_nan=False)


def test_what_goes_wrong_is_a_status(tmp_path):
    (tmp_path / "bad.yaml").write_text(CHIPS.read_text().replace("type: queue", "type: qeue", 1))
    told = []
    found = be.test(tmp_path, progress=told.append)
    assert not found.passed
    assert found.rows[0]["status"] == "rejected"
    assert "qeue" in found.rows[0]["reason"]
    assert [case.status for case in told] == ["rejected"]
    assert "1 rejected" in repr(found)
    assert found.output_rows == found.op_rows == []


def test_a_loaded_netlist_is_read_again_for_its_architecture():
    netlist = be.load(CHIPS, arch="wormhole_b0")
    (row,) = be.test(netlist, precision="format", threads=1).rows
    assert (row["status"], row["arch"]) == ("passed", "wormhole_b0")


def test_in_processes_the_result_is_the_same(tested):
    again = be.test([CHIPS, ROOT / "netlists" / "matmul.yaml"], precision="format", per_op=True, threads=1, workers=2)
    one, other = (
        [{name: value for name, value in row.items() if name != "seconds"} for row in found.rows]
        for found in (tested, again)
    )
    assert one == other


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: be.test([]), "test: no netlist is given"),
        (lambda: be.test(iter(())), "test: no netlist is given"),
        (lambda: be.faults(CHIPS, 0), "a budget of 0 faults injects none"),
        (lambda: be.compile_programs({}), "compile_programs: no program is given"),
    ],
)
def test_nothing_is_never_a_result(call, words):
    with pytest.raises(be.HostError, match=words):
        call()


@pytest.mark.parametrize("options", [{"workers": 0}])
def test_wrong_callers_are_told(options):
    with pytest.raises(be.HostError):
        be.test(CHIPS, **options)
    with pytest.raises(be.HostError, match="no such file"):
        be.test("nowhere.yaml")


def test_rows_of_numerics(explained):
    rows = plain(explained.rows)
    assert [row["op"] for row in rows] == [op.name for op in explained.ops]
    assert all(row["own_error"] is not None for row in rows)
    assert repr(explained).startswith(f"<Explained {CHIPS} on wormhole_b0: 4 ops, worst alone ")
    assert explained.to_json()["schema_version"] == 1
    with pytest.raises(be.HostError, match="no op"):
        be.numerics(be.load(CHIPS), op="nobody")


def test_an_op_that_does_not_exist_comes_with_a_hint():
    with pytest.raises(be.HostError, match=r"no op 'activat' in .* \(did you mean 'activate'\?\)"):
        be.numerics(CHIPS, op="activat", threads=1)


def test_numerics_is_a_function_whatever_was_imported_before(child_environment):
    """No room has its name: a module that is imported becomes an attribute of the package."""
    script = (
        "import buda_emu as be\n{first}\nfrom buda_emu.arithmetic.formats import quantise\n"
        "import types\nassert isinstance(be.numerics, types.FunctionType), be.numerics\n"
    )
    for first in ("be.numerics", "import buda_emu.app.api.numerics", "from buda_emu import numerics", ""):
        command = [sys.executable, "-c", script.format(first=first)]
        subprocess.run(command, env=child_environment, check=True)


@pytest.mark.parametrize("name", ["tested", "explained", "perf"])
def test_a_notebook_shows_a_table(name, request):
    found = be.perf(CHIPS) if name == "perf" else request.getfixturevalue(name)
    html = found._repr_html_()
    tree = ElementTree.fromstring(f"<div>{html}</div>")
    rows = found.epoch_rows if name == "perf" else found.rows
    assert len(tree.findall(".//tbody/tr")) == len(rows)
    assert [head.text for head in tree.findall(".//th")] == [column.replace("_", " ") for column in rows[0]]
    assert len(repr(found)) < 300


def test_wide_tables_of_a_notebook_scroll(explained):
    """The frame around a table scrolls, not the notebook's page."""
    tree = ElementTree.fromstring(f"<div>{explained._repr_html_()}</div>")
    (frame,) = [element for element in tree.iter("div") if element.find("table") is not None]
    assert "overflow-x:auto" in frame.get("style")
    assert "max-width:100%" in frame.get("style")


def test_a_notebook_shows_the_findings_of_a_check(tmp_path):
    text = CHIPS.read_text().replace("type: matmul", "type: matmull <b>", 1)
    (tmp_path / "wrong.yaml").write_text(text)
    found = be.check(tmp_path / "wrong.yaml")
    tree = ElementTree.fromstring(f"<div>{found._repr_html_()}</div>")
    rows = [[cell.text for cell in row] for row in tree.findall(".//tbody/tr")]
    assert rows == [
        [entry.where, entry.severity, entry.rule, entry.message, entry.hint or None] for entry in found.diagnostics
    ]
    assert tree.find("p").text == f"refused, {len(rows)} finding{'s' * (len(rows) != 1)}"
    assert be.check(CHIPS)._repr_html_() == "<p>accepted, 0 findings</p>"


def test_a_notebook_shows_advice():
    found = be.advise(ROOT / "netlists/attention.yaml", tries=12)
    tree = ElementTree.fromstring(f"<div>{found._repr_html_()}</div>")
    moves = [row[3].text for row in tree.findall(".//tbody/tr")]
    assert moves == [proposal.move for proposal, _ in found.found.taken]
    assert found.netlist in tree.find("p").text
    assert moves or found.reason in tree.find("p").text


def test_a_notebook_shows_a_netlist_as_its_picture():
    netlist = be.load(CHIPS)
    assert ElementTree.fromstring(netlist._repr_svg_()).tag == "{http://www.w3.org/2000/svg}svg"
    assert repr(netlist) == f"<Netlist {CHIPS} for wormhole_b0: 2 graphs, 4 ops, 6 queues, programs run_fwd>"


def test_a_notebook_shows_where_errors_are(tmp_path):
    np.save(tmp_path / "out.npy", np.full((2, 1, 128, 192), 7.0, np.float32))
    found = be.test(ROOT / "netlists/matmul.yaml", reference=tmp_path, detail=True)
    assert not found.passed
    html = found._repr_html_()
    assert 'class="buda-emu"' in html
    assert "largest error of each tile" in html
    assert ".buda-emu svg .h7{" in html
    assert ":root" not in html
    assert "<svg" not in be.test(ROOT / "netlists/matmul.yaml", detail=True)._repr_html_()


def test_a_notebook_shows_a_run(tmp_path):
    netlist = be.load(ROOT / "netlists/matmul.yaml")
    from buda_emu.app.api.run_netlist import run_netlist

    html = run_netlist(netlist)._repr_html_()
    assert ">out</td>" in html
    assert "2x1x128x192" in html


@pytest.fixture(scope="module")
def compiled():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 10), torch.nn.Softmax(-1))
    return be.compile(net.eval(), torch.ones(4, 64), effort="low")


@pytest.mark.parametrize("method", ["compare", "numerics", "perf"])
def test_a_notebook_shows_tables_of_a_compiled_model(compiled, method):
    found = getattr(compiled, method)()
    tree = ElementTree.fromstring(f"<div>{found._repr_html_()}</div>")
    assert tree.findall(".//tbody/tr")
    assert len(repr(found)) < 250
    cells = [cell.text for cell in tree.iter("td")]
    assert all(cell in str(found) for cell in cells if cell)


def test_layers_and_ops_have_short_words(compiled):
    (worst,) = compiled.numerics().worst(1)
    assert repr(worst).startswith(f"<LayerNumerics {worst.layer}: error ")
    assert f"<OpNumerics {worst.worst.name} (" in repr(worst)
    assert len(repr(worst)) < 400


def test_a_report_is_shown_as_it_is_printed(compiled):
    report = compiled.report()
    assert repr(report) == str(report)
    assert "\n" in repr(report)


def test_a_correlation_below_1_is_not_shown_as_1():
    from buda_emu.app.api.shown import html_table

    html = html_table("a table", [{"op": "a", "run_pcc": 0.999954}, {"op": "b", "run_pcc": 1.0}])
    cells = [cell.text for cell in ElementTree.fromstring(f"<div>{html}</div>").iter("td")]
    assert cells == ["a", "0.999954", "b", "1"]


def test_words_stand_to_the_left_and_a_sentence_has_room():
    from buda_emu.support.html_table import html_table

    sentence = "in_df: [Float16_b, Float16_b] -> [Float32, Float32], acc_df: Float16_b -> Float32"
    html = html_table("a table", ["op", "cycles", "repair"], [("a", "1,234", sentence), ("b", "-", "")])
    tree = ElementTree.fromstring(f"<div>{html}</div>")
    head = [cell.get("style") for cell in tree.iter("th")]
    assert head == ["text-align:left", None, "text-align:left"]
    assert [cell.get("style") for cell in tree.findall(".//tbody/tr[1]/td")] == [
        "text-align:left",
        "white-space:nowrap",
        "text-align:left;min-width:24em",
    ]


def test_completion_shows_what_a_user_calls():
    import buda_emu.report  # noqa: F401 - becomes an attribute of the package

    public = [name for name in dir(be) if not name.startswith("_")]
    assert public == sorted(name for name in be.__all__ if not name.startswith("_"))


def test_verbs_of_netlists_say_what_to_give_for_a_model(compiled, tmp_path):
    with pytest.raises(be.HostError, match="test: CompiledModel is neither a path nor a netlist: give the path of its"):
        be.test(compiled)
    with pytest.raises(be.HostError, match=r"test: int is neither a path nor a netlist$"):
        be.test(3)
    with pytest.raises(be.HostError, match="debug: a netlist without the model's parameters: save the model"):
        be.debug(compiled)
    compiled.save(tmp_path)
    with be.debug(be.load_model(tmp_path)) as session:
        assert repr(session).startswith("<Session of ")
