"""`buda-emu perf` as a user meets it."""

import csv
import gzip
import io
import json
import re
from html import unescape

import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from example_netlists import DIRECTORY
from report.unpacked import unpack_page
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

EXAMPLES = sorted(DIRECTORY.glob("*.yaml"))
CHECK = """
performance-check:
  config-0:
    graph-name: multiply
    program-name: run_fwd
    target-ops: [product]
    target-inputs: [0, 1]
    {metric}
"""


def run_perf(*words):
    return main(["perf", *map(str, words)])


def write_with_check(tmp_path, metric):
    path = tmp_path / "checked.yaml"
    path.write_text((DIRECTORY / "matmul.yaml").read_text() + CHECK.format(metric=metric))
    return path


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_gets_a_report(path, capsys, tmp_path):
    assert run_perf(path, "--top", "0", "--json", tmp_path / "perf.json", "--csv", tmp_path / "perf.csv") == 0
    shown = capsys.readouterr().out
    words = " ".join(shown.split())
    found = json.loads((tmp_path / "perf.json").read_text())
    assert found["schema_version"] == 1
    for epoch in found["epochs"]:
        assert epoch["first_input_cycles"] > 0
        assert epoch["bottleneck"]["sentence"].replace("; ", " ") in words
        for record in epoch["ops"]:
            assert record["op"] in shown
            assert record["provenance"]
            assert 0 <= record["average_utilisation"] <= 100
    rows = list(csv.DictReader(io.StringIO((tmp_path / "perf.csv").read_text())))
    assert [row["graph-name"] for row in rows] == [graph for epoch in found["epochs"] for graph in epoch["graphs"]]
    assert list(rows[0])[:4] == ["program-name", "graph-name", "aiclk", "device-id"]


def test_a_trace_follows_the_format(tmp_path):
    assert run_perf(DIRECTORY / "attention.yaml", "-q", "--trace", tmp_path / "t.json") == 0
    trace = json.loads((tmp_path / "t.json").read_text())
    events = trace["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "C", "s", "f"}
    assert "\n" not in (tmp_path / "t.json").read_text().strip()
    named = {(event["pid"], event["tid"]) for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    ends = {}
    for event in events:
        if event["ph"] == "X":
            track = event["pid"], event["tid"]
            assert track in named
            assert event["dur"] >= 0
            assert event["ts"] >= ends.get(track, 0) - 1e-6  # a track does one thing after the other
            ends[track] = event["ts"] + event["dur"]
        elif event["ph"] == "C":
            (value,) = event["args"].values()
            assert value >= 0
    tracks = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    assert {f"dots: {thread}" for thread in ("unpack", "math", "pack")} <= set(tracks)
    assert any(track.startswith("DRAM channel 0: ") for track in tracks)
    assert any(event["ph"] == "C" and event["name"].startswith("NoC ") for event in events)


def test_a_trace_names_slices_by_op_and_marks_the_steady_state_and_the_critical_path(tmp_path):
    text = (DIRECTORY / "attention.yaml").read_text().replace("input_count: 2", "input_count: 40")
    (tmp_path / "long.yaml").write_text(text)
    found = be.perf(tmp_path / "long.yaml")
    epoch = max(found.epochs, key=lambda item: item.timing.inputs)
    assert epoch.timing.inputs >= 4
    assert run_perf(tmp_path / "long.yaml", "-q", "--trace", tmp_path / "t.json.gz") == 0
    events = json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))["traceEvents"]
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices = [event for event in events if event["ph"] == "X"]
    for event in slices:
        track = tracks[event["pid"], event["tid"]]
        assert track.rpartition(": ")[0] == event["name"] or track == event["name"] or track == "stretches"
    steady = [event for event in slices if event["name"].startswith("steady state")]
    assert all(re.fullmatch(r"steady state, (its op|all \d+ ops|\d+ of \d+ ops) at work", e["name"]) for e in steady)
    assert steady
    assert all(event["dur"] > 0 for event in steady)
    flows = {kind: [event for event in events if event["ph"] == kind] for kind in "sf"}
    assert [event["id"] for event in flows["s"]] == [event["id"] for event in flows["f"]]
    assert any(event["name"].startswith("critical path, ") for event in flows["s"])
    assert any(not event["name"].startswith("critical path, ") for event in flows["s"])
    at = {(event["pid"], event["tid"], event["ts"]) for event in slices}
    assert {(event["pid"], event["tid"], event["ts"]) for kind in "sf" for event in flows[kind]} <= at


