"""Application of a fault to a value."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.stored import Bits, datum_type
from buda_emu.emulator.runtime.graph.steps import Run
from buda_emu.netlist.model import Op
from buda_emu.spec.blocking import TILE_ELEMENTS, Blocking
from buda_emu.spec.formats import FORMATS
from buda_emu.testing.injection.fault import FLIT_BYTES, INSIDE, Fault, flit_of
from buda_emu.testing.injection.trace import Spoil, Trace
from buda_emu.testing.injection.values import Arithmetic, OnDevice, Value

Numbers = NDArray[np.int64]
OTHER_FORMAT = {
    "Float16": "Float16_b", "Float16_b": "Float16", "Bfp8": "Bfp8_b", "Bfp8_b": "Bfp8", "Bfp4": "Bfp4_b",
    "Bfp4_b": "Bfp4", "Bfp2": "Bfp2_b", "Bfp2_b": "Bfp2", "Lf8": "Fp8_e4m3", "Fp8_e4m3": "Lf8",
}  # fmt: skip
"""Formats whose bits may be taken for each other: of the same width, with another exponent."""


def spoils(fault: Fault, trace: Trace, seed: int) -> dict[int, Spoil]:
    """Return, for each node of a fault, the function that changes the node's value as the fault does. `seed` is that of
    noise."""
    if fault.place in INSIDE:
        (hit,) = fault.nodes
        return {hit: lambda _: _recompute_with_fault(trace, hit, fault)}
    if fault.kind == "entry":
        return _spoil_entries(fault, trace)
    if fault.kind == "core":
        return _spoil_core(fault, trace, seed)
    return dict.fromkeys(fault.nodes, _spoil_bits(fault, trace, seed))


def _spoil_bits(fault: Fault, trace: Trace, seed: int) -> Spoil:
    """Return the function that changes bits or tiles of a value, the same for all nodes of the fault."""
    arithmetic = trace.arithmetic
    if fault.kind == "flip":
        return lambda value: _change_tile(arithmetic, value, fault, _flip_bits)
    if fault.kind == "burst":
        masks = burst_masks(fault.df, seed)
        return lambda value: _change_tile(arithmetic, value, fault, lambda bits, _: _flip_burst(bits, fault, masks))
    if fault.kind == "packet":
        return lambda value: _with_broken_packet(arithmetic, value, fault)
    if fault.kind == "format":
        return lambda value: _misread(arithmetic, value, fault.df)
    tiles = tiles_of_core(_op_of(trace, fault.nodes[0]).blocking, fault.core or (0, 0))
    return lambda value: _with_stuck_bit(arithmetic, value, fault, tiles)


def _spoil_entries(fault: Fault, trace: Trace) -> dict[int, Spoil]:
    """Return the functions for two entries of a queue: the second becomes the first, and unless it comes twice the
    first becomes the second."""
    first, second = (trace.nodes[node].value for node in fault.nodes)
    changes: dict[int, Spoil] = {fault.nodes[1]: lambda _: first}
    if fault.how != "twice":
        changes = {fault.nodes[0]: lambda _: second, **changes}
    return changes


def _spoil_core(fault: Fault, trace: Trace, seed: int) -> dict[int, Spoil]:
    """Return, for each value that the fault's core makes, the function that replaces its tiles by zeros, those of the
    input before, or noise."""
    arithmetic = trace.arithmetic
    tiles = tiles_of_core(_op_of(trace, fault.nodes[0]).blocking, fault.core or (0, 0))
    noise = Random(seed)
    return {
        node: lambda value, before=before: _with_dead_core(arithmetic, value, before, fault.how, tiles, noise)
        for node, before in zip(fault.nodes, _values_before(trace, fault.nodes), strict=True)
    }


def _recompute_with_fault(trace: Trace, node: int, fault: Fault) -> Value:
    """Compute the result of the op at a node once more, with the fault in one of its units, and return it."""
    from buda_emu.testing.injection.inside_op import WatchedUnits

    assert isinstance(trace.arithmetic, OnDevice)
    return trace.recompute(node, WatchedUnits(trace.arithmetic.core, fault=fault))


def burst_noise(seed: int) -> int:
    """Return the bits of a burst that change, as a number whose lowest bit is the first that is stored."""
    return int.from_bytes(Random(seed).randbytes(FLIT_BYTES), "little")


def burst_masks(df: str, seed: int) -> NDArray[np.unsignedinteger[Any]]:
    """Return the bits of a burst that change, as one mask for each datum of format `df`."""
    width = FORMATS[df].bits
    noise = burst_noise(seed)
    masks = [noise >> place & ((1 << width) - 1) for place in range(0, 8 * FLIT_BYTES, width)]
    return np.array(masks, datum_type(df))


def _op_of(trace: Trace, node: int) -> Op:
    """Return the op whose result a node of the trace is."""
    step = trace.nodes[node].step
    assert isinstance(step, Run)
    return step.op


def tiles_of_core(blocking: Blocking, core: tuple[int, int]) -> Numbers:
    """Return the numbers of the tiles of a result that one core of its grid makes (OPS 2)."""
    t, rows, cols = blocking.shape
    numbers = np.arange(t * rows * cols).reshape(t, rows, cols)
    row = core[0] * blocking.block_rows
    col = core[1] * blocking.block_cols
    return numbers[:, row : row + blocking.block_rows, col : col + blocking.block_cols].reshape(-1)


def _values_before(trace: Trace, nodes: tuple[int, ...]) -> list[Value | None]:
    """Return, for each of these nodes of one op, the op's value for the input before; None for the first input."""
    op = _op_of(trace, nodes[0])
    steps = ((node, node.step) for node in trace.nodes[: nodes[0]])
    earlier = [node.value for node, step in steps if isinstance(step, Run) and step.op.name == op.name]
    values = [trace.nodes[node].value for node in nodes]
    return [earlier[-1] if earlier else None, *values[:-1]]


