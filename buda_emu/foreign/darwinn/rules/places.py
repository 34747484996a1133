"""The places of the elements of outputs, and faults in them (DARWINN 7). Exact, and bounded for hostile maps.

Most layouts are plain tiles of rows, and are judged tile by tile. Others are judged row by row and column by column,
as long as all of a package have some millions together; a larger layout is reported as a fault: no compiler writes
one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Final

from buda_emu.foreign.darwinn.idl import Layer, OutputLayout, OutputShapeInfo, TensorLayout
from buda_emu.support.checker.text import plural

Problem = tuple[str, str, str]
"""A rule, the field of the layer, and the message."""
_MOST_STEPS: Final = 4_000_000  # rows of a layout, so that the check of a forged package ends


class _TooMuch(Exception):  # noqa: N818 - says what the layout is
    """An error for layouts that take more steps to judge than the budget has."""


class Budget:
    """A number of steps that the check of a package's layouts may still take."""

    def __init__(self, steps: int = _MOST_STEPS) -> None:
        self.steps = steps

    def take(self, steps: int) -> None:
        """Subtract steps from the budget. Raises _TooMuch where none are left."""
        self.steps -= steps
        if self.steps < 0:
            raise _TooMuch


def examine(
    layers: Iterable[tuple[str, str, Layer]], budget: Budget | None = None
) -> tuple[tuple[str, str, Layer, tuple[Problem, ...]], ...]:
    """Return each output, after the names of its executable and of itself, with the problems of its layout."""
    budget = budget or Budget()
    outputs: list[tuple[str, str, Layer, tuple[Problem, ...]]] = []
    for name, layer_name, layer in layers:
        if layer.output is None:
            continue
        rule = "D080" if layer.slices is not None else "D077"
        try:
            problems = tuple(_layer_problems(layer, budget))
        except _TooMuch:
            problems = ((rule, "any_layer", f"layouts of more than {_MOST_STEPS:,} rows are not judged"),)
        outputs.append((name, layer_name, layer, problems))
    return tuple(outputs)


def _layer_problems(layer: Layer, budget: Budget) -> Iterable[Problem]:
    """Yield the problems of an output's slices, or else of its layout. Other rules report layers without elements."""
    if layer.slices is not None:
        yield from _slice_problems(layer, layer.slices, budget)
        return
    signed = layer.element is not None and layer.element.signed
    flips_once = signed and layer.execution_count_per_inference > 1
    if flips_once:
        yield "D079", "data_type", "the driver flips the signs of the first execution only"
    if layer.y_dim == layer.x_dim == 1 or min(layer.y_dim, layer.x_dim) < 1:
        return
    maps = _maps_or_problem(layer)
    if isinstance(maps, str):
        yield "D076", "any_layer", maps
        return
    if layer.element is None or layer.z_dim < 1:
        return
    if layer.size_bytes < layer.y_dim * layer.x_dim * layer.z_dim * layer.element.size:
        return  # D072
    yield from _map_problems(maps, layer.size_bytes, layer.element.size, budget, flips_once)


def _maps_or_problem(layer: Layer) -> "Maps | str":
    """Return the maps of an output's layout, or a text that says why there are none."""
    if layer.output is None or layer.output.layout is None:
        return "there is no layout"
    return maps_of(layer, layer.output.layout)


