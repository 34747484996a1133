"""`perf --sweep`: every combination, the same figures as single calls, on one process or two."""

import csv
import json
import re
from xml.etree import ElementTree

import pytest

from buda_emu.app.api import sweep as sweep_module
from buda_emu.app.api.perf import perf as model
from buda_emu.app.api.sweep import MOST_POINTS, Point, points_of, sweep
from buda_emu.app.cli.main import main
from buda_emu.app.cli.verbs import perf as perf_verb
from buda_emu.report.sweep import sweep_table
from buda_emu.support.errors import HostError
from buda_emu.support.options import SettingsName
from example_netlists import DIRECTORY
from report.unpacked import unpack_page

ATTENTION = str(DIRECTORY / "attention.yaml")


def run_perf(*words):
    return main(["perf", *map(str, words)])


def test_points_are_the_product_and_equal_single_calls(tmp_path, capsys):
    words = ("--sweep", "clock=500,1000", "--sweep", "dram_gbps=1,10", "--csv", tmp_path / "s.csv")
    assert run_perf(ATTENTION, *words, "--json", tmp_path / "s.json", "--chart", tmp_path / "s.svg") == 0
    rows = list(csv.DictReader((tmp_path / "s.csv").read_text().splitlines()))
    assert [(row["clock"], row["dram_gbps"]) for row in rows] == [(c, d) for c in ("500", "1000") for d in ("1", "10")]
    for row in rows:
        one = model(ATTENTION, what_if={"clock": float(row["clock"]), "dram_gbps": float(row["dram_gbps"])})
        assert float(row["cycles"]) == one.cycles
        assert float(row["inputs_per_second"]) == one.inputs_per_second
        assert row["steady_inputs_per_second"] == row["inputs_per_second"]
        assert row["steady_cycles_per_input"] == row["cycles_per_input"]
        assert float(row["overall_inputs_per_second"]) == one.overall_inputs_per_second
        assert float(row["overall_seconds"]) == one.overall_seconds
    written = json.loads((tmp_path / "s.json").read_text())
    assert written["schema_version"] == 1
    assert len(written["points"]) == 4
    chart = ElementTree.parse(tmp_path / "s.svg").getroot()
    assert len(chart.findall("{*}polyline")) == 2
    assert len(chart.findall("{*}circle")) == 4
    printed = capsys.readouterr().out
    assert printed.count("(least ms)") == 1


def test_a_file_is_read_for_the_chips_of_each_board():
    path = str(DIRECTORY / "matmul.yaml")
    boards = ("n150", "e150", "p150")
    points = sweep(path, {"board": boards})
    singles = [model(path, board=board) for board in boards]
    assert [point.cycles for point in points] == [single.cycles for single in singles]
    assert [(point.cycles_low, point.cycles_high) for point in points] == [
        (single.interval.low, single.interval.high) for single in singles
    ]
    assert sweep(path, {"board": boards}, workers=2) == points
    (refused,) = sweep(ATTENTION, {"board": ("e150",)})
    assert "the netlist is not for grayskull" in refused.problem
    (other,) = sweep(ATTENTION, {"board": ("n150",)}, arch="blackhole")
    assert "board n150 has chips of wormhole_b0" in other.problem


def test_a_parameter_needs_no_dollar_sign(tmp_path, capsys):
    for name in ("p_loop_count", "$p_loop_count"):
        assert run_perf(ATTENTION, "-q", "--sweep", f"{name}=1,3", "--csv", tmp_path / f"{name}.csv") == 0
    written = [(tmp_path / f"{name}.csv").read_text().splitlines() for name in ("p_loop_count", "$p_loop_count")]
    assert written[0][1:] == written[1][1:]
    assert written[0][0] == written[1][0].lstrip("$")
    assert run_perf(ATTENTION, "--sweep", "loop_count=1") == 2
    assert "did you mean '$p_loop_count'?" in capsys.readouterr().err


def test_no_point_is_the_quickest_where_the_work_differs(capsys):
    assert run_perf(ATTENTION, "--sweep", "$p_loop_count=1,2", "--sweep", "clock=800,1000") == 0
    assert "least ms" not in capsys.readouterr().out


