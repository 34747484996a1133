"""Pages of two runs: what was added and removed, what changed most, and both core grids, in a real browser too."""

import csv
import json
import re

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.diff import compare, structure_of
from buda_emu.app.api.perf import perf
from buda_emu.app.cli.main import main
from buda_emu.report.pages.comparison import Side, comparison_page
from buda_emu.report.perf_against import against
from report.browsing import in_browser, layout_problems, open_page, opens_all, wait_until_drawn
from report.unpacked import unpack_page

OPS = ("dots", "scaled", "masked", "exponentials", "sums", "reciprocals", "probs", "context", "projection", "residual")


def change(text, seed):
    """Rename some ops, and give some another fidelity; return the text and the renamed ops."""
    stream = np.random.default_rng(seed)
    known = [name for name in OPS if re.search(rf"^    {name}:", text, re.MULTILINE)]
    renamed = [str(name) for name in stream.permutation(known)[: int(stream.integers(1, 4))]]
    for name in renamed:
        text = re.sub(rf"\b{name}\b", f"{name}_anew", text)
    fidelity = str(stream.choice(["HiFi3", "LoFi", "HiFi4"]))
    return text.replace("math_fidelity: HiFi3", f"math_fidelity: {fidelity}", int(stream.integers(1, 6))), renamed


@pytest.fixture
def attention(root):
    return root / "netlists/attention.yaml"


@pytest.fixture
def changed(attention, tmp_path):
    """The path of a changed netlist, and the ops that have another name there."""

    def make(seed):
        text, renamed = change(attention.read_text(), seed)
        path = tmp_path / f"changed_{seed}.yaml"
        path.write_text(text)
        return path, renamed

    return make


def ops_with(page, css):
    """The ops of both pictures that have a class."""
    return {name for classes, name in re.findall(r'<g class="([^"]*)" data-name="([^"]*)"', page) if css in classes}


def rows_of(page, heading):
    """The texts of the rows of the table below a heading."""
    table = page.partition(f"<h2>{heading}")[2].partition("</table>")[0]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.DOTALL)[1:]
    return [
        [re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)] for row in rows
    ]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))])
def test_what_was_added_and_removed_is_marked_and_the_greatest_change_is_first(seed, changed, attention, tmp_path):
    path, renamed = changed(seed)
    assert main(["perf", "-q", str(path), "--against", str(attention), "--report", str(tmp_path / "r")]) == 0
    page = unpack_page(tmp_path / "r" / "comparison.html")
    assert ops_with(page, "bg-removed") == set(renamed)
    assert ops_with(page, "bg-added") == {f"{name}_anew" for name in renamed}
    assert page.count('<svg xmlns="http://www.w3.org/2000/svg" class="bg"') == 4  # two epochs on both sides
    before, after = be.perf(attention), be.perf(path)
    costs = [{row["op"]: row["cycles"] for row in run.op_rows} for run in (before, after)]
    expected = {name: costs[1].get(name, 0) - costs[0].get(name, 0) for name in {*costs[0], *costs[1]}}
    rows = rows_of(page, "Ops")
    differences = [abs(int(row[2].replace(",", ""))) for row in rows]
    assert differences == sorted(differences, reverse=True)
    assert {row[0]: int(row[2].replace(",", "")) for row in rows} == {
        name: int(f"{value:.0f}") for name, value in expected.items()
    }
    assert f"{after.cycles:,.0f} cycles" in page
    assert {row[0] for row in rows_of(page, "Epochs")} == {"scores_epoch", "output_epoch"}
    assert re.search(r"The slowest epoch, scores_epoch, (is held by .* as before|was held by .* and is held by)", page)


