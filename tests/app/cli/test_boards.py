"""`--board` of the verbs: the chips of a board in place of whole ones, by name."""

import json

import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from shared_files import ROOT

ATTENTION = str(ROOT / "netlists" / "attention.yaml")


def run_captured(capsys, *words):
    code = main([*words])
    return code, capsys.readouterr()


def test_the_list_has_every_board_and_where_its_figures_come_from(capsys):
    code, said = run_captured(capsys, "compile", "--list-boards")
    assert code == 0
    for words in ("e75    grayskull", "72 (9x8)", "n300   wormhole_b0", "p150", "PERF 5.3"):
        assert words in said.out


def test_perf_models_the_board_and_says_so(capsys, tmp_path):
    file = tmp_path / "perf.json"
    code, said = run_captured(capsys, "perf", ATTENTION, "--board", "n150", "--json", str(file))
    assert code == 0
    assert f"{ATTENTION}: n150 (wormhole_b0), 1000 MHz, modelled\n" in said.out
    assert json.loads(file.read_text())["board"] == "n150"
    whole, board = be.perf(ATTENTION), be.perf(ATTENTION, board="n150")
    assert board.epochs[0].load.cycles < whole.epochs[0].load.cycles  # fewer cores read blobs (PERF 5.1)


def test_a_sweep_over_boards(capsys):
    code, said = run_captured(capsys, "perf", ATTENTION, "--sweep", "board=n150,n300")
    assert code == 0
    assert "n150" in said.out
    assert "n300" in said.out
    code, said = run_captured(capsys, "perf", ATTENTION, "--sweep", "board=n150", "--board", "n300")
    assert code == 2
    assert "a board is given, too" in said.err


def test_advice_is_for_the_board(capsys):
    code, said = run_captured(capsys, "advise", ATTENTION, "--board", "n300", "--tries", "1")
    assert code == 0
    assert said.out.startswith(f"{ATTENTION}: n300 (wormhole_b0),")


def test_run_refuses_a_netlist_that_does_not_fit_the_board(capsys, tmp_path):
    code, said = run_captured(capsys, "run", ATTENTION, "--board", "n150")
    assert code == 0
    assert ": n150 (wormhole_b0), precision format" in said.out
    text = (ROOT / "netlists" / "matmul.yaml").read_text()
    moved = tmp_path / "low.yaml"
    moved.write_text(text.replace("grid_loc: [0, 0]", "grid_loc: [7, 0]", 1))
    code, said = run_captured(capsys, "run", str(moved), "--board", "n300")
    assert code == 2
    assert "the chip of n300 has 8x8" in said.err


@pytest.mark.parametrize("words", [("perf",), ("advise",), ("run",)])
def test_board_and_architecture_have_to_agree(words, capsys):
    code, said = run_captured(capsys, *words, ATTENTION, "--board", "e75", "--arch", "wormhole_b0")
    assert code == 2
    assert "e75 has chips of grayskull, not of wormhole_b0" in said.err


def test_before_and_after_on_another_board_says_so(capsys, tmp_path):
    old = tmp_path / "old.json"
    run_captured(capsys, "perf", ATTENTION, "--board", "n300", "--json", str(old), "-q")
    _, said = run_captured(capsys, "perf", ATTENTION, "--board", "n150", "--against", str(old))
    assert "board: n300, now n150" in said.out