def test_figures_shown_for_a_point_are_those_of_the_whole_run(tmp_path, capsys):
    """The order by inputs per second is that by the time, and the host link counts in both and in the mark."""
    words = ("--sweep", "host_gbps=4,0.001", "--sweep", "dram_gbps=1,20", "--json", tmp_path / "s.json")
    assert run_perf(ATTENTION, *words) == 0
    points = json.loads((tmp_path / "s.json").read_text())["points"]
    for point in points:
        assert point["inputs"] == 4
        assert point["overall_seconds"] == max(point["seconds"], point["host_seconds"])
        assert point["overall_inputs_per_second"] == pytest.approx(4 / point["overall_seconds"])
        assert point["inputs_per_second"] == pytest.approx(
            1e9 / point["cycles_per_input"]
        )  # of the slowest epoch alone
    header, *rows = capsys.readouterr().out.splitlines()
    assert re.search(r"  ms +cycles per input +inputs per second +load % +steady inputs/s +bottleneck$", header)
    for point, row in zip(points, rows, strict=False):
        share = 100 * point["load_cycles"] / point["cycles"]
        assert 0 < share < 100
        assert f"{share:.4g}"[:4] in row
    bound = [point["host_seconds"] > point["seconds"] for point in points]
    assert bound == [False, False, True, True]
    assert ["host link (on the chips: " in row for row in rows] == bound
    assert ["(least ms)" in row for row in rows] == [False, True, False, False]
    for row, point in zip(rows, points, strict=True):
        assert f" {point['overall_cycles_per_input']:,.0f} " in row


def test_points_of_unequal_work_are_compared_by_their_inputs():
    def point(seconds, inputs):
        pace = inputs / seconds
        return Point({"board": "b"}, 1.0, seconds, 1.0, 1.0, inputs=inputs, overall_seconds=seconds,
                     overall_inputs_per_second=pace, cycles_low=1.0, cycles_high=1.0)  # fmt: skip

    same = sweep_table([point(1.0, 64), point(2.0, 64)], ["board"]).splitlines()
    assert ["(least ms)" in row for row in same[1:]] == [True, False]
    differing = sweep_table([point(1.0, 64), point(1.5, 128)], ["board"]).splitlines()
    assert ["(most inputs per second)" in row for row in differing[1:]] == [False, True]


def test_processes_do_not_change_the_result():
    axes = {"clock": ("500", "1000", "2000"), "grid": ("8x8", "1x1")}
    one = sweep(ATTENTION, axes)
    assert sweep(ATTENTION, axes, workers=2) == one
    assert all(point.figures is None for point in one)
    detailed = sweep(ATTENTION, axes, workers=2, detailed=3)
    assert detailed == sweep(ATTENTION, axes, detailed=3)
    assert [point.figures is not None for point in detailed] == [True, False, True, False, False, False]
    assert all("is on cores" in point.problem for point in one if point.settings["grid"] == "1x1")
    assert [point.cycles is None for point in one] == [False, True] * 3


@pytest.mark.parametrize("name", ["p_loop_count", "$p_loop_count"])
@pytest.mark.parametrize("option", ["p_loop_count", "$p_loop_count"])
def test_an_axis_goes_before_the_parameter_of_all_points(name, option):
    points = sweep(ATTENTION, {name: (1, 2.0)}, parameters={option: 4})
    assert [point.settings for point in points] == [{name: "1"}, {name: "2"}]
    singles = [model(ATTENTION, parameters={"p_loop_count": count}).cycles for count in (1, 2)]
    assert [point.cycles for point in points] == singles


def test_a_parameter_of_the_settings_that_no_program_takes_is_left_out_by_all_workers():
    axes = {"clock": ("500", "800", "1000", "2000")}
    alone = sweep(ATTENTION, axes)
    parameters = {SettingsName("$elsewhere"): "2"}
    assert sweep(ATTENTION, axes, parameters=parameters) == alone
    assert sweep(ATTENTION, axes, parameters=parameters, workers=2) == alone
    with pytest.raises(HostError, match=r"no program takes the parameter \$elsewhere"):
        sweep(ATTENTION, {"clock": 500}, parameters={"$elsewhere": "2"})


