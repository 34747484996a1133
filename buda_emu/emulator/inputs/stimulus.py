"""Generates the data that a stimulus of a test-config describes (NETLIST 5.1).

Random streams are our own (seeded for each queue by its name), not libstdc++'s: bit equality with the vendor's harness
is not claimed for `Uniform` and `Normal`."""

import zlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.spec.blocking import Blocking
from buda_emu.spec.test_config import Stimulus
from buda_emu.support.errors import NetlistError


def generator(seed: int, name: str) -> np.random.Generator:
    """Return the random stream of one queue, which depends on the seed and the queue's name only."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, zlib.crc32(name.encode())])))


def plain_values(
    stimulus: Stimulus, blocking: Blocking, first_entry: int, entries: int, integer: bool, stream: np.random.Generator
) -> NDArray[np.float64] | None:
    """Generate a run of entries, float64 [entries, t, rows, cols] row-major; None for a stimulus of another kind.

    Only `Uniform` and `Normal` draw from `stream`, element by element: any cut into runs gives the same values.
    `integer`: bounds and values are integers (NETLIST 5.1). Raises NetlistError when a bound is missing."""
    make = _PLAIN.get(stimulus.type)
    if make is None:
        return None
    values = make(stimulus, blocking, first_entry, entries, integer, stream)
    if integer:
        values = np.trunc(values)
    return _inside_ranges(stimulus, blocking, values)


def _required_fields(stimulus: Stimulus, *names: str) -> tuple[float, ...]:
    """Return these fields of a stimulus as numbers. Raises NetlistError for one that is not given."""
    values = tuple(float(getattr(stimulus, name)) for name in names)
    for name, value in zip(names, values, strict=True):
        if value != value:
            raise NetlistError(f"test-config: stimulus {stimulus.type} needs {name}")
    return values


def _shape(blocking: Blocking, entries: int) -> tuple[int, ...]:
    """Return the shape [entries, t, rows, cols] in elements."""
    return (entries, *blocking.element_shape)


def _uniform(
    stimulus: Stimulus, blocking: Blocking, _first: int, entries: int, integer: bool, stream: np.random.Generator
) -> NDArray[np.float64]:
    """Draw entries from the range of the stimulus' bounds; `integer`: whole numbers, with both bounds included."""
    low, high = _required_fields(stimulus, "uniform_lower_bound", "uniform_upper_bound")
    draws = stream.random(_shape(blocking, entries))
    if integer:
        low = float(int(low))
        high = float(int(high))
        return np.floor(low + draws * (high - low + 1))
    return low + draws * (high - low)


def _normal(
    stimulus: Stimulus, blocking: Blocking, _first: int, entries: int, integer: bool, stream: np.random.Generator
) -> NDArray[np.float64]:
    """Draw entries from a normal distribution of the stimulus' mean and deviation; `integer` rounds half away from
    zero."""
    mean, deviation = _required_fields(stimulus, "normal_mean", "normal_stddev")
    draws = stream.standard_normal(_shape(blocking, entries))
    if integer:
        values = float(int(mean)) + draws * float(int(deviation))
        return np.copysign(np.floor(np.abs(values) + 0.5), values)
    return mean + draws * deviation


def _constant(
    stimulus: Stimulus, blocking: Blocking, _first: int, entries: int, _integer: bool, _stream: np.random.Generator
) -> NDArray[np.float64]:
    """Return entries full of the one value of the stimulus."""
    (value,) = _required_fields(stimulus, "constant_value")
    return np.full(_shape(blocking, entries), value)


def _debug_tile_id(
    stimulus: Stimulus, blocking: Blocking, first: int, entries: int, _integer: bool, _stream: np.random.Generator
) -> NDArray[np.float64]:
    """Return entries whose tiles are full of base + step * the tile's number, counted over all entries of the queue;
    `first`: the number of the first entry."""
    base, step = _required_fields(stimulus, "debug_tile_id_base", "debug_tile_id_step")
    t, rows, cols = blocking.shape
    height, width = blocking.tile_dim
    numbers = np.arange(first * t * rows * cols, (first + entries) * t * rows * cols, dtype=np.float64)
    tiles = (base + step * numbers).reshape(entries, t, rows, cols)
    return tiles.repeat(height, axis=2).repeat(width, axis=3)


def _step(
    stimulus: Stimulus, blocking: Blocking, first: int, entries: int, _integer: bool, _stream: np.random.Generator
) -> NDArray[np.float64]:
    """Return entries that count up from element to element, tile by tile and over all entries, by additions in single
    precision; `first`: the number of the first entry."""
    t, rows, cols = blocking.shape
    height, width = blocking.tile_dim
    per_entry = t * rows * cols * height * width
    values = np.full((first + entries) * per_entry, stimulus.step_increment, np.float32)
    values[0] = stimulus.step_start
    with np.errstate(over="ignore"):
        running = np.add.accumulate(values, dtype=np.float32)[first * per_entry :]  # in single precision, one by one
    tiles = running.reshape(entries, t, rows, cols, height, width)
    return tiles.transpose(0, 1, 2, 4, 3, 5).reshape(_shape(blocking, entries)).astype(np.float64)


def _step_line(stimulus: Stimulus, tiles: int, size: int, offset: int) -> NDArray[np.float64]:
    """Return a value for each of `size` places in each of `tiles` tiles: the start of the stimulus plus its increment
    for each place, and `offset` for each tile, unscaled (NETLIST 5.1)."""
    place = np.arange(tiles * size)
    return stimulus.step_start + (place // size) * offset + (place % size) * stimulus.step_increment


def _step_rowwise(
    stimulus: Stimulus, blocking: Blocking, _first: int, entries: int, _integer: bool, _stream: np.random.Generator
) -> NDArray[np.float64]:
    """Return entries that count up along each row, the same in all rows."""
    _, width = blocking.tile_dim
    line = _step_line(stimulus, blocking.cols, width, width)
    return np.broadcast_to(line, _shape(blocking, entries)).copy()


def _step_columnwise(
    stimulus: Stimulus, blocking: Blocking, _first: int, entries: int, _integer: bool, _stream: np.random.Generator
) -> NDArray[np.float64]:
    """Return entries that count up down each column, the same in all columns."""
    height, width = blocking.tile_dim
    line = _step_line(stimulus, blocking.rows, height, width)
    return np.broadcast_to(line[:, None], _shape(blocking, entries)).copy()


_PLAIN: Final = {
    "uniform": _uniform,
    "normal": _normal,
    "constant": _constant,
    "debugtileid": _debug_tile_id,
    "step": _step,
    "steprowwise": _step_rowwise,
    "stepcolumnwise": _step_columnwise,
}


def _inside_ranges(stimulus: Stimulus, blocking: Blocking, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values with zeros outside the rows and columns of each tile that the stimulus sets (set_tile_rows,
    set_tile_cols)."""
    for axis, (first, last), size in (
        (2, stimulus.set_tile_rows, blocking.tile_dim[0]),
        (3, stimulus.set_tile_cols, blocking.tile_dim[1]),
    ):
        if (first, last) == (1, 32):
            continue
        inside: NDArray[np.int64] = np.arange(values.shape[axis], dtype=np.int64) % size
        outside: NDArray[np.bool_] = (inside < first - 1) | (inside > last - 1)
        values[(slice(None),) * axis + (outside,)] = 0.0
    return values
