"""Inputs that ordinary data seldom has, but that a kernel has to get right (docs/stress/generate-netlists.md)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.inputs.default import InputBlock, default_inputs
from buda_emu.emulator.inputs.prepared import RunChoice, prepare_run
from buda_emu.emulator.inputs.sparse import encoding_tiles, sparse_shape
from buda_emu.emulator.inputs.stimulus import generator
from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.spec.formats import FORMATS, is_integer, is_raw
from buda_emu.spec.test_config import Stimulus
from buda_emu.support.errors import NetlistError

Values = NDArray[Any]
_Kind = Callable[[np.random.Generator, tuple[int, ...], bool], Values]
"""A function that draws float64 of a shape; the flag is set for formats whose exponents have 5 bits."""

with np.errstate(invalid="ignore"):
    _NAN: Final = np.float64(np.inf) - np.float64(np.inf)
    """The NaN that the processor makes. A sum of two different NaN may be either, so that only one is used."""
_SPECIAL: Final = (0.0, -0.0, np.inf, -np.inf, _NAN, 1e-45, -1e-40, 2.0**-126, 3.4e38, -65504.0, 6e-8, 1.0)
_FEW: Final = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1.5, -1.5, 3.0, 1.00390625, 1.01171875, -2.5)
"""Numbers that are equal or opposite, and halves of the last place of most formats."""
_SOME_STRIPS: Final = Stimulus("sparse_encoding", zero_strip_freq=0.3, zero_ublock_freq=0.3, zero_tile_freq=0.3)


def awkward_inputs(netlist: Netlist, seed: int) -> Iterator[InputBlock]:
    """Yield data for every queue that the host fills, to push as `emulator.push(block.queue, block.array,
    block.slot)`.

    The floats of a queue are of one kind: close together or far apart, at either end of the exponents, few different
    ones, all alike. In a quarter of the queues zeros are among them, and in half of the queues one in 30 or 1,000 is
    infinite, NaN, denormal or a zero of either sign. Even seeds have nothing below zero, infinite or NaN, as square
    roots demand. Integers go to the ends of their range. Sparse encodings have several strips, and their tiles mostly
    one element in each row. Row numbers stay legal row numbers. The data depends on `seed` and the queue's name.
    Raises the errors of `default_inputs`.
    """
    ready = prepare_run(netlist, RunChoice())
    sparse = [op for op in netlist.ops.values() if op.attributes.identity]
    readers: dict[str, tuple[Op, int]] = {}
    for op in sparse:
        readers |= {name: (op, position) for position, name in enumerate(op.inputs)}
    for block in default_inputs(netlist, ready.config, ready.bodies, ready.values, seed):
        yield _awkward_block(netlist, block, readers.get(block.queue), seed)


def _awkward_block(netlist: Netlist, block: InputBlock, reader: tuple[Op, int] | None, seed: int) -> InputBlock:
    """Return the block with awkward data of the same shape, or as it is where any other data would be illegal. `reader`
    is (the sparse op that reads the queue, the operand's number), None where there is none."""
    queue = netlist.queues[block.queue]
    op, position = reader or (None, -1)
    stream = generator(seed, f"awkward {queue.name}")
    if op is not None and position == 2:
        return _encode_strips(netlist, block, op, stream)
    if block.source != "default" or is_raw(queue.df):
        return block
    if is_integer(queue.df):
        return replace(block, array=_draw_integers(stream, block.array), source="awkward")
    values = _draw_floats(stream, queue, block.array.shape, plain=seed % 2 == 0)
    if op is not None and position == 0 and stream.random() < 0.7:
        values = _keep_one_in_a_row(stream, values)
    return replace(block, array=values, source="awkward")


def _encode_strips(netlist: Netlist, block: InputBlock, op: Op, stream: np.random.Generator) -> InputBlock:
    """Return the block with encodings of several strips for the sparse op `op`, or as it is where its tiles have no
    room."""
    source = netlist.queues.get(op.inputs[1]) or netlist.ops[op.inputs[1]]
    shape = sparse_shape(op, source.blocking.t)
    queue = netlist.queues[block.queue]
    try:
        encodings = [encoding_tiles(shape, _SOME_STRIPS, queue, stream) for _ in range(len(block.array))]
    except NetlistError:
        return block
    return replace(block, array=np.concatenate(encodings), source="awkward")


def _draw_integers(stream: np.random.Generator, array: Values) -> Values:
    """Draw integers of the shape and type of `array`, up to a bound of 2 to 32 bits; a push saturates them to the
    format."""
    bound = int(stream.choice([3, 127, 255, 70_000, (1 << 31) - 1]))
    values = stream.integers(-bound, bound, array.shape, endpoint=True)
    is_end = stream.random(array.shape) < 0.02
    return np.where(is_end, stream.choice([0, bound, -bound], array.shape), values).astype(array.dtype)


def _draw_floats(stream: np.random.Generator, queue: Queue, shape: tuple[int, ...], *, plain: bool) -> Values:
    """Draw float32 of one kind for a queue, now and then with zeros and special numbers among them; with `plain` none
    is negative, infinite or NaN."""
    small = FORMATS[queue.df].family == "a"
    values = _KINDS[int(stream.integers(len(_KINDS)))](stream, shape, small)
    values = np.where(stream.random(shape) < stream.choice([0.0, 0.0, 0.0, 0.4]), 0.0, values)
    share = float(stream.choice([0.0, 0.0, 1 / 1000, 1 / 30]))
    values = np.where(stream.random(shape) < share, stream.choice(_SPECIAL, shape), values)
    if plain:
        values = np.where(np.isfinite(values), np.abs(values), 1.0)
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _keep_one_in_a_row(stream: np.random.Generator, values: Values) -> Values:
    """Return float32 `values` with all but one element in each row of a tile set to 0. Those that remain mostly become
    one number, often 1."""
    *_, rows, cols = values.shape
    width = min(32, cols)
    places = stream.integers(0, width, (rows, cols // width)).repeat(width, axis=1)
    mask: NDArray[np.bool_] = np.equal(np.tile(np.arange(width), cols // width), places)
    alike = np.full_like(values, stream.choice([1.0, 1.0, 2.0**-126, 2.0**-14, 0.5, 2.0**15, 2.0**127]))
    return np.where(mask, alike if stream.random() < 0.7 else values, np.float32(0))


def _draw_signs(stream: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Draw 1.0 or -1.0 for each element, as likely."""
    return stream.choice([1.0, -1.0], shape)


def _close_together(stream: np.random.Generator, shape: tuple[int, ...], _small: bool) -> Values:
    """Draw numbers between -2 and 2, whose exponents are mostly alike."""
    return stream.uniform(-2.0, 2.0, shape)


def _far_apart(stream: np.random.Generator, shape: tuple[int, ...], small: bool) -> Values:
    """Draw numbers with exponents far apart, so that blocks with a shared exponent and sums lose small ones."""
    low, high = (-12, 8) if small else (-40, 40)
    return _draw_signs(stream, shape) * 2.0 ** stream.uniform(low, high, shape)


def _near_smallest(stream: np.random.Generator, shape: tuple[int, ...], small: bool) -> Values:
    """Draw numbers around the smallest normal one of the exponent's width, in half of the calls with subnormal ones."""
    least = -126
    if small:
        least = -14
    below = stream.integers(2)
    return _draw_signs(stream, shape) * 2.0 ** stream.uniform(least - below, least + 1 + below, shape)


def _near_largest(stream: np.random.Generator, shape: tuple[int, ...], small: bool) -> Values:
    """Draw numbers near the largest one of the exponent's width: of the last exponent, or of the last four."""
    limit = 128
    if small:
        limit = 16
    return _draw_signs(stream, shape) * 2.0 ** stream.uniform(limit - stream.choice((1, 4)), limit, shape)


def _half_way(stream: np.random.Generator, shape: tuple[int, ...], _small: bool) -> Values:
    """Draw powers of two, half of them plus 2^-8 of themselves: products and sums meet the ends of roundings."""
    return (
        _draw_signs(stream, shape) * 2.0 ** stream.integers(-3, 4, shape) * (1 + stream.integers(0, 2, shape) * 2.0**-8)
    )


def _few_distinct(stream: np.random.Generator, shape: tuple[int, ...], _small: bool) -> Values:
    """Draw each element from the few numbers of `_FEW`, so that many are equal or opposite."""
    return stream.choice(_FEW, shape)


def _all_alike(stream: np.random.Generator, shape: tuple[int, ...], _small: bool) -> Values:
    """Draw one number of `_FEW` and give it to all elements."""
    return np.full(shape, stream.choice(_FEW))


_KINDS: Final[tuple[_Kind, ...]] = (
    _close_together,
    _close_together,
    _far_apart,
    _far_apart,
    _near_smallest,
    _near_largest,
    _half_way,
    _few_distinct,
    _all_alike,
)
