"""Applies a fault to a value."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.stored import Bits, datum_type
from buda_emu.emulator.runtime.graph.steps import Run
from buda_emu.netlist.model import Op
from buda_emu.spec.blocking import Blocking
from buda_emu.spec.formats import FORMATS
from buda_emu.testing.injection.fault import FLIT_BYTES, INSIDE, Fault, flit_of
from buda_emu.testing.injection.trace import Spoil, Trace
from buda_emu.testing.injection.values import Arithmetic, OnDevice, Value

Numbers = NDArray[np.int64]
OTHER_FORMAT = {
    "Float16": "Float16_b", "Float16_b": "Float16", "Bfp8": "Bfp8_b", "Bfp8_b": "Bfp8", "Bfp4": "Bfp4_b",
    "Bfp4_b": "Bfp4", "Bfp2": "Bfp2_b", "Bfp2_b": "Bfp2", "Lf8": "Fp8_e4m3", "Fp8_e4m3": "Lf8",
}  # fmt: skip
"""What bits may be taken for: the format of the same width whose exponent is another."""


def spoils(fault: Fault, trace: Trace, seed: int) -> dict[int, Spoil]:
    """For each node of a fault what happens to its value."""
    arithmetic = trace.arithmetic
    if fault.place in INSIDE:
        (hit,) = fault.nodes
        return {hit: lambda _: _inside(trace, hit, fault)}
    if fault.kind == "flip":
        return {node: lambda value: _at(arithmetic, value, fault, _flip) for node in fault.nodes}
    if fault.kind == "burst":
        masks = burst_masks(fault.df, seed)
        return {
            node: lambda value: _at(arithmetic, value, fault, lambda bits, _: _burst(bits, fault, masks))
            for node in fault.nodes
        }
    if fault.kind == "packet":
        return {node: lambda value: _packet(arithmetic, value, fault) for node in fault.nodes}
    if fault.kind == "format":
        return {node: lambda value: _as_other(arithmetic, value, fault.df) for node in fault.nodes}
    if fault.kind == "entry":
        first, second = (trace.nodes[node].value for node in fault.nodes)
        found: dict[int, Spoil] = {fault.nodes[1]: lambda _: first}
        return found if fault.how == "twice" else {fault.nodes[0]: lambda _: second, **found}
    op = _op_of(trace, fault.nodes[0])
    tiles = tiles_of_core(op.blocking, fault.core or (0, 0))
    if fault.kind == "stuck":
        return {node: lambda value: _stuck(arithmetic, value, fault, tiles) for node in fault.nodes}
    noise = Random(seed)
    return {
        node: lambda value, before=before: _dead(arithmetic, value, before, fault.how, tiles, noise)
        for node, before in zip(fault.nodes, _before(trace, fault.nodes), strict=True)
    }


def _inside(trace: Trace, node: int, fault: Fault) -> Value:
    """The op's result where one of its units is hit."""
    from buda_emu.testing.injection.inside_op import WatchedUnits

    assert isinstance(trace.arithmetic, OnDevice)
    return trace.remade(node, WatchedUnits(trace.arithmetic.core, fault=fault))


def burst_noise(seed: int) -> int:
    """Which of the bits of a burst change, as a number: the lowest bit is the first that is stored."""
    return int.from_bytes(Random(seed).randbytes(FLIT_BYTES), "little")


def burst_masks(df: str, seed: int) -> NDArray[np.unsignedinteger[Any]]:
    """The same by datum."""
    width = FORMATS[df].bits
    noise = burst_noise(seed)
    masks = [noise >> place & ((1 << width) - 1) for place in range(0, 8 * FLIT_BYTES, width)]
    return np.array(masks, datum_type(df))


def _op_of(trace: Trace, node: int) -> Op:
    step = trace.nodes[node].step
    assert isinstance(step, Run)
    return step.op


def tiles_of_core(blocking: Blocking, core: tuple[int, int]) -> Numbers:
    """The numbers of the tiles of a result that one core of its grid makes (OPS 2)."""
    t, rows, cols = blocking.shape
    numbers = np.arange(t * rows * cols).reshape(t, rows, cols)
    row = core[0] * blocking.block_rows
    col = core[1] * blocking.block_cols
    return numbers[:, row : row + blocking.block_rows, col : col + blocking.block_cols].reshape(-1)


