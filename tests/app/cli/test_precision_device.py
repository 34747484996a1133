"""`--precision device` on the command line."""

import json

import numpy as np
import pytest

from buda_emu.app.cli.main import main
from buda_emu.emulator.ops.on_device.claims import claim
from buda_emu.spec.ops import OP_TYPES


def report(root, tmp_path, precision, *more):
    path = tmp_path / f"{precision}.json"
    arguments = ["run", str(root / "netlists/matmul.yaml"), "--precision", precision, "-q", "--json", str(path)]
    assert main([*arguments, *more]) == 0
    return json.loads(path.read_text())


def test_a_run_says_its_precision_and_has_other_bits(root, tmp_path):
    device, fmt = (report(root, tmp_path, precision) for precision in ("device", "format"))
    assert device["precision"] == "device"
    (one,), (other,) = device["outputs"], fmt["outputs"]
    assert one["sha256"] != other["sha256"]
    assert one["mean"] == pytest.approx(other["mean"], rel=0.01)


def test_threads_change_nothing(root, tmp_path):
    one, two = (report(root, tmp_path, "device", "--threads", str(n))["outputs"] for n in (1, 2))
    assert one == two


def test_images_hold_tensors_for_the_device(root, tmp_path):
    """Tiles of an image are the bits that a push of the same tensors gives."""
    netlist = str(root / "netlists/matmul.yaml")
    weights = np.random.default_rng(3).standard_normal((1, 1, 256, 192)).astype(np.float32)
    np.savez(tmp_path / "tensors.npz", weights=weights, bias=weights[:, :, :32])
    found = []
    for name, more in (("plain", []), ("tiles", ["--tilized"])):
        image, path = tmp_path / f"{name}.tti", tmp_path / f"{name}.json"
        assert main(["pack", netlist, "--tensors", str(tmp_path), "-o", str(image), "-q", *more]) == 0
        assert main(["run", str(image), "--precision", "device", "-q", "--json", str(path)]) == 0
        found.append(json.loads(path.read_text()))
    assert found[0]["precision"] == "device"
    assert found[0]["outputs"] == found[1]["outputs"]


def test_stochastic_rounding_is_reported(root, tmp_path, capsys):
    path = tmp_path / "net.yaml"
    text = (root / "netlists/matmul.yaml").read_text()
    path.write_text(text.replace("attributes: {", "attributes: {stoch_rnd_mode: fpu, ", 1))
    assert main(["run", str(path), "--precision", "device", "-q"]) == 0
    error = capsys.readouterr().err
    assert "asks for stochastic rounding" in error
    assert main(["run", str(path), "-q"]) == 0
    assert "stochastic" not in capsys.readouterr().err


def test_claims_of_every_op_type(capsys):
    assert main(["ops", "--precision", "device"]) == 0
    text = capsys.readouterr().out
    claims, meanings, formats, _ = text.split("\n\n")
    lines = {line.split("  ")[0]: line for line in claims.splitlines()}
    assert "for the formats below" in meanings
    compared = {line.split("  ")[0]: line for line in formats.splitlines()}
    assert compared.keys() == {op.name for op in OP_TYPES.values() if op.family != "refused"} | {"op"}
    assert "Float32, Float16_b, Bfp8_b, Bfp4_b, Bfp2_b, Float16, Lf8, Fp8_e4m3, Int8" in compared["matmul"]
    assert "where an identity matmul spills was inferred" in compared["matmul"]
    assert "Bfp8," not in compared["add"]
    assert "Float16," not in compared["reduce"]
    assert {op.name for op in OP_TYPES.values()} <= lines.keys()
    assert lines["matmul"].split("  ")[-1].strip() == "not claimed"
    assert "does not run" in lines["drainer"]
    assert "stochastic rounding is not modelled" in text


def test_nothing_is_claimed_of_what_was_not_compared():
    assert claim("matmul", "wormhole_b0") == "exact"
    assert claim("matmul", "blackhole") == "exact"
    assert claim("matmul", "grayskull") == "not claimed"
    assert claim("ethernet_datacopy", "grayskull") == "exact"
    assert [claim("dropout", core) for core in ("wormhole_b0", "grayskull")] == ["documented", "not claimed"]
    assert claim("buffer", "wormhole_b0") is None


def test_an_op_states_in_which_formats_it_is_exact(capsys):
    assert main(["ops", "reduce", "--precision", "device"]) == 0
    text = capsys.readouterr().out
    exact = "for: Float32, Float16_b, Bfp8_b, Bfp4_b, Bfp2_b"
    assert f"{exact}; what was not compared, not counting other formats: -" in text
    assert main(["ops", "reduce"]) == 0
    assert "Bfp8_b" not in capsys.readouterr().out