@pytest.mark.parametrize("name", ["matmul", "attention", "two_chips"])
def test_every_figure_has_an_interval(name, tmp_path, capsys):
    path = DIRECTORY / f"{name}.yaml"
    out = tmp_path / "perf.json"
    assert run_perf(path, "--json", out) == 0
    text = " ".join(capsys.readouterr().out.split())
    found = json.loads(out.read_text())

    def holds(interval, cycles):
        assert interval["low"] < cycles < interval["high"]
        return f"{cycles:,.0f}", f"(90 %: {interval['low']:,.0f} to {interval['high']:,.0f})"

    for name, cycles in found["program_cycles"].items():
        figure, interval = holds(found["program_intervals"][name], cycles)
        assert f"program {name}: {figure} cycles {interval}" in text
    for epoch in found["epochs"]:
        run = "a run takes {} cycles {}, an input in its steady state {} {}".format(
            *holds(epoch["run_interval"], epoch["run_cycles"]),
            *holds(epoch["pace_interval"], epoch["cycles_per_input"] or epoch["first_input_cycles"]),
        )
        assert run in text
        sums = sum(part["cycles"] for part in epoch["parts"] if part["unit"] != "graph")
        assert sums == pytest.approx(epoch["run_cycles"])
        for row in epoch["ops"]:
            holds(row["cost_interval"], row["cost_cycles"])
    modelled = be.perf(path)
    assert modelled.to_json()["program_intervals"] == found["program_intervals"]
    for row, epoch in zip(modelled.epoch_rows, found["epochs"], strict=True):
        assert row["cycles_per_input_low"] == epoch["pace_interval"]["low"] < row["cycles_per_input"]


def test_a_misspelt_parameter_is_refused(capsys):
    assert run_perf(DIRECTORY / "attention.yaml", "-q", "--param", "$p_lop_count=2") == 2
    said = capsys.readouterr().err
    assert "no program takes the parameter $p_lop_count (did you mean '$p_loop_count'?); parameters: $p_loop" in said


def test_set_up_and_host(capsys):
    assert run_perf(DIRECTORY / "matmul.yaml", "--what-if", "epoch_setup=1000000,host_gbps=0.001") == 0
    shown = capsys.readouterr().out
    assert "which bounds it" in shown
    assert run_perf(DIRECTORY / "matmul.yaml", "--what-if", "host_gbps=1000") == 0
    assert "which can go on meanwhile" in capsys.readouterr().out


def test_checks_that_hold_and_checks_that_do_not(tmp_path, capsys):
    assert run_perf(write_with_check(tmp_path, "cycles-per-tensor: {min_bound: 1}"), "-q") == 0
    assert capsys.readouterr().out.rstrip().endswith("every figure holds")
    assert run_perf(write_with_check(tmp_path, "cycles-per-tensor: {expected: 1, rtol: 0.5}"), "-q") == 1
    shown = capsys.readouterr().out
    assert "1 within 50 %" in shown
    assert "FAILED" in shown
    assert "1 figure missed" in shown


def test_every_core_metric_is_compared_with_every_target(tmp_path, capsys):
    metrics = [
        "math-utilization",
        "execution-cycles",
        "average-math-utilization",
        "total-runtime",
        "input0-bw",
        "output-bw",
    ]
    text = "\n    ".join(f"{metric}: {{min_bound: 0}}" for metric in metrics)
    assert run_perf(write_with_check(tmp_path, text), "-q") == 0
    shown = capsys.readouterr().out
    for metric in metrics:
        for number in (0, 1):
            (line,) = [line for line in shown.splitlines() if metric in line.split() and f"input {number}" in line]
            assert "product" in line
            assert "passed" in line


def test_an_input_that_is_not_modelled_fails(tmp_path, capsys):
    path = write_with_check(tmp_path, "execution-cycles: {min_bound: 0}")
    path.write_text(path.read_text().replace("target-inputs: [0, 1]", "target-inputs: [7]"))
    assert run_perf(path, "-q") == 1
    assert " - " in capsys.readouterr().out


