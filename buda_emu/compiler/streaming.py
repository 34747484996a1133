"""Several sets of inputs in one call."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from buda_emu.compiler.graph.graph import Array
from buda_emu.errors import HostError
from buda_emu.image.model_io import ModelIo


def stream(io: ModelIo, arrays: Mapping[str, Array], at_once: int) -> Iterator[Sequence[Mapping[str, Array]]]:
    """The sets in rounds of at most `at_once`. Raises HostError where inputs hold different numbers of them."""
    count = _count(io, arrays)
    shapes = {item.label: item.shape for item in io.inputs}
    for start in range(0, count, at_once):
        yield [
            {label: _part(array, shapes.get(label), number, count) for label, array in arrays.items()}
            for number in range(start, min(start + at_once, count))
        ]


def _count(io: ModelIo, arrays: Mapping[str, Array]) -> int:
    found: dict[str, int] = {}
    for item in io.inputs:
        array = arrays.get(item.label)
        if array is None or array.shape == item.shape or not item.shape or array.shape[1:] != item.shape[1:]:
            continue  # one for all, or refused when it is pushed
        if array.shape[0] % item.shape[0] == 0 and array.shape[0]:
            found[item.label] = array.shape[0] // item.shape[0]
    if len(set(found.values())) > 1:
        told = ", ".join(f"{label} {count}" for label, count in found.items())
        raise HostError(f"inputs hold different numbers of the model's own: {told}")
    return next(iter(found.values()), 1)


def _part(array: Array, shape: tuple[int, ...] | None, number: int, count: int) -> Array:
    if shape is None or array.shape == shape or not shape or array.shape != (count * shape[0], *shape[1:]):
        return array
    return array[number * shape[0] : (number + 1) * shape[0]]


def joined(parts: Sequence[Array]) -> Array:
    """Along the first dimension; numbers become a vector."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts[0].ndim else np.stack(parts)
