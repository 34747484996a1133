"""Several sets of a model's inputs in one array of each input."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.image.model_io import ModelIo
from buda_emu.support.errors import HostError

Array = NDArray[Any]


def split_into_rounds(
    io: ModelIo, arrays: Mapping[str, Array], at_once: int
) -> Iterator[Sequence[Mapping[str, Array]]]:
    """Yield the sets of inputs in rounds of at most `at_once`; a set is one array for each input, by label. Raises
    HostError where inputs hold different numbers of sets."""
    count = count_sets(io, {label: array.shape for label, array in arrays.items()})
    shapes = {label: entry.shape for label, entry in io.descriptions.items()}
    for start in range(0, count, at_once):
        yield [
            {label: _part_of_set(array, shapes.get(label), number, count) for label, array in arrays.items()}
            for number in range(start, min(start + at_once, count))
        ]


def queues_of(io: ModelIo, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the entries to push, by queue, for all sets of inputs that arrays by label hold. Raises HostError where
    inputs hold different numbers of sets, and as `ModelIo.queues`."""
    parts = [io.queues(arrays_of_set) for arrays_of_set in chain.from_iterable(split_into_rounds(io, arrays, 1))]
    return {name: join_sets([part[name] for part in parts]) for name in parts[0]}


def count_sets(io: ModelIo, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Return how many sets the inputs hold. An input with N sets has N times the first dimension of the model's shape,
    or a dimension of size N in front of that shape; an input of the model's shape itself is used with every set. Raises
    HostError where inputs hold different numbers of sets."""
    counts = {
        label: _set_count(entry.shape, shapes[label]) for label, entry in io.descriptions.items() if label in shapes
    }
    several = {label: count for label, count in counts.items() if count is not None}
    if len(set(several.values())) > 1:
        numbers = ", ".join(f"{label} {several[label]}" for label in io.labels if label in several)
        raise HostError(f"inputs hold different numbers of the model's own: {numbers}")
    return next(iter(several.values()), 1)


def _set_count(model_shape: tuple[int, ...], shape: tuple[int, ...]) -> int | None:
    """Return the number of sets that an input of this shape holds; None for an input that every set uses, and for one
    of another shape, which is refused later when it is pushed."""
    if shape == model_shape or not shape or not shape[0]:
        return None
    if shape[1:] == model_shape:
        return shape[0]
    if not model_shape or shape[1:] != model_shape[1:] or shape[0] % model_shape[0]:
        return None
    return shape[0] // model_shape[0]


def _part_of_set(array: Array, shape: tuple[int, ...] | None, number: int, count: int) -> Array:
    """Return the part of an input's array that belongs to set `number` of `count`, or all of it if every set uses the
    input. `shape`: the shape that the model states for the input, None for an input that the model does not have."""
    if shape is None or array.shape == shape or _set_count(shape, array.shape) != count:
        return array
    if array.shape[1:] == shape:
        return array[number]
    return array[number * shape[0] : (number + 1) * shape[0]]


def join_sets(parts: Sequence[Array]) -> Array:
    """Concatenate the arrays of several sets along the first dimension; arrays without dimensions become a vector."""
    if len(parts) == 1:
        return parts[0]
    if parts[0].ndim:
        return np.concatenate(parts)
    return np.stack(parts)