UNCHECKED = {
    ("graph-name: multiply", "graph-name: multipl"): "there is no graph 'multipl' (did you mean 'multiply'?)",
    ("program-name: run_fwd", "program-name: other"): "there is no program 'other'",
    ("cycles-per-tensor: {", "cycles-per-tensr: {"): "it has no metric",
    ("cycles-per-tensor: {", "total-runtime: {"): "target-ops names no op of graph 'multiply'",
    ("performance-check:", "performance-chek:"): "nobody reads 'performance-chek': it is ignored",
}


@pytest.mark.parametrize(("old", "new"), UNCHECKED)
def test_a_configuration_that_checks_nothing_is_doubtful(old, new, tmp_path, capsys):
    path = write_with_check(tmp_path, "cycles-per-tensor: {min_bound: 1}")
    content = path.read_text().replace("target-ops: [product]", "target-ops: [other]")
    path.write_text(content)
    assert run_perf(path, "-q") == 0
    assert "DOUBTFUL" not in capsys.readouterr().out
    path.write_text(content.replace(old, new))
    assert run_perf(path, "-q", "--json", tmp_path / "perf.json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"DOUBTFUL {path} - ")
    assert UNCHECKED[old, new] in line
    (doubt,) = json.loads((tmp_path / "perf.json").read_text())["doubts"]
    assert line.endswith(doubt)
    assert main(["test", str(path), "--perf", "-q", "--junitxml", str(tmp_path / "junit.xml")]) == 0
    assert line in capsys.readouterr().out
    assert doubt in unescape((tmp_path / "junit.xml").read_text())


def test_a_second_configuration_of_an_epoch_and_a_metric_without_targets_are_doubtful(tmp_path, capsys):
    path = write_with_check(tmp_path, "cycles-per-tensor: {min_bound: 1}\n    total-runtime: {min_bound: 1}")
    content = path.read_text().replace("target-ops: [product]", "target-ops: [other]")
    second = "  again: {graph-name: multiply, program-name: run_fwd, cycles-per-tensor: {min_bound: 1}}\n"
    path.write_text(content + second)
    assert run_perf(path, "-q") == 0
    shown = capsys.readouterr().out
    assert "does not check total-runtime: target-ops names no op" in shown
    assert "again checks nothing: an earlier configuration checks the same epoch" in shown


def test_a_broken_section_is_refused(tmp_path, capsys):
    assert run_perf(write_with_check(tmp_path, "cycles-per-tensor: {expected: fast}")) == 2
    assert "V205" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--program", "nope"], "no program 'nope'; programs: run_fwd"),
        (["--fail-above", "5"], "--fail-above has no effect without --against OLD or --baseline FILE"),
        (["--what-if", "clock"], "--what-if clock: expected NAME=NUMBER"),
        (["--what-if", "speed=3"], "'speed' is not one of clock"),
        (["--what-if", "clock=0"], "must be above 0"),
        (["--grid", "big"], "--grid is rows x columns"),
        (["--grid", "99x1"], "is not within"),
        (["--grid", "1x1"], "op product is on cores [0, 0] to [1, 0], the chip has 1x1"),
        (["--harvest", "99"], "row 99 has no worker cores"),
    ],
)
def test_mistakes(words, said, capsys):
    assert run_perf(DIRECTORY / "matmul.yaml", *words) == 2
    assert said in capsys.readouterr().err


def test_a_faster_clock_and_a_smaller_chip(tmp_path):
    totals = []
    for clock in (500, 1000, 2000):
        assert (
            run_perf(DIRECTORY / "matmul.yaml", "-q", "--what-if", f"clock={clock}", "--json", tmp_path / "p.json") == 0
        )
        found = json.loads((tmp_path / "p.json").read_text())
        assert found["clock_mhz"] == clock
        totals.append(sum(epoch["total_cycles"] for epoch in found["epochs"]) / clock)
    assert totals == sorted(totals, reverse=True)
    assert run_perf(DIRECTORY / "matmul.yaml", "-q", "--harvest", "11", "--grid", "4x4") == 0