def _map_problems(maps: "Maps", room: int, size: int, budget: Budget, flips_once: bool) -> Iterable[Problem]:
    """Yield the problems of complete maps for an output of `room` bytes with elements of `size` bytes. With
    `flips_once`, D079 was reported for the signs and the driver's walk is not followed."""
    budget.take(len(maps.ytile) + len(maps.xtile))
    outside = maps.outside(room // size, budget)
    if outside:
        yield "D077", "any_layer", outside
        return
    overlap = maps.overlap(budget)
    if overlap:
        yield "D078", "any_layer", overlap
    if not flips_once:
        difference = maps.driver_difference(size)
        if difference:
            yield "D079", "any_layer", difference


def _least_distance(values: Sequence[int]) -> int:
    """Return the distance of the nearest two values; for a single value a distance beyond any tile."""
    return min((b - a for a, b in pairwise(sorted(values))), default=1 << 62)


class _Rows:
    """The rows of one tile id by their places in the tile."""

    def __init__(self, local: list[int]) -> None:
        self.low = min(local)
        self.high = max(local)
        self.gap = _least_distance(local)


class _Columns:
    """The columns of one tile id. `row_size` is None where they have several."""

    def __init__(self, columns: list[tuple[int, int]]) -> None:
        self.columns = columns  # place, row size
        local = [place for place, _ in columns]
        self.low = min(local)
        self.high = max(local)
        self.gap = _least_distance(local)
        sizes = {size for _, size in columns}
        self.row_size = sizes.pop() if len(sizes) == 1 else None

    def span(self, rows: _Rows) -> tuple[int, int]:
        """Return the first and the last place, in elements from the tile's beginning, at which these columns of the
        rows begin."""
        if self.row_size is not None:
            ends = rows.low * self.row_size, rows.high * self.row_size
            return min(ends) + self.low, max(ends) + self.high
        return (
            min(place + min(rows.low * size, rows.high * size) for place, size in self.columns),
            max(place + max(rows.low * size, rows.high * size) for place, size in self.columns),
        )


@dataclass(frozen=True)
class Maps:
    """The six maps of a layout, cut to its dimensions; all in elements."""

    z: int
    ytile: Sequence[int]
    xtile: Sequence[int]
    offset: Sequence[int]
    xlocal: Sequence[int]
    ylocal: Sequence[int]
    rowsize: Sequence[int]

    def index(self, y: int, x: int) -> int:
        """Return the place of element (y, x, 0), in elements from the beginning of the output."""
        return self.offset[self.ytile[y] + self.xtile[x]] + self.ylocal[y] * self.rowsize[x] + self.xlocal[x]

    @cached_property
    def rows(self) -> dict[int, _Rows]:
        """The rows by tile id."""
        places: dict[int, list[int]] = defaultdict(list)
        for tile, local in zip(self.ytile, self.ylocal, strict=True):
            places[tile].append(local)
        return {tile: _Rows(local) for tile, local in places.items()}

    @cached_property
    def columns(self) -> dict[int, _Columns]:
        """The columns by tile id."""
        places: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for tile, local, size in zip(self.xtile, self.xlocal, self.rowsize, strict=True):
            places[tile].append((local, size))
        return {tile: _Columns(columns) for tile, columns in places.items()}

    def tiles(self, budget: Budget) -> Iterator[tuple[int, _Rows, _Columns]]:
        """Yield number, rows and columns of every tile in use. Raises _TooMuch beyond the budget, as do the methods
        that take one."""
        for above, rows in self.rows.items():
            for beside, columns in self.columns.items():
                budget.take(1 if columns.row_size is not None else len(columns.columns))
                yield above + beside, rows, columns

    def outside(self, room: int, budget: Budget) -> str:
        """Describe the first element outside of `room` elements, or the first tile without offset; "" for none."""
        for tile, rows, columns in self.tiles(budget):
            if not 0 <= tile < len(self.offset):
                return f"tile {tile} has no offset: there are {len(self.offset)}"
            low, high = columns.span(rows)
            first = self.offset[tile] + low
            last = self.offset[tile] + high + self.z - 1
            if first < 0 or last >= room:
                return f"elements {first} to {last} of tile {tile} are not within 0 to {room - 1}"
        return ""

    def overlap(self, budget: Budget) -> str:
        """Describe the first place that holds two elements; "" for none."""
        if self._is_certainly_apart(budget):
            return ""
        budget.take(len(self.ytile) * len(self.xtile))
        columns = list(zip(self.xtile, self.rowsize, self.xlocal, strict=True))
        starts: list[int] = []
        for above, local in zip(self.ytile, self.ylocal, strict=True):
            starts += [self.offset[above + beside] + local * size + place for beside, size, place in columns]
        starts.sort()
        for first, second in pairwise(starts):
            if second - first < self.z:
                return f"two elements lie at element {second}"
        return ""

    def _is_certainly_apart(self, budget: Budget) -> bool:
        """Return whether tiles, their rows and the columns in rows are apart: then no place holds two elements."""
        spans: list[tuple[int, int]] = []
        for tile, rows, columns in self.tiles(budget):
            wide = columns.high - columns.low + self.z
            one_row = rows.low == rows.high and rows.gap > 0
            if columns.gap < self.z or not (one_row or rows.gap * (columns.row_size or 0) >= wide):
                return False
            low, high = columns.span(rows)
            spans.append((self.offset[tile] + low, self.offset[tile] + high + self.z))
        spans.sort()
        return all(first[1] <= second[0] for first, second in pairwise(spans))

    def driver_difference(self, size: int) -> str:
        """Describe where the driver's walk through the layout leaves the maps; "" where it does not. `size` is in
        bytes.

        The driver goes through runs of columns of equal tile id in constant steps, and copies at once all rows that it
        takes for contiguous (DARWINN 7).
        """
        element_bytes = self.z * size
        if len(self.xtile) > 1:
            neighbour = self.index(0, 1)
        else:
            neighbour = self.index(1, 0)
        step = (neighbour - self.index(0, 0)) * size
        # The driver takes z values of 1 or 3 bytes to be padded to 4 (DARWINN 7).
        if element_bytes != step and element_bytes in (1, 3):
            step = 4
        runs = self._runs()
        if step == element_bytes and len(runs) == 1 and self.ytile[0] == self.ytile[-1]:
            row = self._first_row_apart()
            if row is not None:
                return f"row {row} does not follow the row before it, and all is copied at once"
        for start, end in runs:
            for x in range(start + 1, end):
                if not self._follows(start, x, (x - start) * step, size):
                    return f"column {x} is not {x - start} steps of {step} bytes after column {start}"
        return ""

    def _first_row_apart(self) -> int | None:
        """Return the first row that does not follow the row before it without a gap; None if all do."""
        across = len(self.xtile) * self.z
        first = self.index(0, 0)
        return next((y for y in range(len(self.ytile)) if self.index(y, 0) != first + y * across), None)

    def _follows(self, start: int, x: int, distance: int, size: int) -> bool:
        """Return whether, in every row, column `x` is `distance` bytes after column `start` of the same tile id."""
        lean = self.rowsize[x] - self.rowsize[start]
        place = self.xlocal[x] - self.xlocal[start]
        rows = self._row_places if lean else frozenset((0,))
        return all((local * lean + place) * size == distance for local in rows)

    @cached_property
    def _row_places(self) -> frozenset[int]:
        """The distinct places of rows in their tiles."""
        return frozenset(self.ylocal)

    def _runs(self) -> list[tuple[int, int]]:
        """Return start and end of each stretch of columns of equal tile id."""
        cuts = [x for x in range(1, len(self.xtile)) if self.xtile[x] != self.xtile[x - 1]]
        return list(pairwise([0, *cuts, len(self.xtile)]))


def maps_of(layer: Layer, layout: OutputLayout) -> Maps | str:
    """Return the maps as far as the layer's dimensions go, or a message about the one that is too short."""
    cut: dict[str, Sequence[int]] = {}
    for name, length in (
        ("y_coordinate_to_linear_tile_id_map", layer.y_dim),
        ("y_coordinate_to_local_y_offset", layer.y_dim),
        ("x_coordinate_to_linear_tile_id_map", layer.x_dim),
        ("x_coordinate_to_local_byte_offset", layer.x_dim),
        ("x_coordinate_to_local_y_row_size", layer.x_dim),
    ):
        values: Sequence[int] = getattr(layout, name) or ()
        if len(values) < length:
            return f"{name} has {len(values)} of {length} entries"
        cut[name] = values[:length]
    return Maps(
        z=layer.z_dim,
        ytile=cut["y_coordinate_to_linear_tile_id_map"],
        xtile=cut["x_coordinate_to_linear_tile_id_map"],
        offset=layout.linearized_tile_byte_offset or (),
        xlocal=cut["x_coordinate_to_local_byte_offset"],
        ylocal=cut["y_coordinate_to_local_y_offset"],
        rowsize=cut["x_coordinate_to_local_y_row_size"],
    )


Box = tuple[tuple[int, int], ...]


def _slice_problems(layer: Layer, info: OutputShapeInfo, budget: Budget) -> Iterable[Problem]:
    """Yield the first problem of a sliced output, if there is one (D080)."""
    shape: Box = tuple(layer.shape.dimension or ()) if layer.shape is not None else ()
    if any(start > end for start, end in shape):
        return  # D081
    layouts = info.slice_layout or ()
    offsets = info.slice_offset or ()
    wrong = ""
    if not shape:
        wrong = "there are slices, but no shape"
    elif len(layouts) != len(offsets):
        wrong = f"{plural(len(layouts), 'slice')} with {plural(len(offsets), 'offset')}"
    elif layer.element is not None:
        wrong = _wrong_slices(layouts, offsets, shape, layer.element.size, layer.size_bytes, budget)
    if wrong:
        yield "D080", "any_layer", wrong


def _wrong_slices(
    layouts: Sequence[TensorLayout], offsets: Sequence[int], shape: Box, size: int, room: int, budget: Budget
) -> str:
    """Describe the first slice that is wrong by itself, or else the cover of the shape; "" where nothing is wrong.
    An element has `size` bytes, the layer `room`."""
    for number, (layout, offset) in enumerate(zip(layouts, offsets, strict=True)):
        budget.take(1 + len(shape))
        wrong = wrong_slice(layout, offset, shape, size, room)
        if wrong:
            return f"slice {number}: {wrong}"
    boxes = [tuple(layout.shape.dimension or ()) for layout in layouts if layout.shape]
    return _not_a_cover(boxes, shape, budget)


def wrong_slice(layout: TensorLayout, offset: int, shape: Box, size: int, room: int) -> str:
    """Describe what is wrong with a slice by itself; "" for nothing. An element has `size` bytes, the layer `room`."""
    box: Box = ()
    if layout.shape is not None:
        box = tuple(layout.shape.dimension or ())
    stride = tuple(layout.stride or ())
    if not len(box) == len(stride) == len(shape):
        return f"{plural(len(box), 'range')} and {plural(len(stride), 'stride')} for {plural(len(shape), 'dimension')}"
    lengths = [end - start + 1 for start, end in box]
    if min(lengths) < 1:
        return "an empty range"
    if not _is_within(box, shape):
        return "it is not within the layer's shape"
    if not _rows_are_apart(stride, lengths):
        return f"strides {'/'.join(map(str, stride))} for lengths {'/'.join(map(str, lengths))}"
    if offset % size:
        return f"offset {offset} is not a multiple of {size}"
    end = offset + (sum(s * (n - 1) for s, n in zip(stride, lengths, strict=True)) + 1) * size
    if offset < 0 or end > room:
        return f"bytes {offset} to {end - 1} of {room}"
    return ""


def _is_within(box: Box, shape: Box) -> bool:
    """Return whether a box lies within a shape; ends are included."""
    return all(inner[0] >= outer[0] and inner[1] <= outer[1] for inner, outer in zip(box, shape, strict=True))


def _rows_are_apart(stride: Sequence[int], lengths: Sequence[int]) -> bool:
    """Return whether each stride passes all elements of the dimensions after it, so that no place is used twice."""
    return stride[-1] >= 1 and all(stride[i] >= stride[i + 1] * lengths[i + 1] for i in range(len(stride) - 1))


def _not_a_cover(boxes: list[Box], shape: Box, budget: Budget) -> str:
    """Describe an overlap of boxes, or how many elements of the shape are in none; "" when they are just the shape."""
    order = sorted(boxes)
    for number, box in enumerate(order):
        for other in order[number + 1 :]:
            budget.take(1)
            if other[0][0] > box[0][1]:
                break
            if all(a[0] <= b[1] and b[0] <= a[1] for a, b in zip(box, other, strict=True)):
                return f"two slices hold element {[max(a[0], b[0]) for a, b in zip(box, other, strict=True)]}"
    have = sum(_volume(box) for box in boxes)
    want = _volume(shape)
    if have == want:
        return ""
    return f"the slices hold {have} of {want} elements"


def _volume(box: Box) -> int:
    """Return the number of elements in a box."""
    return prod(end - start + 1 for start, end in box)
