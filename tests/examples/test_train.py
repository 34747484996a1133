"""The training example learns, and a snapshot of the machine goes on where it was (docs/python/training.md)."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import islice

import numpy as np
import pytest

import buda_emu as be
import train
from backend import Backend
from curve import Point, write_curve
from digits import CLASSES, draw, glyphs
from float_model import FloatModel
from shared_files import ROOT

SCRIPT = train.NETLIST.with_name("train.py")
PARAMETERS = ("w1", "b1", "w2", "b2")


def child(code, environment, *arguments):
    """What a new process prints."""
    command = [sys.executable, "-W", "error", *code, *map(str, arguments)]
    path = f"{environment['PYTHONPATH']}:{SCRIPT.parent}"
    return subprocess.run(command, env={**environment, "PYTHONPATH": path}, capture_output=True, text=True, check=False)


def test_it_learns_as_well_as_numpy(tmp_path, child_environment):
    done = child([SCRIPT], child_environment, "--epochs", "6", "--curve", tmp_path / "curve.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    first, *_, last = json.loads((tmp_path / "curve.json").read_text())["epochs"]
    assert last["epoch"] == 6
    assert last["device_accuracy"] > 0.93
    assert abs(last["device_accuracy"] - last["numpy_accuracy"]) <= 0.01
    assert last["device_loss"] < 0.2 * first["device_loss"]
    assert last["device_loss"] == pytest.approx(last["numpy_loss"], rel=0.02)
    assert last["device_loss"] != last["numpy_loss"]


def test_it_says_when_it_does_not_learn(monkeypatch, capsys):
    load = train.load_parameters
    monkeypatch.setattr(train, "load_parameters", lambda machine, first: load(machine, first, rate=0.01))
    assert train.main(["--epochs", "1", "--arch", "blackhole"]) == 1
    assert "NOT within 1%" in capsys.readouterr().out


@pytest.mark.parametrize("arch", train.ARCHS)
def test_the_netlist_passes_the_strict_check(arch):
    assert be.check(train.NETLIST, arch, strict=True).diagnostics == ()


def batches(count, start=0):
    """Some minibatches of the first epoch: pixels and labels."""
    pixels, labels = draw(train.TRAINING, seed=train.SEED)
    return [(pixels[batch], labels[batch]) for batch in islice(train.minibatches(0), start, start + count)]


def held(machine):
    """The parameters as the machine holds them."""
    return {name: machine.peek(name, readout="raw") for name in PARAMETERS}


def test_one_step_is_numpys_step():
    """Ideal precision: what is left is the order of sums."""
    model = FloatModel.initial(5)
    first = {name: value.copy() for name, value in model.parameters()}
    ((pixels, labels),) = batches(1)
    with be.Emulator(be.load(train.NETLIST), "ideal", threads=1) as emulator:
        train.load_parameters(emulator, model)
        loss = train.train_minibatch(emulator, pixels, labels)
        found = held(emulator)
        assert np.array_equal(train.classify(emulator, pixels), _stepped(model, pixels, labels, loss).classify(pixels))
    for name, value in model.parameters():
        rows, columns = value.shape if value.ndim == 2 else (1, len(value))
        got = found[name][0, 0, :rows, :columns].reshape(value.shape)
        largest = np.abs(value - first[name]).max()
        assert largest > 0
        assert np.abs(got - value).max() < 1e-4 * largest, name
    # The classes that do not exist learn nothing.
    assert np.all(found["w2"][..., CLASSES:] == 0)
    assert np.all(found["b2"][..., CLASSES:] == -1000)


def _stepped(model, pixels, labels, loss):
    assert model.step(pixels, labels, train.RATE) == pytest.approx(loss, rel=1e-5)
    return model


def test_gradients_add_up_over_microbatches_and_start_from_zero():
    """Two minibatches: the second step forgets the first one's gradients."""
    model = FloatModel.initial(5)
    two = batches(2)
    with be.Emulator(be.load(train.NETLIST), "ideal", threads=1) as emulator:
        train.load_parameters(emulator, model)
        for pixels, labels in two:
            before = model.w2.copy()
            train.train_minibatch(emulator, pixels, labels)
            model.step(pixels, labels, train.RATE)
            gradient = (before - model.w2) * (train.MINIBATCH / train.RATE)
            summed = emulator.peek("grad_w2", readout="raw")[0, 0, :, :CLASSES]
            np.testing.assert_allclose(summed, gradient, atol=2e-3 * np.abs(gradient).max())