def test_the_vendors_model_gives_other_figures(tmp_path):
    found = []
    for model in ("fitted", "vendor"):
        assert run_perf(DIRECTORY / "matmul.yaml", "-q", "--model", model, "--json", tmp_path / "p.json") == 0
        found.append(json.loads((tmp_path / "p.json").read_text())["epochs"][0]["ops"][0])
    assert found[0]["provenance"] != found[1]["provenance"] == "vendor formula"


def test_expectations_are_printed_and_nothing_is_changed(tmp_path, capsys):
    path = write_with_check(tmp_path, "cycles-per-tensor: {expected: 1, rtol: 0.25}\n    note: {mine: [1, 2]}")
    before = path.read_bytes()
    assert run_perf(path, "-q", "--update-expectations") == 1
    section = capsys.readouterr().out.partition("performance-check:\n")[2]
    assert path.read_bytes() == before
    updated = tmp_path / "updated.yaml"
    updated.write_text((DIRECTORY / "matmul.yaml").read_text() + "\nperformance-check:\n" + section)
    assert "note: {mine: [1, 2]}" in section
    assert "rtol: 0.25" in section
    assert run_perf(updated, "-q") == 0


def test_a_report_folder(tmp_path, capsys):
    from xml.etree import ElementTree

    assert run_perf(DIRECTORY / "attention.yaml", "-q", "--report", tmp_path / "r") == 0
    assert capsys.readouterr().out.strip().endswith("perf.html")
    names = ["op_perf_table.json", "perf.html", "perf.json", "perf_info_all_epochs.csv", "runtime_table.csv"]
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == names
    page = unpack_page(tmp_path / "r/perf.html")
    for outside in ("https://", "src=", "<link"):
        assert outside not in page
    for svg in page.split("<svg")[1:]:
        ElementTree.fromstring("<svg" + svg.partition("</svg>")[0] + "</svg>")
    for words in ("What limits it", "What its cycles are, link by link", "Roofline", "exponentials", "red: busy"):
        assert words in page
    rows = list(csv.DictReader(io.StringIO((tmp_path / "r/runtime_table.csv").read_text())))
    assert len(rows) == 13
    assert rows[0]["core-label"] == "1-1-q"  # logical [0, 0] of wormhole_b0
    table = json.loads((tmp_path / "r/op_perf_table.json").read_text())
    assert table["run_fwd"]["scores_epoch"]["epoch-information"]["AICLK"] == 1000


