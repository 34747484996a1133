"""`buda-emu numerics` as a user meets it."""

import json

import numpy as np
import pytest

from buda_emu.app.cli.main import main
from example_netlists import DIRECTORY

EXAMPLES = sorted(DIRECTORY.glob("*.yaml"))
ATTENTION = DIRECTORY / "attention.yaml"


def numerics(*words):
    return main(["numerics", *map(str, words)])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_taken_apart(path, capsys, tmp_path):
    assert numerics(path, "--json", tmp_path / "n.json") == 0
    shown = capsys.readouterr().out
    found = json.loads((tmp_path / "n.json").read_text())
    assert found["schema_version"] == 1
    assert found["ops"]
    for op in found["ops"]:
        assert op["name"] in shown
        assert op["local"] is not None
        assert op["total"]["rms"] < 0.05
        assert list(op["without"]) == ["inputs", "fidelity", "dest", "spills", "sfpu", "vector", "packing"]


def test_one_op_quietly(capsys, tmp_path):
    assert numerics(ATTENTION, "-q", "--op", "dots", "--json", tmp_path / "n.json") == 0
    assert capsys.readouterr().out == ""
    assert [op["name"] for op in json.loads((tmp_path / "n.json").read_text())["ops"]] == ["dots"]


def test_an_unknown_op_is_wrong_usage(capsys):
    assert numerics(ATTENTION, "--op", "dot") == 2
    assert "no op 'dot'" in capsys.readouterr().err


def test_given_inputs_are_taken(tmp_path):
    np.save(tmp_path / "activations.npy", np.ones((2, 1, 128, 256), np.float32))
    np.save(tmp_path / "weights.npy", np.ones((1, 1, 256, 192), np.float32))
    np.save(tmp_path / "bias.npy", np.zeros((1, 1, 32, 192), np.float32))
    words = (DIRECTORY / "matmul.yaml", "-q", "--inputs", tmp_path, "--json", tmp_path / "n.json")
    assert numerics(*words) == 0
    (op,) = json.loads((tmp_path / "n.json").read_text())["ops"]
    assert op["local"]["rms"] == op["total"]["rms"] == 0  # sums of ones are whole


def test_parameters_and_programs_are_checked(capsys):
    assert numerics(ATTENTION, "--param", "p_lop_count=1") == 2
    assert "p_loop_count" in capsys.readouterr().err
    assert numerics(ATTENTION, "--program", "run_bwd") == 2
    assert "run_fwd" in capsys.readouterr().err
