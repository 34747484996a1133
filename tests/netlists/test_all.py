"""Every netlist of the project's own directory is sound, also by the rules of the device, and runs on what it lists."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.run_netlist import run_netlist
from example_netlists import DIRECTORY

NAMES = sorted(path.stem for path in DIRECTORY.glob("*.yaml"))
CASES = [(name, arch) for name in NAMES for arch in be.load(DIRECTORY / f"{name}.yaml").archs]


def test_there_are_examples():
    assert {"matmul", "eltwise_tms", "softmax", "attention", "training", "two_chips"} <= set(NAMES)


@pytest.mark.parametrize(("name", "arch"), CASES)
def test_has_no_finding_even_when_strict(name, arch):
    result = be.check(DIRECTORY / f"{name}.yaml", arch, strict=True)
    assert result.diagnostics == ()
    assert result.netlist is not None
    assert result.netlist.arch_name == arch


@pytest.mark.parametrize(("name", "arch"), CASES)
def test_runs_on_its_own_stimulus(name, arch):
    report = run_netlist(be.load(DIRECTORY / f"{name}.yaml", arch), threads=2)
    assert report.outputs
    for output in report.outputs:
        assert output.not_finite == 0
        array = report.arrays[output.queue]
        assert np.count_nonzero(array) > array.size // 4


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_threads_changes_nothing(name):
    netlist = be.load(DIRECTORY / f"{name}.yaml")
    one, three = (run_netlist(netlist, threads=threads).outputs for threads in (1, 3))
    assert one == three