def test_the_verb_test_uses_the_baseline(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("buda_emu.support.caches.own_caches", lambda: tmp_path / "caches")
    path = write_with_check(tmp_path, "cycles-per-tensor: {expected: 1}")
    assert main(["test", str(path), "-n", "1"]) == 0
    files = ["--junitxml", str(tmp_path / "r.xml"), "--report", str(tmp_path / "report")]
    assert main(["test", str(path), "-n", "1", "--perf", *files]) == 1
    shown = capsys.readouterr().out
    for name in ("r.xml", "report/report.html", "report/report.md"):
        assert "performance-check config-0: cycles-per-tensor is modelled as" in (tmp_path / name).read_text()
    assert "performance-check config-0: cycles-per-tensor is modelled as" in shown
    assert "1 within 1 %" in shown


def test_a_harvested_chip_shifts_the_cores(tmp_path):
    def labels(*more):
        assert run_perf(DIRECTORY / "matmul.yaml", "-q", "--arch", "grayskull", "--report", tmp_path, *more) == 0
        return [row["core-label"] for row in csv.DictReader(io.StringIO((tmp_path / "runtime_table.csv").read_text()))]

    whole, shifted = labels(), labels("--harvest", "1")
    assert whole[0].split("-")[0] == shifted[0].split("-")[0]  # the same column
    assert whole[0] != shifted[0]


def test_a_trace_is_packed_or_a_page_where_its_name_says_so(tmp_path, capsys):
    for name in ("t.json", "t.json.gz", "t.html"):
        assert run_perf(DIRECTORY / "attention.yaml", "-q", "--trace", tmp_path / name) == 0
    assert "Trace Event Format" not in capsys.readouterr().out
    assert run_perf(DIRECTORY / "attention.yaml", "-q", "--trace", tmp_path / "t.txt") == 0
    assert f"{tmp_path / 't.txt'} is JSON in the Trace Event Format" in capsys.readouterr().out
    assert (tmp_path / "t.txt").read_bytes() == (tmp_path / "t.json").read_bytes()
    assert gzip.decompress((tmp_path / "t.json.gz").read_bytes()) == (tmp_path / "t.json").read_bytes()
    page = (tmp_path / "t.html").read_text()
    assert "dots: math" in page
    assert 'class="tl-canvas"' in page


@pytest.fixture
def page_of(tmp_path, capsys):
    """The page of a netlist, what is packed in it too."""

    def page(file):
        assert run_perf(file, "--report", tmp_path / "r") == 0
        capsys.readouterr()
        return unpack_page(tmp_path / "r/perf.html")

    return page


def test_the_page_shows_what_each_core_takes_of_its_streams_and_l1(page_of):
    page = page_of(DIRECTORY / "softmax.yaml")
    assert page.count('<g class="bg-use">') == 4
    assert "extra streams: 1 of 24" in page
    assert "takes, of extra streams and of the L1 for data buffers: 1 of 24, L1 11 %." in page


def test_the_page_has_the_totals_that_the_terminal_shows(tmp_path, capsys):
    assert run_perf(DIRECTORY / "training.yaml", "--report", tmp_path / "r") == 0
    shown = " ".join(capsys.readouterr().out.split())
    page = unpack_page(tmp_path / "r/perf.html")
    (totals,) = re.findall(r"<p>Program run_fwd.*?(?=<div|<input|<section)", page, re.DOTALL)
    lines = [unescape(line) for line in re.findall(r"<p>(.*?)</p>", totals)]
    assert [line.split(":")[0] for line in lines] == [
        "Program run_fwd",
        "Program run_bwd",
        "Program run_opt",
        "2 inputs in 0.312 ms",
        "L1",
        "DRAM",
    ]
    for line in lines[:3]:
        figures = line[1:-1].partition("; the host")[0]
        assert figures in shown
    total = be.perf(DIRECTORY / "training.yaml").cycles
    assert run_perf(DIRECTORY / "training.yaml", "-q", "--trace", tmp_path / "t.html") == 0
    assert f"All runs of the programs take {total:,.0f} cycles." in (tmp_path / "t.html").read_text()


def test_the_page_says_why_an_epoch_has_no_streams(page_of, tmp_path, monkeypatch):
    page = page_of(DIRECTORY / "two_chips.yaml")
    assert "No streams are shown: op send: no pipes are made of this ethernet_datacopy" in page
    assert 'class="bg-use"' not in page
    text = (DIRECTORY / "softmax.yaml").read_text()
    other = tmp_path / "other.yaml"
    other.write_text(re.sub(r"arch: .*", "arch: [blackhole]", text, count=1))
    assert "No streams are shown: routing knows grayskull and wormhole_b0, and not " in page_of(other)
    monkeypatch.setattr("buda_emu.performance.routing.pipes.core_use.DRAM_OUTPUTS", 0)
    assert "The router refuses this epoch: softmax: core [0, 0] needs 1 pipes" in page_of(DIRECTORY / "softmax.yaml")


def chain_of_ops(tmp_path, count, kinds=("exp", "nop", "sqrt")):
    """A netlist of so many ops with long names, one after the other."""
    lines = []
    name = "a"
    for number in range(count):
        new = f"a_long_name_of_layer_{number:02d}_of_some_model_for_this_test"
        place = (number // 8, number % 8)
        lines.append(op(new, kinds[number % len(kinds)], [name], loc=place, df="Float16_b", mblock=(2, 2)))
        name = new
    shape = {"df": "Float16_b", "entries": 32, "mblock": (2, 2)}
    path = tmp_path / "chain.yaml"
    path.write_text(
        text(
            [queue("a", **shape), queue("o", name, **shape)],
            [graph("g", *lines, inputs=32)],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
        )
    )
    return path


def ops_in(shown):
    return re.findall(r"^(a_long_name\S*)", shown, re.MULTILINE)


def test_the_ten_costliest_ops_by_default(tmp_path, capsys):
    path = chain_of_ops(tmp_path, 25)
    rows = be.perf(path).op_rows
    by_cycles = [row["op"] for row in sorted(rows, key=lambda row: -row["cycles"])]
    for words, shown in (
        ((), by_cycles[:10]),
        (("--top", "3"), by_cycles[:3]),
        (("--top", "0"), [row["op"] for row in rows]),
        (("--top", "0", "--sort", "cycles"), by_cycles),
        (("--sort", "name"), sorted(by_cycles)[:10]),
        (("--op", "*"), [row["op"] for row in rows]),
        (("--op", "*", "--top", "2"), by_cycles[:2]),
    ):
        assert run_perf(path, *words, "--json", tmp_path / "perf.json") == 0
        printed = capsys.readouterr().out
        assert ops_in(printed) == shown
        assert ("--top 0 shows all" in printed) == (len(shown) < len(rows))
        written = json.loads((tmp_path / "perf.json").read_text())  # whole, and in the netlist's order
        assert [record["op"] for record in written["epochs"][0]["ops"]] == [row["op"] for row in rows]


@pytest.mark.parametrize("columns", [None, "60", "130"])
def test_prose_keeps_to_the_width(tmp_path, capsys, monkeypatch, columns):
    """Every line but those of tables, on a terminal and off one; flags and sources have a line each."""
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    assert run_perf(chain_of_ops(tmp_path, 25), "--sensitivity") == 0
    shown = capsys.readouterr().out
    begins = ("1 p:", "its cycles are", "program p:", "sensitivity:", "no row for", "  ")
    prose = [line for line in shown.splitlines() if line.startswith(begins)]
    assert len(prose) > 8
    assert max(map(len, prose)) <= int(columns or 100)
    assert "flags:" in shown


def test_sensitivity_is_printed_written_and_refused_where_it_does_nothing(tmp_path, capsys):
    attention = DIRECTORY / "attention.yaml"
    assert run_perf(attention, "--sensitivity", "--json", tmp_path / "perf.json", "--report", tmp_path / "page") == 0
    shown = capsys.readouterr().out
    written = json.loads((tmp_path / "perf.json").read_text())["sensitivity"]
    titles = [effect["title"] for effect in written["resources"]]
    assert [title for title in re.findall(r"^(\S.*?)  +[\d,]+ +[-+]", shown, re.MULTILINE) if title in titles] == titles
    assert "no row for cores: a netlist has its own places" in shown
    assert titles[0] == "DRAM bandwidth"
    page = unpack_page(tmp_path / "page" / "perf.html")
    assert "What each resource would bring" in page
    assert f"{re.search(r'sensitivity: ([0-9,]+) cycles', shown)[1]} cycles per input as it is" in page
    assert json.loads((tmp_path / "page" / "perf.json").read_text())["sensitivity"] == written
    assert run_perf(attention, "--json", tmp_path / "perf.json") == 0
    assert json.loads((tmp_path / "perf.json").read_text())["sensitivity"] is None


def test_a_netlist_says_that_it_was_compiled_at_low_effort(tmp_path, capsys):
    path = tmp_path / "low.yaml"
    for section, said in (("", False), ("buda-emu: {effort: low}\n", True), ("buda-emu: {effort: default}\n", False)):
        path.write_text(section + (DIRECTORY / "matmul.yaml").read_text())
        assert run_perf(path, "--json", tmp_path / "perf.json") == 0
        assert ("compiled with effort low" in capsys.readouterr().out) == said
        effort = section.partition("effort: ")[2].rstrip("}\n")
        assert json.loads((tmp_path / "perf.json").read_text())["effort"] == effort


@pytest.mark.parametrize(("board", "arch"), [("n150", "wormhole_b0"), ("e150", "grayskull"), ("p150", "blackhole")])
def test_a_file_for_several_chips_is_read_for_those_of_the_board(board, arch):
    assert be.perf(DIRECTORY / "matmul.yaml", board=board).netlist.arch_name == arch


def test_a_netlist_that_a_board_has_no_room_for_says_how_to_place_it(capsys):
    netlist = be.load(DIRECTORY / "attention.yaml")
    with pytest.raises(be.HostError, match="the netlist is for wormhole_b0, e150 has chips of grayskull") as refused:
        be.perf(netlist, board="e150")
    assert "compile the model with --board e150" in str(refused.value)
    assert "arch=" not in str(refused.value)
    assert run_perf(DIRECTORY / "attention.yaml", "--sweep", "board=n150,e150,e75") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "e75 has chips of grayskull" in shown
    assert shown.count("a netlist has its own places: compile the model with --board NAME") == 1
