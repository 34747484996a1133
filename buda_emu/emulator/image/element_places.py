"""Places of a model's elements: sums of multiples of strides, and which numbers of an op's result they are.

A compiler chooses these places; an image carries them, so that errors are counted over the model's own elements."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from buda_emu.emulator.image.arrays import Array, np
from buda_emu.emulator.image.fields import FieldError, list_of, object_of, positive, required_field
from buda_emu.spec.blocking import TILE_EDGE

_AXES: Final = ("z", "r", "c")
"""The axes of a result [t, rows, columns], outermost first."""


Multiples = tuple[int, int]
"""The multiples of a stride from 0 on: how many there are, and the stride."""


def strided_places(pieces: Iterable[Multiples]) -> "Array":
    """Return the sums of one multiple of each stride, int64, those of the first stride outermost; 0 without strides."""
    places = np.zeros(1, np.int64)
    for count, stride in pieces:
        places = (places[:, None] + np.arange(count, dtype=np.int64) * stride).ravel()
    return places


def last_strided_place(pieces: Iterable[Multiples]) -> int:
    """Return the greatest of the sums of one multiple of each stride."""
    return sum((count - 1) * stride for count, stride in pieces)


def _read_axis(value: Any) -> str:
    """Return the name of an axis. Raises FieldError for any other value."""
    if value not in _AXES:
        raise FieldError("one of z, r, c")
    return value


@dataclass(frozen=True, slots=True)
class Repeat:
    """`size` places along an axis of the result ("z", "r" or "c"), `stride` elements apart."""

    axis: str = required_field(_read_axis)
    size: int = required_field(positive)
    stride: int = required_field(positive)


@dataclass(frozen=True, slots=True)
class ElementPlaces:
    """The places that elements of the model occupy in a result of `extent` [t, rows, columns], in elements: on each
    axis the sums of one place of each repeat along it."""

    extent: tuple[int, int, int] = required_field(list_of(positive, 3))
    repeats: tuple[Repeat, ...] = required_field(list_of(object_of(Repeat, closed=True)))

    @property
    def padding_share(self) -> float:
        """The share of the numbers of the result that are no elements of the model, from 0 to 1."""
        return 1 - prod(repeat.size for repeat in self.repeats) / prod(self.extent)

    @property
    def mask(self) -> "Array":
        """A mask [tiles, 1024] of the numbers in the tiles of the result that are elements of the model."""
        slices, rows, columns = (self._occupancy(axis) for axis in _AXES)
        occupied = slices[:, None, None] & rows[:, None] & columns
        t, height, width = self.extent
        by_tile = occupied.reshape(t, height // TILE_EDGE, TILE_EDGE, width // TILE_EDGE, TILE_EDGE)
        return by_tile.transpose(0, 1, 3, 2, 4).reshape(-1, TILE_EDGE**2)

    def along(self, axis: str) -> list[Multiples]:
        """Return the sizes and strides of the repeats along an axis."""
        return [(repeat.size, repeat.stride) for repeat in self.repeats if repeat.axis == axis]

    def _occupancy(self, axis: str) -> "Array":
        """Return for each position along an axis whether elements lie there."""
        occupied = np.zeros(self.extent[_AXES.index(axis)], np.bool_)
        occupied[strided_places(self.along(axis))] = True
        return occupied

    def as_json(self) -> dict[str, Any]:
        """Return the places as JSON for device.json."""
        repeats = [{"axis": repeat.axis, "size": repeat.size, "stride": repeat.stride} for repeat in self.repeats]
        return {"extent": list(self.extent), "repeats": repeats}


def read_element_places(value: Any) -> ElementPlaces:
    """Read places from JSON. Raises FieldError for other fields, an extent that is not in whole tiles, and places
    outside of it or more of them than it has."""
    places: ElementPlaces = object_of(ElementPlaces, closed=True)(value)
    extent = list(places.extent)
    if extent[1] % TILE_EDGE or extent[2] % TILE_EDGE:
        raise FieldError(f"rows and columns in whole tiles of {TILE_EDGE}").below("extent", extent)
    for axis, size in zip(_AXES, places.extent, strict=True):
        pieces = places.along(axis)
        if last_strided_place(pieces) >= size or prod(count for count, _ in pieces) > size:
            raise FieldError(f"places along {axis} below {size}").below("repeats", value["repeats"])
    return places