def _before(trace: Trace, nodes: tuple[int, ...]) -> list[Value | None]:
    """For each the value of the same op for the input before."""
    op = _op_of(trace, nodes[0])
    steps = ((node, node.step) for node in trace.nodes[: nodes[0]])
    earlier = [node.value for node, step in steps if isinstance(step, Run) and step.op.name == op.name]
    values = [trace.nodes[node].value for node in nodes]
    return [earlier[-1] if earlier else None, *values[:-1]]


def _at(arithmetic: Arithmetic, value: Value, fault: Fault, change: Callable[[Bits, Fault], None]) -> Value:
    """The value with the bits of one tile changed; datums that keep their value keep their bits, too."""
    which = (slice(0, 1), slice(fault.tile, fault.tile + 1))
    bits = arithmetic.bits(value[which], fault.df)
    before = arithmetic.value(bits.copy())
    change(bits, fault)
    return _put(value, which, before, arithmetic.value(bits))


def _put(value: Value, which: tuple[slice, ...], before: Value, after: Value) -> Value:
    found = value.copy()
    if isinstance(found, Bits):
        found.assign(which, after)
        return found
    differ = before.view(np.uint32) != after.view(np.uint32)
    found[which] = np.where(differ, after, found[which])
    return found


def _flip(bits: Bits, fault: Fault) -> None:
    mask = sum(1 << bit for bit in fault.bits)
    if fault.exponent:
        assert bits.exponents is not None
        bits.exponents[0, 0, fault.datum] ^= np.uint8(mask)
    else:
        bits.datums[0, 0, fault.datum] ^= bits.datums.dtype.type(mask)


def _burst(bits: Bits, fault: Fault, masks: NDArray[np.unsignedinteger[Any]]) -> None:
    bits.datums[0, 0, flit_of(fault.df, fault.datum)] ^= masks


def _stuck(arithmetic: Arithmetic, value: Value, fault: Fault, tiles: Numbers) -> Value:
    bits = arithmetic.bits(value, fault.df)
    before = arithmetic.value(bits.copy())
    mask = bits.datums.dtype.type(1 << fault.bits[0])
    if fault.how == "1":
        bits.datums[0, tiles] |= mask
    else:
        bits.datums[0, tiles] &= ~mask
    everything = (slice(0, 1), slice(None))
    return _put(value, everything, before, arithmetic.value(bits))


def _as_other(arithmetic: Arithmetic, value: Value, df: str) -> Value:
    bits = arithmetic.bits(value, df)
    taken = Bits(OTHER_FORMAT[df], bits.datums, bits.exponents).values()
    return arithmetic.value(Bits.encode(df, np.ascontiguousarray(taken, np.float32)))


def _packet(arithmetic: Arithmetic, value: Value, fault: Fault) -> Value:
    if fault.how == "part lost":
        return _at(arithmetic, value, fault, _emptied)
    if fault.how == "twice":
        source = value[0:1, fault.tile - 1 : fault.tile]
    else:
        source = _as_held(arithmetic, value, np.zeros((1, 1, 1024), np.float32))
    return _with_tiles(value, np.array([fault.tile]), source)


def _emptied(bits: Bits, fault: Fault) -> None:
    bits.datums[0, 0, flit_of(fault.df, fault.datum)] = 0


def _dead(arithmetic: Arithmetic, value: Value, before: Value | None, how: str, tiles: Numbers, noise: Random) -> Value:
    if how == "stale" and before is not None:
        return _with_tiles(value, tiles, before[0:1, tiles])
    numbers = np.zeros((1, len(tiles), 1024), np.float32)
    if how == "noise":
        words = np.frombuffer(noise.randbytes(numbers.size), np.uint8).reshape(numbers.shape)
        numbers = words.astype(np.float32) / np.float32(64) - np.float32(2)
    return _with_tiles(value, tiles, _as_held(arithmetic, value, numbers))


def _as_held(arithmetic: Arithmetic, value: Value, numbers: NDArray[np.float32]) -> Value:
    """float32[1, n, 1024] in the form of `value`."""
    return arithmetic.value(Bits.encode(value.df, numbers)) if isinstance(value, Bits) else numbers


def _with_tiles(value: Value, tiles: Numbers, source: Value) -> Value:
    """A copy with other tiles in some places."""
    found = value.copy()
    if isinstance(found, Bits):
        found.assign((slice(0, 1), tiles), source)
    else:
        found[0:1, tiles] = source
    return found
