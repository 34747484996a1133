"""Protection to try: codes on words of memory, and bounds on the results of ops. For each, its effect on a fault and
its cost."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, get_args

import numpy as np

from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.emulator.runtime.graph.steps import Run
from buda_emu.testing.injection.corrupt import burst_noise
from buda_emu.testing.injection.fault import Fault, bits_of_tile
from buda_emu.testing.injection.result import After, Cost
from buda_emu.testing.injection.sites import Sites, name_of
from buda_emu.testing.injection.timing_faults import Times
from buda_emu.testing.injection.trace import Node, Trace
from buda_emu.testing.injection.values import Arithmetic, Value

Protection = Literal["parity", "ecc", "range"]
PROTECTIONS: Final[tuple[Protection, ...]] = get_args(Protection)
PROTECTION_TEXTS: Final = {
    "parity": "a bit for each 32 bits of DRAM and L1: an odd number of flips in a word is detected when it is read",
    "ecc": "7 bits for each 32 bits of DRAM and L1 (SECDED): one flip in a word is corrected, two are detected",
    "range": "results of ops are clipped to the range that clean runs have; a NaN becomes the nearest bound to 0",
}
CLEAN_RUNS: Final = 4
"""Number of runs that ranges are learned from, if inputs are random."""
_WORD: Final = 32  # bits that one code word protects
_CODE_BITS: Final[Mapping[str, int]] = {"parity": 1, "ecc": 7}


def in_memory(protection: Protection, fault: Fault, seed: int) -> After | None:
    """Return what parity or ECC makes of a fault, "detected" or "corrected"; None where the fault passes unnoticed.
    Only flips and bursts in DRAM and L1 are noticed: a value that is wrong before it is written there is written with a
    code that fits. To SECDED a word with three flips looks like one with a single flip, so an odd number of flips above
    one passes. `seed` is that of a burst's noise."""
    if fault.kind not in ("flip", "burst") or fault.place not in ("dram", "l1"):
        return None
    if fault.kind == "flip":
        flips = [len(fault.bits)]
    else:
        flips = _flips_per_word(seed)
    if protection == "parity":
        detected = any(count % 2 for count in flips)
    elif max(flips, default=0) <= 1:
        return "corrected"
    else:
        detected = any(count and count % 2 == 0 for count in flips)
    if detected:
        return "detected"
    return None


def _flips_per_word(seed: int) -> list[int]:
    """Return the number of flips in each 32-bit word of the burst that `seed` gives, up to the last that has any."""
    noise = burst_noise(seed)
    words: list[int] = []
    while noise:
        words.append((noise & (1 << _WORD) - 1).bit_count())
        noise >>= _WORD
    return words


class Ranges:
    """For each op the smallest and largest finite element of its results in clean runs, and clipping to these."""

    def __init__(self, traces: Iterable[Trace]) -> None:
        self._of: dict[str, tuple[np.float32, np.float32]] = {}
        for trace in traces:
            self._arithmetic: Arithmetic = trace.arithmetic
            for node in trace.nodes:
                if isinstance(node.step, Run):
                    self._widen_bounds(name_of(node), trace.arithmetic.floats(node.value))

    def _widen_bounds(self, op: str, values: np.ndarray[Any, np.dtype[np.float32]]) -> None:
        """Extend the bounds of an op so that they contain the finite ones of `values`; without any, nothing changes."""
        finite = values[np.isfinite(values)]
        if finite.size:
            low, high = self._of.get(op, (np.float32(np.inf), np.float32(-np.inf)))
            self._of[op] = min(low, finite.min()), max(high, finite.max())

    def clip(self, node: Node, value: Value) -> Value:
        """Return an op's result with elements outside its bounds clipped; NaN becomes the bound nearest to 0, or 0.
        `node` has the clean result: elements that equal it are kept. Returns `value` itself where nothing is
        outside."""
        low, high = self._of.get(name_of(node), (np.float32(-np.inf), np.float32(np.inf)))
        floats = self._arithmetic.floats(value)
        with np.errstate(all="ignore"):
            outside = ~((floats >= low) & (floats <= high))
        clean = self._arithmetic.floats(node.value)
        outside &= floats.view(np.uint32) != clean.view(np.uint32)
        if not outside.any():
            return value
        nearest = np.float32(min(max(0.0, float(low)), float(high)))
        inside = np.where(outside, np.clip(np.where(np.isnan(floats), nearest, floats), low, high), floats)
        if not isinstance(value, Bits):
            return inside.astype(np.float32)
        clipped = value.copy()
        tiles = np.flatnonzero(outside.any(axis=-1)[0])
        clipped.assign((slice(0, 1), tiles), Bits.encode(value.df, np.ascontiguousarray(inside[:, tiles], np.float32)))
        return clipped


def cost(protection: Protection, sites: Sites, times: Times) -> Cost:
    """Return what a protection costs: the bits that it adds, their share of all bits, and the run's time as a ratio to
    the time without it."""
    ops = {name_of(node): node for node in sites.trace.nodes if isinstance(node.step, Run)}
    entries = {(node.queue, node.slot): node for node in sites.trace.nodes if node.queue}
    memory = sum(node.value.shape[1] * bits_of_tile(node.df) for node in (*ops.values(), *entries.values()))
    if protection != "range":
        share = _CODE_BITS[protection] / _WORD
        return Cost(round(memory * share), share, times.with_wider_words(share))
    bounds = sum(2 * _WORD * node.step.op.blocking.cells for node in ops.values() if isinstance(node.step, Run))
    return Cost(bounds, bounds / memory if memory else 0.0, times.with_bounds())
