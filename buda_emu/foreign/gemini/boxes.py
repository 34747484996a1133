"""Boxes of elements: ranges N C H W with inclusive ends (facts GEMINI 2), and what a list of them covers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

Coordinates: TypeAlias = tuple[int, int, int, int]


class Box(NamedTuple):
    """A box of elements from `lower` to `upper`, both inclusive, in coordinates N C H W."""

    lower: Coordinates
    upper: Coordinates

    @property
    def shape(self) -> Coordinates:
        """The number of elements along N C H W."""
        (n0, c0, h0, w0), (n1, c1, h1, w1) = self
        return n1 - n0 + 1, c1 - c0 + 1, h1 - h0 + 1, w1 - w0 + 1

    @property
    def volume(self) -> int:
        """The number of elements in the box."""
        n, c, h, w = self.shape
        return n * c * h * w

    def inside(self, other: "Box") -> bool:
        """Return whether every element of this box is also in the other box."""
        return all(a >= b for a, b in zip(self.lower, other.lower, strict=True)) and all(
            a <= b for a, b in zip(self.upper, other.upper, strict=True)
        )

    def meets(self, other: "Box") -> bool:
        """Return whether the two boxes share an element."""
        (a0, a1, a2, a3), (b0, b1, b2, b3) = self
        (c0, c1, c2, c3), (d0, d1, d2, d3) = other
        return a0 <= d0 and c0 <= b0 and a1 <= d1 and c1 <= b1 and a2 <= d2 and c2 <= b2 and a3 <= d3 and c3 <= b3

    def common(self, other: "Box") -> "Box | None":
        """Return the intersection of the two boxes, or None where they share no element."""
        if not self.meets(other):
            return None
        return Box(_map_axes(max, self.lower, other.lower), _map_axes(min, self.upper, other.upper))

    def shift(self, by: Sequence[int]) -> "Box":
        """Return the box with `by` added to every coordinate."""
        a, b, c, d = by
        (n0, c0, h0, w0), (n1, c1, h1, w1) = self
        return Box((n0 + a, c0 + b, h0 + c, w0 + d), (n1 + a, c1 + b, h1 + c, w1 + d))

    def within(self, other: "Box") -> "Box":
        """Return the box in coordinates that count from the other box's lower corner."""
        return self.shift([-value for value in other.lower])

    def slices(self) -> tuple[slice, slice, slice, slice]:
        """Return the index that selects this box from an array N C H W."""
        a, b, c, d = (slice(low, high + 1) for low, high in zip(self.lower, self.upper, strict=True))
        return a, b, c, d

    def __str__(self) -> str:
        return f"{list(self.lower)}..{list(self.upper)}"


def _map_axes(choose: Callable[[int, int], int], first: Coordinates, second: Coordinates) -> Coordinates:
    """Return the coordinates that `choose`, max or min, picks from two, axis by axis."""
    a, b, c, d = (choose(x, y) for x, y in zip(first, second, strict=True))
    return a, b, c, d


ORIGIN: Coordinates = (0, 0, 0, 0)  # the lower corner of a box that is local


def box_of_shape(shape: Sequence[int]) -> Box:
    """Return the box that covers a tensor of shape N C H W."""
    a, b, c, d = shape
    return Box(ORIGIN, (a - 1, b - 1, c - 1, d - 1))


def hull(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around all boxes, of which there must be at least one."""
    first, *rest = boxes
    lower, upper = first
    for box in rest:
        lower = _map_axes(min, lower, box.lower)
        upper = _map_axes(max, upper, box.upper)
    return Box(lower, upper)


def overlapping_pairs(boxes: Sequence[Box]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of indices, in order, whose boxes share an element."""
    if sum(box.volume for box in boxes) <= 0:
        return
    for (i, a), (j, b) in combinations(enumerate(boxes), 2):
        if a.meets(b):
            yield i, j


def fills(boxes: Sequence[Box], target: Box) -> bool:
    """Return whether the boxes tile the target: all lie inside, none overlap, and the volumes add up."""
    return (
        sum(box.volume for box in boxes) == target.volume
        and all(box.inside(target) for box in boxes)
        and next(overlapping_pairs(boxes), None) is None
    )
