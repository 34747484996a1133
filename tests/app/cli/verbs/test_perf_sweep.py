"""`perf --sweep`: every combination, the same figures as single calls, on one process or two."""

import csv
import json
from xml.etree import ElementTree

import pytest

from buda_emu.app.api.perf import perf as model
from buda_emu.app.api.sweep import MOST_POINTS, points_of, sweep
from buda_emu.app.cli.main import main
from buda_emu.support.errors import HostError
from example_netlists import DIRECTORY

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
    refused = sweep(ATTENTION, {"board": ("e150", "n15")})
    assert "the netlist is not for grayskull" in refused[0].problem
    assert "no board 'n15'" in refused[1].problem
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
    ],
)
def test_axes_that_are_wrong(words, said, capsys):
    assert run_perf(ATTENTION, *(item for word in words for item in ("--sweep", word))) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("axis", ["clock=0", "grid=big", "harvest=x", "$nothing=1"])
def test_points_that_cannot_be_modelled_say_why(axis, capsys):
    assert run_perf(ATTENTION, "--sweep", axis) == 1
    said = capsys.readouterr().out
    assert any(word in said for word in ("above 0", "--grid", "--harvest", "$nothing"))


def test_too_many_points():
    with pytest.raises(HostError, match="the most is"):
        points_of({"clock": ["1"] * MOST_POINTS, "grid": ["1x1"] * 2})


def test_an_axis_that_does_not_exist():
    with pytest.raises(HostError, match=r"'clok' is not one of .*clock"):
        sweep(ATTENTION, {"clok": ["1000"]})
