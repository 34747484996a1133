"""Errors of ops, summed over their elements."""

import numpy as np

import buda_emu as be
from buda_emu.emulator.op_errors.op_apart import ErrorSum
from buda_emu.spec.precision import BELOW, LARGEST, STAND_IN
from shared_files import ROOT


def test_numbers_that_stand_for_an_infinity_do_not_hide_the_error_of_others():
    """A maximum reads elements with such numbers beside them; its own error was called a thousand times theirs."""
    netlist = be.load(next(iter(sorted((ROOT / "examples").glob("*.yaml")))))
    op = next(iter(netlist.ops.values()))
    expected = np.ones((1, 1024), np.float32)
    observed = expected * np.float32(1.01)
    for infinite in (BELOW, -LARGEST, STAND_IN):
        beside = expected.copy()
        beside[:, 512:] = infinite
        seen = np.where(beside == 1, observed, beside * np.float32(0.99))
        sums = ErrorSum(op)
        sums.add(beside, seen)
        assert sums.result().rms is not None
        assert abs(sums.result().rms - 0.01) < 1e-6
        assert sums.result().max_error < 0.02
        assert sums.result().not_finite == 0
    lost = ErrorSum(op)
    lost.add(np.full((1, 1024), STAND_IN, np.float32), expected)
    assert lost.result().rms == 1