def test_the_csv_has_the_figures_of_both_runs(changed, attention, tmp_path):
    path, renamed = changed(0)
    table = tmp_path / "table.csv"
    assert main(["perf", "-q", str(path), "--against", str(attention), "--csv", str(table)]) == 0
    with table.open() as file:
        rows = list(csv.DictReader(file))
    before, after = be.perf(attention), be.perf(path)
    ops = {row["name"]: row for row in rows if row["what"] == "op cycles"}
    assert {name for name, row in ops.items() if row["change"] == "removed"} == set(renamed)
    for run, column in ((before, "before"), (after, "after")):
        for row in run.op_rows:
            assert float(ops[row["op"]][column]) == pytest.approx(row["cycles"], rel=1e-6)
    (program,) = (row for row in rows if row["what"] == "program cycles")
    assert float(program["difference"]) == pytest.approx(after.cycles - before.cycles, abs=1)
    epochs = {row["name"]: row for row in rows if row["what"] == "epoch cycles"}
    totals = [float(epochs[epoch.graphs[0]]["after"]) for epoch in after.epochs]
    assert totals == pytest.approx([epoch.runs * epoch.cycles for epoch in after.epochs], rel=1e-6)


def test_the_figures_of_an_earlier_run_have_no_picture(attention, tmp_path):
    old = tmp_path / "old.json"
    assert main(["perf", "-q", str(attention), "--json", str(old)]) == 0
    assert main(["perf", "-q", str(attention), "--against", str(old), "--report", str(tmp_path / "r")]) == 0
    page = unpack_page(tmp_path / "r" / "comparison.html")
    assert page.count('<svg xmlns="http://www.w3.org/2000/svg" class="bg"') == 2
    assert "old.json holds figures of a run and no placement: there is no picture of it." in page
    assert "cycles, as before." in page
    assert not ops_with(page, "bg-added") | ops_with(page, "bg-removed")
    content = json.loads((tmp_path / "r" / "comparison.json").read_text())
    assert content["bottleneck"].startswith("The slowest epoch, scores_epoch, is held by ")
    assert len(content["ops"]) == len(be.load(attention).ops)
    assert (tmp_path / "r" / "comparison.csv").read_text().startswith("what,name,")


def test_another_slowest_epoch_and_another_clock_are_said(attention):
    before = perf(attention).to_json()
    after = perf(attention, what_if={"clock": 500}).to_json()
    for epoch in after["epochs"]:
        if epoch["graphs"] == ["output_epoch"]:
            epoch["cycles_per_input"] = 10 * max(entry["cycles_per_input"] for entry in after["epochs"])
    comparison = against(before, after)
    assert comparison.bottleneck.startswith("The slowest epoch is output_epoch, held by ")
    assert "; before it was scores_epoch, held by " in comparison.bottleneck
    page = comparison_page(Side("a.json"), Side("b.json"), comparison, title="t", command="")
    assert re.search(r"Not only the netlist differs: clock in MHz: [\d.]+, now 500", page)
    assert "a.json holds figures" in page


def test_a_run_of_an_earlier_version_lacks_what_it_did_not_state(attention):
    """The form that a comparison needs has neither types nor cores nor cycles of all runs."""
    before = perf(attention).to_json()
    for epoch in before["epochs"]:
        del epoch["runs"]
        epoch["ops"] = [{"op": op["op"], "cost_cycles": op["cost_cycles"]} for op in epoch["ops"]]
    comparison = against(before, perf(attention).to_json())
    assert all(epoch.cycles_before is None and epoch.cycles_after for epoch in comparison.epochs)
    assert all(op.cores_before is None and op.cores_after and op.kind == "same" for op in comparison.ops)
    assert "Ops, cycles of one input" in comparison_page(Side("a"), Side("b"), comparison, title="t", command="")


@pytest.mark.parametrize("words", [[], ["--no-cycles"]])
def test_the_page_of_a_diff(words, changed, attention, tmp_path, capsys):
    path, renamed = changed(1)
    assert main(["diff", str(attention), str(path), "--report", str(tmp_path / "r"), *words]) == 1
    assert f"report: {tmp_path / 'r' / 'diff.html'}" in capsys.readouterr().out
    page = unpack_page(tmp_path / "r" / "diff.html")
    assert ops_with(page, "bg-removed") == set(renamed)
    assert page.count('<svg xmlns="http://www.w3.org/2000/svg" class="bg"') == 4
    assert ("Ops, cycles of one input" in page) == (not words)
    structure = structure_of(compare(be.load(attention), be.load(path), "a", "b"))
    texts = re.sub(r"<[^>]*>", " ", page)
    assert all(entry.field in texts and entry.name in texts for entry in structure.changes)
    assert json.loads((tmp_path / "r" / "diff.json").read_text())["schema_version"]