def test_both_interfaces_have_the_same_bits():
    model = FloatModel.initial(5)
    with be.Emulator(be.load(train.NETLIST, "wormhole_b0"), "format", threads=1) as emulator:
        backend = Backend(train.NETLIST)
        try:
            for machine in (emulator, backend):
                train.load_parameters(machine, model)
            for pixels, labels in batches(3):
                plain = train.train_minibatch(emulator, pixels, labels)
                assert train.train_minibatch(backend, pixels, labels) == plain
            backend.wait()
            for name in PARAMETERS:
                assert np.array_equal(backend.peek(name), emulator.peek(name)), name
        finally:
            backend.close()


RESUME = """
import sys
import numpy as np
import buda_emu as be, train
from digits import draw

snapshot, start, end, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
pixels, labels = draw(train.TRAINING, seed=train.SEED)
with be.Emulator.load(snapshot) as emulator:
    for batch in list(train.minibatches(0))[start:end]:
        train.train_minibatch(emulator, pixels[batch], labels[batch])
    names = ("w1", "b1", "w2", "b2")
    np.savez(out, **{name: emulator.peek(name, readout="raw") for name in names})
"""


@pytest.mark.parametrize("precision", ["format", "ideal", "device"])
def test_a_snapshot_half_way_is_resumed_in_a_new_process(precision, tmp_path, child_environment):
    half, steps = 3, 7  # odd counts: the pointers are somewhere in the middle
    with be.Emulator(be.load(train.NETLIST), precision, threads=2) as emulator:
        train.load_parameters(emulator, FloatModel.initial(5))
        for pixels, labels in batches(half):
            train.train_minibatch(emulator, pixels, labels)
        emulator.save(tmp_path / "half.snap")
        before = held(emulator)
        for pixels, labels in batches(steps - half, start=half):
            train.train_minibatch(emulator, pixels, labels)
        expected = held(emulator)
    done = child(["-c", RESUME], child_environment, tmp_path / "half.snap", half, steps, tmp_path / "end.npz")
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "end.npz") as resumed:
        for name in PARAMETERS:
            assert resumed[name].tobytes() == expected[name].tobytes(), name
            assert resumed[name].tobytes() != before[name].tobytes(), name


def test_digits_are_the_same_for_the_same_seed():
    pixels, labels = draw(2000, seed=3)
    again, _ = draw(2000, seed=3)
    other, _ = draw(2000, seed=4)
    assert np.array_equal(pixels, again)
    assert not np.array_equal(pixels, other)
    assert pixels.shape == (2000, 64)
    assert pixels.dtype == np.float32
    assert np.bincount(labels).min() > 150
    assert len({glyph.tobytes() for glyph in glyphs()}) == CLASSES


def test_the_curve_is_a_picture(tmp_path):
    points = [Point(1, 2.5, 2.4, 0.5, 0.6), Point(2, 0.5, 0.4, 0.9, 1.0)]
    write_curve(tmp_path / "curve.svg", points, "two epochs")
    picture = ET.parse(tmp_path / "curve.svg").getroot()
    circles = [e for e in picture.iter("{http://www.w3.org/2000/svg}circle") if len(e)]
    assert [circle[0].text for circle in circles] == [
        "epoch 1: device 2.5000, numpy 2.4000",
        "epoch 2: device 0.5000, numpy 0.4000",
        "epoch 1: device 0.5000, numpy 0.6000",
        "epoch 2: device 0.9000, numpy 1.0000",
    ]
    width, height = float(picture.get("width")), float(picture.get("height"))
    assert all(0 < float(c.get("cx")) < width and 0 < float(c.get("cy")) < height for c in circles)
    write_curve(tmp_path / "one.svg", points[:1], "one epoch")
    ET.parse(tmp_path / "one.svg")


def test_help_begins_with_an_example(capsys):
    with pytest.raises(SystemExit) as leaving:
        train.main(["--help"])
    assert leaving.value.code == 0
    assert capsys.readouterr().out.startswith("example: python examples/train.py ")


@pytest.mark.parametrize("words", [["--epochs", "0"], ["--curve", "curve.png"], ["--arch", "grayskull"]])
def test_what_makes_no_sense_is_refused(words, capsys):
    with pytest.raises(SystemExit) as leaving:
        train.main(words)
    assert leaving.value.code == 2
    assert words[0] in capsys.readouterr().err


def test_what_the_page_quotes_stands_in_the_example():
    page = (ROOT / "docs" / "python" / "training.md").read_text()
    files = "".join(path.read_text() for path in (SCRIPT, train.NETLIST))
    quoted = re.findall(r"(?<!-->\n)```(?:python|yaml)\n(.*?)```", page, re.DOTALL)
    assert len(quoted) == 3
    assert [text for text in quoted if text not in files] == []