def _change_tile(arithmetic: Arithmetic, value: Value, fault: Fault, change: Callable[[Bits, Fault], None]) -> Value:
    """Return the value with the bits of the fault's tile changed by `change`, which changes them in place."""
    place = (slice(0, 1), slice(fault.tile, fault.tile + 1))
    bits = arithmetic.encode(value[place], fault.df)
    before = arithmetic.decode(bits.copy())
    change(bits, fault)
    return _with_changes_at(value, place, before, arithmetic.decode(bits))


def _with_changes_at(value: Value, place: tuple[slice, ...], before: Value, after: Value) -> Value:
    """Return a copy of the value in which the place (slices of inputs and tiles) holds `after`. In a value of floats
    only elements change in which `after` differs from `before`, as the value may have more bits than the format."""
    changed = value.copy()
    if isinstance(changed, Bits):
        changed.assign(place, after)
        return changed
    differ = before.view(np.uint32) != after.view(np.uint32)
    changed[place] = np.where(differ, after, changed[place])
    return changed


def _flip_bits(bits: Bits, fault: Fault) -> None:
    """Invert the fault's bits of one datum or shared exponent, in place. `bits` is one tile."""
    mask = sum(1 << bit for bit in fault.bits)
    if fault.exponent:
        assert bits.exponents is not None
        bits.exponents[0, 0, fault.datum] ^= np.uint8(mask)
    else:
        bits.datums[0, 0, fault.datum] ^= bits.datums.dtype.type(mask)


def _flip_burst(bits: Bits, fault: Fault, masks: NDArray[np.unsignedinteger[Any]]) -> None:
    """Invert, in place, the bits of `masks` in the 32 bytes that hold the fault's datum."""
    bits.datums[0, 0, flit_of(fault.df, fault.datum)] ^= masks


def _with_stuck_bit(arithmetic: Arithmetic, value: Value, fault: Fault, tiles: Numbers) -> Value:
    """Return the value with a bit of all datums of the tiles set to 0 or 1."""
    bits = arithmetic.encode(value, fault.df)
    before = arithmetic.decode(bits.copy())
    mask = bits.datums.dtype.type(1 << fault.bits[0])
    if fault.how == "1":
        bits.datums[0, tiles] |= mask
    else:
        bits.datums[0, tiles] &= ~mask
    everything = (slice(0, 1), slice(None))
    return _with_changes_at(value, everything, before, arithmetic.decode(bits))


def _misread(arithmetic: Arithmetic, value: Value, df: str) -> Value:
    """Return the value whose bits of format `df` are read as another format of the same width (`OTHER_FORMAT`)."""
    bits = arithmetic.encode(value, df)
    misread = Bits(OTHER_FORMAT[df], bits.datums, bits.exponents).values()
    return arithmetic.decode(Bits.encode(df, np.ascontiguousarray(misread, np.float32)))


def _with_broken_packet(arithmetic: Arithmetic, value: Value, fault: Fault) -> Value:
    """Return the value in which the fault's tile is lost, or 32 bytes of it, or is replaced by the tile before it."""
    if fault.how == "part lost":
        return _change_tile(arithmetic, value, fault, _clear_flit)
    if fault.how == "twice":
        source = value[0:1, fault.tile - 1 : fault.tile]
    else:
        source = _convert_like(arithmetic, value, np.zeros((1, 1, TILE_ELEMENTS), np.float32))
    return _with_tiles(value, np.array([fault.tile]), source)


def _clear_flit(bits: Bits, fault: Fault) -> None:
    """Set the 32 bytes of a tile that hold the fault's datum to 0, in place."""
    bits.datums[0, 0, flit_of(fault.df, fault.datum)] = 0


def _with_dead_core(
    arithmetic: Arithmetic, value: Value, before: Value | None, how: str, tiles: Numbers, noise: Random
) -> Value:
    """Return the value with the tiles of a core that does not work replaced: by zeros, noise, or those of `before`, the
    value for the input before ("stale")."""
    if how == "stale" and before is not None:
        return _with_tiles(value, tiles, before[0:1, tiles])
    numbers = np.zeros((1, len(tiles), TILE_ELEMENTS), np.float32)
    if how == "noise":
        words = np.frombuffer(noise.randbytes(numbers.size), np.uint8).reshape(numbers.shape)
        numbers = words.astype(np.float32) / np.float32(64) - np.float32(2)
    return _with_tiles(value, tiles, _convert_like(arithmetic, value, numbers))


def _convert_like(arithmetic: Arithmetic, value: Value, numbers: NDArray[np.float32]) -> Value:
    """Convert numbers, float32[1, n, 1024], to the representation of `value`: bits of its format, or floats."""
    if isinstance(value, Bits):
        return arithmetic.decode(Bits.encode(value.df, numbers))
    return numbers


def _with_tiles(value: Value, tiles: Numbers, source: Value) -> Value:
    """Return a copy of a value with the tiles of `source` at the tile numbers `tiles`."""
    changed = value.copy()
    if isinstance(changed, Bits):
        changed.assign((slice(0, 1), tiles), source)
    else:
        changed[0:1, tiles] = source
    return changed
