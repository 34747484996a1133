"""Real netlists against the reference's outputs, bit for bit, in all three readings (corpus README)."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import buda_emu as be
from shared_files import CORPUS, corpus_files

# Netlists with large products, many inputs, loops, several chips: what threads share out differently.
THREADED = ("netlist_bert_mha", "device_to_host_bw_2device", "fused_op_with_reduce", "netlist_splice_issue_1361")
# Small netlists of every family, for precision device; `tools/device_sweep.py` runs them all.
ON_DEVICE = (
    "netlist_bert_mha", "softmax_1x1x40x40_dim_min1", "sparse_mm_bh.", "netlist_matmul_l1_acc", "netlist_int8_dequant",
    "tilizer_1x1", "unary_gradient", "fused_op_quant_dequant", "reduce_z_dim_max_int8", "splice_kernel_broadcast",
    "netlist_nop_uint8",
)  # fmt: skip


@pytest.fixture(scope="session")
def check(corpus: Path) -> ModuleType:
    """The corpus's own comparison tool."""
    spec = importlib.util.spec_from_file_location("corpus_check", corpus / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(corpus))  # it imports its neighbour
    try:
        spec.loader.exec_module(module)
        importlib.import_module("stimulus")
    finally:
        sys.path.remove(str(corpus))
    return module


def stored(path: Path) -> tuple[dict, dict]:
    """A vector and its stored arrays."""
    arrays = path.with_suffix(".npz")
    return json.loads(path.read_text()), dict(np.load(arrays)) if arrays.exists() else {}


@pytest.mark.parametrize("path", corpus_files("vectors/**/*.json"))
def test_outputs_equal_the_reference(check: ModuleType, path: Path) -> None:
    assert differences(check, path, CORPUS / "netlists") == []


@pytest.mark.parametrize("path", corpus_files("edge/vectors/*.json"))
def test_the_references_corners(check: ModuleType, path: Path) -> None:
    """Labels that move on (OPS 12), integers that the host reads (FORMATS 3.11)."""
    assert differences(check, path, CORPUS / "edge" / "netlists") == []


@pytest.mark.slow
@pytest.mark.parametrize("path", corpus_files("fuzz/vectors/*.json"))
def test_random_netlists_equal_the_reference(check: ModuleType, path: Path) -> None:
    assert differences(check, path, CORPUS / "fuzz" / "netlists") == []


def differences(check: ModuleType, path: Path, netlists: Path) -> list[tuple[str, str]]:
    """What one netlist has wrong, in the three readings."""
    vector, files = stored(path)
    netlist = netlists / vector["netlist"]
    problems: list[tuple[str, str]] = []
    for precision in ("format", "ideal"):
        readings = [(readout, key) for of, readout, key in check.MODES.values() if of == precision]
        got = check.emulate(netlist, vector, files, precision, sorted({readout for readout, _ in readings}), 1)
        for readout, key in readings:
            problems += check.compare(vector, files, got[readout], key, verbose=True)
    return problems


def assert_same_bits(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert np.array_equal(array.view(np.uint32), other[name].view(np.uint32)), name


@pytest.mark.parametrize(
    "path",
    [param for param in corpus_files("vectors/**/*.json") if not param.id or any(n in param.id for n in THREADED)],
)
def test_threads_do_not_change_a_bit(check: ModuleType, path: Path) -> None:
    vector, files = stored(path)
    netlist = CORPUS / "netlists" / vector["netlist"]
    one, three = (check.emulate(netlist, vector, files, "format", ["raw"], threads)["raw"] for threads in (1, 3))
    assert_same_bits(one, three)


@pytest.mark.parametrize(
    "path",
    [param for param in corpus_files("vectors/**/*.json") if not param.id or any(n in param.id for n in ON_DEVICE)],
)
def test_the_chips_arithmetic_is_close_to_ideal(check: ModuleType, path: Path) -> None:
    vector, files = stored(path)
    netlist = CORPUS / "netlists" / vector["netlist"]
    device, ideal = (check.emulate(netlist, vector, files, of, ["raw"], 1)["raw"] for of in ("device", "ideal"))
    shared = check.emulate(netlist, vector, files, "device", ["raw"], 2)["raw"]
    assert device.keys() == ideal.keys()
    assert_same_bits(device, shared)
    for name, array in device.items():
        assert np.isfinite(array).all()
        if not np.array_equal(array, ideal[name]):
            assert np.corrcoef(array.reshape(-1), ideal[name].reshape(-1))[0, 1] > 0.99, name


def test_an_accepted_netlist_opens_on_an_emulator(corpus: Path) -> None:
    """Also those that the reference did not run: their queues can be laid out."""
    verdicts = [line.split("\t") for line in (corpus / "verdicts.tsv").read_text().splitlines()[1:]]
    for name, verdict, arch, _ in verdicts:
        if verdict == "accept":
            with be.Emulator(be.load(corpus / "netlists" / name, arch=arch), threads=1) as emulator:
                assert emulator.programs
