"""Several sets of a model's inputs at once."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.image.model_io import ModelIo
from buda_emu.support.errors import HostError

Array = NDArray[Any]


def stream(io: ModelIo, arrays: Mapping[str, Array], at_once: int) -> Iterator[Sequence[Mapping[str, Array]]]:
    """The sets in rounds of at most `at_once`. Raises HostError where inputs hold different numbers of them."""
    count = sets_in(io, {label: array.shape for label, array in arrays.items()})
    shapes = {item.label: item.shape for item in io.inputs}
    for start in range(0, count, at_once):
        yield [
            {label: _part(array, shapes.get(label), number, count) for label, array in arrays.items()}
            for number in range(start, min(start + at_once, count))
        ]


def queues_of(io: ModelIo, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Entries of all sets, by queue. Raises HostError as `stream` and `ModelIo.queues`."""
    parts = [io.queues(one) for sets in stream(io, arrays, 1) for one in sets]
    return {name: joined([part[name] for part in parts]) for name in parts[0]}


def sets_in(io: ModelIo, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """How many sets are given: inputs hold N times the model's first dimension, or have one for the sets in front; one
    of the model's own shape goes with each. Raises HostError where inputs hold different numbers of them."""
    found = {item.label: _sets(item.shape, shapes[item.label]) for item in io.inputs if item.label in shapes}
    several = {label: count for label, count in found.items() if count is not None}
    if len(set(several.values())) > 1:
        told = ", ".join(f"{label} {several[label]}" for label in io.labels if label in several)
        raise HostError(f"inputs hold different numbers of the model's own: {told}")
    return next(iter(several.values()), 1)


def _sets(own: tuple[int, ...], given: tuple[int, ...]) -> int | None:
    """None: one for all, or refused when it is pushed."""
    if given == own or not given or not given[0]:
        return None
    if given[1:] == own:
        return given[0]
    if not own or given[1:] != own[1:] or given[0] % own[0]:
        return None
    return given[0] // own[0]


def _part(array: Array, shape: tuple[int, ...] | None, number: int, count: int) -> Array:
    if shape is None or array.shape == shape or _sets(shape, array.shape) != count:
        return array
    if array.shape[1:] == shape:
        return array[number]
    return array[number * shape[0] : (number + 1) * shape[0]]


def joined(parts: Sequence[Array]) -> Array:
    """Along the first dimension; numbers become a vector."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts[0].ndim else np.stack(parts)