def test_a_diff_to_be_read_by_programs_stays_one(changed, attention, tmp_path, capsys):
    path, _ = changed(1)
    assert main(["diff", str(attention), str(path), "--json", "--report", str(tmp_path / "r")]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["gone"]
    assert "report: " in printed.err


def test_a_netlist_that_cannot_be_modelled_has_a_page_without_cycles(attention, tmp_path):
    text = attention.read_text()
    path = tmp_path / "off.yaml"
    path.write_text(text.replace("grid_loc: [2, 3]", "grid_loc: [2, 90]"))
    assert main(["diff", str(attention), str(path), "--report", str(tmp_path / "r")]) == 1
    page = unpack_page(tmp_path / "r" / "diff.html")
    assert "No cycles: " in page
    assert "Ops, cycles of one input" not in page


def test_points_of_a_sweep_are_compared_with_the_first(attention, tmp_path):
    words = ["--sweep", "dram_gbps=1,20", "--sweep", "clock=800,1000", "--sweep", "grid=8x8,1x1"]
    assert main(["perf", "-q", str(attention), *words, "--report", str(tmp_path)]) == 0
    page = unpack_page(tmp_path / "sweep.html")
    points = json.loads((tmp_path / "sweep.json").read_text())["points"]
    rows = rows_of(page, "Points")
    first = points[0]["seconds"]
    assert len(rows) == len(points) == 8
    for row, point in zip(rows, points, strict=True):
        assert row[:3] == [point["dram_gbps"], point["clock"], point["grid"]]
        if point["seconds"] is None:
            assert row[3] == "-"
        else:
            assert float(row[3]) == pytest.approx(100 * (point["seconds"] - first) / first, abs=0.06)
    assert "Against the first point, dram_gbps=1, clock=800, grid=8x8" in page
    assert "4 of 8 points could not be modelled: the table says why." in page  # they do not fit on one core
    assert len(re.findall(r"% (?:more|less) than at the first point", page)) == 3


@pytest.fixture(scope="module")
def pages(tmp_path_factory, root):
    """The pages of a comparison, a diff and a sweep."""
    folder = tmp_path_factory.mktemp("pages")
    attention = root / "netlists/attention.yaml"
    text, _ = change(attention.read_text(), 3)
    (folder / "new.yaml").write_text(text)
    new = str(folder / "new.yaml")
    assert main(["perf", "-q", new, "--against", str(attention), "--report", str(folder)]) == 0
    assert main(["diff", str(attention), new, "--report", str(folder)]) == 1
    assert main(["perf", "-q", str(attention), "--sweep", "clock=800,1000", "--report", str(folder)]) == 0
    return folder


def screen(test):
    """Skip a test where there is no browser."""
    for mark in in_browser:
        test = mark(test)
    return test


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("comparison", 390, "dark"),
        ("comparison", 1280, "light"),
        pytest.param("sweep", 390, "light", marks=pytest.mark.slow),
        *(
            pytest.param(name, *size, marks=pytest.mark.slow)
            for name in ("comparison", "diff", "sweep")
            for size in [(390, "dark"), (1280, "dark"), (1280, "light"), (1920, "dark"), (1920, "light")]
        ),
    ],
)
@screen
def test_pages_are_fine_on_screens_of_all_sizes(browser, pages, name, width, scheme):
    with open_page(browser, pages / f"{name}.html", width, scheme) as page:
        opens_all(page)
        assert layout_problems(page, width) == []


@screen
def test_a_click_on_an_op_shows_it_on_both_sides(browser, pages):
    with open_page(browser, pages / "comparison.html", 1280) as page:
        left, right = page.locator(".twins .grid-view").all()[:2]
        assert left.bounding_box()["y"] == right.bounding_box()["y"]  # side by side
        left.locator(".bg-op[data-name='q'] .bg-box").click()
        wait_until_drawn(page)
        for view in (left, right):
            assert view.locator(".bg-op.here").get_attribute("data-name") == "q"
    with open_page(browser, pages / "comparison.html", 390) as page:
        above, below = page.locator(".twins .grid-view").all()[:2]
        assert above.bounding_box()["y"] < below.bounding_box()["y"]
