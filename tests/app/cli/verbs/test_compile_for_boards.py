"""What `compile` and `perf` say of boards and of low effort, and a model that is placed for each board of a sweep."""

import json

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from buda_emu.netlist.fields import LOW_EFFORT_LOSS
from buda_emu.spec.boards import BOARDS, board_with_grid, largest_board

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402 - only where onnx is


@pytest.fixture
def model(tmp_path):
    """A product with a ReLU."""
    rng = np.random.default_rng(0)
    weights = numpy_helper.from_array(rng.standard_normal((64, 320), np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [320, 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [320, 320])
    graph = helper.make_graph(nodes, "g", [x], [y], [weights])
    path = tmp_path / "model.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    )
    return path


def words_of(capsys):
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ((), "no board with 10x8 cores of wormhole_b0 is on sale; --board n150 compiles for one"),
        (("--board", "n150"), ""), (("--arch", "grayskull"), ""), (("--arch", "blackhole"), ""),
    ],
)  # fmt: skip
def test_a_chip_that_no_board_has_is_named(model, capsys, options, hint):
    assert main(["compile", str(model), *options, "--effort", "low"]) == 0
    shown = words_of(capsys)
    assert ("is on sale" in shown) == bool(hint)
    assert hint.replace("; ", " ") in shown
    assert f"effort low: the first legal placement {LOW_EFFORT_LOSS.replace('; ', ' ')}" in shown


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (("--chips", "3", "--objective", "cores"), "1 of 3 chips has ops: the model was neither cut nor copied"),
        (("--board", "n300", "--objective", "cores"), "1 of 2 chips has ops: the model was neither cut nor copied"),
        (("--chips", "1"), ""), (("--board", "n150"), ""),
    ],
)  # fmt: skip
def test_chips_without_ops_are_counted(model, capsys, options, hint):
    assert main(["compile", str(model), *options, "--effort", "low"]) == 0
    shown = words_of(capsys)
    assert ("chips has ops" in shown) == bool(hint)
    assert hint in shown


def test_boards_by_their_grid():
    for board in BOARDS.values():
        assert board_with_grid(board.arch, board.grid).grid == board.grid
        largest = largest_board(board.arch)
        assert (largest.arch, largest.chips) == (board.arch, 1)
        assert largest.cores >= board.cores or board.chips > 1
    assert board_with_grid("wormhole_b0", (10, 8)) is None
    assert largest_board("wormhole") is None


@pytest.mark.parametrize("effort", ["low", "default"])
def test_a_netlist_carries_low_effort_and_no_other(model, tmp_path, capsys, effort):
    compiled = be.compile(str(model), effort=effort)
    is_low = effort == "low"
    assert ("effort: low" in compiled.text) == is_low
    assert compiled.netlist.effort == ("low" if is_low else "")
    assert compiled.check(strict=True) == ()
    assert ("Nothing was searched, as effort is low: " in compiled.report()) == is_low
    assert (LOW_EFFORT_LOSS in compiled.report()) == is_low
    assert (compiled.netlist.undefined_is_nan, "undefined" in compiled.text) == (False, False)
    for path in compiled.save(tmp_path):
        assert main(["perf", str(path), "--json", str(tmp_path / "perf.json")]) == 0
        assert ("compiled with effort low" in words_of(capsys)) == is_low
        assert json.loads((tmp_path / "perf.json").read_text())["effort"] == compiled.netlist.effort


def test_a_netlist_carries_its_board_and_perf_says_where_it_models_another_chip(model, tmp_path, capsys):
    compiled = be.compile(str(model), effort="low", board="n150x1")
    assert compiled.netlist.board == "n150"
    assert compiled.check(strict=True) == ()
    said = "compiled for the chips of n150 these figures are of another chip: --board n150 models it on them"
    for path in compiled.save(tmp_path):
        assert main(["perf", str(path)]) == 0
        assert said in words_of(capsys)
        assert main(["perf", str(path), "--board", "n150"]) == 0
        assert "compiled for the chips" not in words_of(capsys)
    assert be.compile(str(model), effort="low").netlist.board == ""


def test_a_model_is_placed_for_each_board_of_a_sweep(model, tmp_path, capsys):
    """Each point has the figures of the model compiled for its board; a netlist has one placement."""
    words = ["--sweep", "board=n150,e75", "--sweep", "clock=500,1000", "--json", str(tmp_path / "s.json")]
    assert main(["perf", str(model), *words]) == 0
    assert "a netlist has its own places" not in words_of(capsys)
    points = json.loads((tmp_path / "s.json").read_text())["points"]
    assert len(points) == 4
    for point in points:
        netlist = be.compile(str(model), board=point["board"]).netlist
        expected = be.perf(netlist, board=point["board"], what_if={"clock": float(point["clock"])})
        assert (point["problem"], point["cycles"]) == ("", expected.cycles)


def test_a_parameter_of_a_model_is_swept_with_its_dollar(model, tmp_path, capsys):
    """Only the compiled programs tell which they take; each point is held against them."""
    words = ["perf", str(model), "--board", "n150", "--json", str(tmp_path / "s.json"), "--sweep"]
    assert main([*words, "$p_loop_count=1,2"]) == 0
    points = json.loads((tmp_path / "s.json").read_text())["points"]
    netlist = be.compile(str(model), board="n150").netlist
    for point in points:
        expected = be.perf(netlist, board="n150", parameters={"p_loop_count": point["$p_loop_count"]})
        assert (point["problem"], point["cycles"]) == ("", expected.cycles)
    assert main([*words, "$elsewhere=1"]) == 2
    assert "no program takes the parameter $elsewhere" in words_of(capsys)
    assert main([*words, "clok=1"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "nor a parameter of a model, written with its $ (did you mean 'clock'?)" in said


def test_a_model_without_a_board_to_place_it_for(model, capsys):
    assert main(["perf", str(model), "--sweep", "clock=500"]) == 2
    assert "it is placed for each board of --sweep board=n150,n300" in capsys.readouterr().err
    assert main(["perf", str(model)]) == 2
    assert "is a model, not a netlist" in capsys.readouterr().err


def test_a_default_netlist_says_how_to_fit_a_board(model, tmp_path, capsys):
    path, _ = be.compile(str(model)).save(tmp_path)
    path.write_text(path.read_text().replace("grid_loc: [0, 0]", "grid_loc: [9, 0]", 1))  # which whole chips have
    assert main(["perf", str(path), "--board", "n150"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "the chip of n150 has 9x8" in said
    assert "compile the model with --board n150, or `buda-emu perf MODEL --sweep board=...`" in said
    assert main(["perf", str(path), "--sweep", "board=n150"]) == 2
    assert "the chip of n150 has 9x8" in (shown := words_of(capsys))
    assert "compile the model with --board NAME" in shown
