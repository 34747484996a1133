import hashlib
import json

import numpy as np

from buda_emu.app.api.report import summarise
from buda_emu.app.api.run_netlist import run_netlist
from buda_emu.netlist.load import load
from buda_emu.support.version import RESULT_VERSION


def test_figures_are_of_the_finite_elements():
    array = np.array([[[[1.0, -2.0, np.inf, np.nan, 0.0, 4.0]]]], np.float32)
    summary = summarise("q", "queue", "Float32", array)
    assert (summary.min, summary.max, summary.mean) == (-2.0, 4.0, 0.75)
    assert (summary.not_finite, summary.zeros) == (2, 1)
    assert summary.shape == (1, 1, 1, 6)


def test_nothing_finite_has_no_range():
    summary = summarise("q", "ram", "Float32", np.full((1, 1, 1, 2), np.nan, np.float32))
    assert (summary.min, summary.max, summary.mean) == (None, None, None)


def test_raw_words():
    summary = summarise("q", "queue", "RawUInt32", np.array([[[[7, 0xFFFFFFFF]]]], np.uint32))
    assert (summary.min, summary.max) == (7, 0xFFFFFFFF)


def digest(array):
    return summarise("q", "queue", "Float32", array).sha256


def test_a_nan_counts_as_one_value_whatever_its_bits():
    one_nan, other_nan = (np.array([0x3F800000, nan], np.uint32) for nan in (0x7FC00000, 0xFFC01234))
    assert digest(one_nan) == hashlib.sha256(bytes.fromhex("0000803f0000c07f")).hexdigest()
    assert digest(one_nan.view(np.float32)) == digest(other_nan.view(np.float32)) == digest(one_nan)
    assert digest(other_nan) != digest(one_nan)


def test_the_json_form_is_plain_and_strict(root):
    report = run_netlist(load(root / "netlists/softmax.yaml"))
    content = report.as_json()
    again = json.loads(json.dumps(content, allow_nan=False))
    assert again["outputs"][0]["shape"] == [4, 2, 128, 128]
    assert again["schema_version"] == RESULT_VERSION
    assert "arrays" not in content
    assert set(content) == {
        "schema_version",
        "netlist",
        "arch",
        "precision",
        "readout",
        "threads",
        "seed",
        "version",
        "load_seconds",
        "push_seconds",
        "inputs",
        "programs",
        "outputs",
    }