@pytest.mark.parametrize("values", [b"12", bytearray(b"1"), {"500": 1}, {500, 1000}, frozenset({500})])
def test_values_without_an_order_are_refused(values):
    with pytest.raises(HostError, match="--sweep clock: expected a value or a list of values"):
        points_of({"clock": values})


def test_a_fraction_is_no_value_of_a_parameter():
    with pytest.raises(HostError, match=r"parameter p_loop_count is 1\.9: expected an integer"):
        sweep(ATTENTION, {"p_loop_count": [1, 1.9]})


def test_a_parameter_and_harvested_rows(tmp_path):
    assert run_perf(ATTENTION, "-q", "--sweep", "harvest=11;10,11", "--csv", tmp_path / "s.csv") == 0
    rows = list(csv.DictReader((tmp_path / "s.csv").read_text().splitlines()))
    assert [row["harvest"] for row in rows] == ["11", "10,11"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["speed=1"], "'speed' is not one of clock"),
        (["dram_gbp=1"], "(did you mean 'dram_gbps'?)"),
        (["clock"], "expected NAME=a,b,c"),
        (["clock=1,fast"], "--sweep clock: 'fast' is not a number"),
        (["clock=1", "clock=2"], "clock is swept twice"),
        (["clock=0"], "clock must be above 0"),
        (["clock=1000,nan"], "clock must be above 0"),
        (["grid=8x8,axb"], "grid 'axb'"),
        (["harvest=2;x"], "harvest 'x'"),
        (["board=n15"], "no board 'n15'"),
        (["$nothing=1"], "'$nothing' is not one of clock"),
        (["p_loop_cont=1"], "nor a parameter of the programs ($p_loop_count) (did you mean '$p_loop_count'?)"),
        (["p_loop_count=1", "$p_loop_count=2"], "$p_loop_count is swept twice, with and without $"),
        (["p_loop_count=1,1.9"], "--sweep p_loop_count: '1.9' is not an integer: the machine would read 1"),
        (["$p_loop_count=x"], "--sweep $p_loop_count: operand 'x' is neither a number"),
    ],
)
def test_axes_that_are_wrong(words, said, monkeypatch, capsys):
    """They are refused before anything is modelled."""
    monkeypatch.setattr(sweep_module, "perf", None)
    assert run_perf(ATTENTION, *(item for word in words for item in ("--sweep", word))) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("value", "said"), [("grid=1x1", "is on cores"), ("board=e150", "is not for grayskull")])
def test_points_that_cannot_be_modelled_say_why(value, said, capsys):
    """If none can be, the exit code is that of a single netlist that does not fit."""
    assert run_perf(ATTENTION, "--sweep", value) == 2
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("grids", "note"),
    [
        ("8x8,4x8,1x1", "1 of 3 points could not be modelled: the table says why."),
        ("8x8,4x8", ""),
        ("1x1,8x8", "1 of 2 points could not be modelled: the table says why. The first one is among them, so no"),
    ],
)
def test_the_page_counts_the_points_that_can_be_opened(grids, note, tmp_path, monkeypatch):
    assert run_perf(ATTENTION, "-q", "--sweep", f"grid={grids}", "--report", tmp_path) == 0
    page = unpack_page(tmp_path / "sweep.html")
    assert note in page
    assert ("could not be modelled" in page) == bool(note)
    assert "can be opened below" not in page
    monkeypatch.setattr(perf_verb, "MOST_DETAILED", 2)
    words = ("--sweep", "clock=500,800,900,1000", "--report", tmp_path)
    assert run_perf(ATTENTION, "-q", *words) == 0
    assert "1 of the 3 other points that were modelled can be opened below" in unpack_page(tmp_path / "sweep.html")


def test_too_many_points():
    with pytest.raises(HostError, match="the most is"):
        points_of({"clock": ["1"] * MOST_POINTS, "grid": ["1x1"] * 2})


def test_an_axis_that_does_not_exist():
    with pytest.raises(HostError, match=r"'clok' is not one of .*clock"):
        sweep(ATTENTION, {"clok": ["1000"]})
