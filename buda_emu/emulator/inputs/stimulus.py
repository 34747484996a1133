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
    """Generate `entries` entries from number `first_entry` on, float64 [entries, t, rows, cols] row-major; None for a
    type of stimulus that depends on an op. Only `Uniform` and `Normal` draw from `stream`, element by element, so that
    cutting the entries into several calls gives the same values. `integer`: bounds and values are integers (NETLIST
    5.1). Raises NetlistError when a needed field is missing."""
    make = _PLAIN.get(stimulus.type)
    if make is None:
        return None
    values = make(stimulus, blocking, first_entry, entries, integer, stream)
    if integer:
        values = np.trunc(values)
    return _clear_outside_ranges(stimulus, blocking, values)


def _required_fields(stimulus: Stimulus, *names: str) -> tuple[float, ...]:
    """Return these fields of a stimulus as numbers. Raises NetlistError for one that is not given."""
    values = tuple(float(getattr(stimulus, name)) for name in names)
    for name, value in zip(names, values, strict=True):
        if value != value:
            raise NetlistError(f"test-config: stimulus {stimulus.type} needs {name}")
    return values


def _shape_of_entries(blocking: Blocking, entries: int) -> tuple[int, ...]:
    """Return the shape [entries, t, rows, cols] in elements."""
    return (entries, *blocking.element_shape)


def _uniform_values(
    stimulus: Stimulus, blocking: Blocking, _first: int, entries: int, integer: bool, stream: np.random.Generator
) -> NDArray[np.float64]:
    """Draw entries uniformly between the bounds of the stimulus; `integer`: whole numbers, both bounds included."""
    low, high = _required_fields(stimulus, "uniform_lower_bound", "uniform_upper_bound")
    draws = stream.random(_shape_of_entries(blocking, entries))
    if integer:
        low = float(int(low))
        high = float(int(high))
        return np.floor(low + draws * (high - low + 1))
    return low + draws * (high - low)


def _normal_values(
    stimulus: Stimulus, blocking: Blocking, _first: int, entries: int, integer: bool, stream: np.random.Generator
) -> NDArray[np.float64]:
    """Draw entries from a normal distribution of the stimulus' mean and deviation; `integer` rounds half away from
    zero."""
    mean, deviation = _required_fields(stimulus, "normal_mean", "normal_stddev")
    draws = stream.standard_normal(_shape_of_entries(blocking, entries))
    if integer:
        values = float(int(mean)) + draws * float(int(deviation))
        return np.copysign(np.floor(np.abs(values) + 0.5), values)
    return mean + draws * deviation


def _constant_values(
    stimulus: Stimulus, blocking: Blocking, _first: int, entries: int, _integer: bool, _stream: np.random.Generator
) -> NDArray[np.float64]:
    """Return entries full of the one value of the stimulus."""
    (value,) = _required_fields(stimulus, "constant_value")
    return np.full(_shape_of_entries(blocking, entries), value)


def _tile_id_values(
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


def _step_values(
    stimulus: Stimulus, blocking: Blocking, first: int, entries: int, _integer: bool, _stream: np.random.Generator
) -> NDArray[np.float64]:
    """Return entries that count up from step_start by step_increment from element to element, tile by tile and over all
    entries of the queue, added up in single precision. `first`: the number of the first entry."""
    t, rows, cols = blocking.shape
    height, width = blocking.tile_dim
    per_entry = t * rows * cols * height * width
    values = np.full((first + entries) * per_entry, stimulus.step_increment, np.float32)
    values[0] = stimulus.step_start
    with np.errstate(over="ignore"):
        running = np.add.accumulate(values, dtype=np.float32)[first * per_entry :]  # in single precision, one by one
    tiles = running.reshape(entries, t, rows, cols, height, width)
    return tiles.transpose(0, 1, 2, 4, 3, 5).reshape(_shape_of_entries(blocking, entries)).astype(np.float64)


def _step_line(stimulus: Stimulus, tiles: int, size: int, offset: int) -> NDArray[np.float64]:
    """Return, for `tiles` tiles side by side, a value for each of their `size` places: step_start, plus step_increment
    for each place inside the tile, plus `offset` for each tile before (NETLIST 5.1)."""
    place = np.arange(tiles * size)
    return stimulus.step_start + (place // size) * offset + (place % size) * stimulus.step_increment


def _values_along_rows(
    stimulus: Stimulus, blocking: Blocking, _first: int, entries: int, _integer: bool, _stream: np.random.Generator
) -> NDArray[np.float64]:
    """Return entries whose values count up from step_start along each row: by step_increment from element to element
    inside a tile, and by the tile's width from one tile to the next. All rows and entries are the same."""
    _, width = blocking.tile_dim
    line = _step_line(stimulus, blocking.cols, width, width)
    return np.broadcast_to(line, _shape_of_entries(blocking, entries)).copy()


def _values_along_columns(
    stimulus: Stimulus, blocking: Blocking, _first: int, entries: int, _integer: bool, _stream: np.random.Generator
) -> NDArray[np.float64]:
    """Return entries whose values count up from step_start down each column: by step_increment from element to element
    inside a tile, and by the tile's width from one tile to the next. All columns and entries are the same."""
    height, width = blocking.tile_dim
    line = _step_line(stimulus, blocking.rows, height, width)
    return np.broadcast_to(line[:, None], _shape_of_entries(blocking, entries)).copy()


_PLAIN: Final = {
    "uniform": _uniform_values,
    "normal": _normal_values,
    "constant": _constant_values,
    "debugtileid": _tile_id_values,
    "step": _step_values,
    "steprowwise": _values_along_rows,
    "stepcolumnwise": _values_along_columns,
}


def _clear_outside_ranges(stimulus: Stimulus, blocking: Blocking, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Set elements outside the rows and columns of each tile that the stimulus names (set_tile_rows, set_tile_cols) to
    zero, in place, and return the array."""
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
