"""Where the elements of outputs lie, and what is wrong with it (DARWINN 7). Exact, and bounded for hostile maps.

Most layouts are plain tiles of rows, and are judged tile by tile. Others are judged row by row and column by column, as
long as all of a package have some millions together; beyond, that is said as a fault: no compiler writes such a layout.
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
"""A rule, the field of the layer, and what is wrong."""
_MOST_STEPS: Final = 4_000_000


class _TooMuch(Exception):  # noqa: N818 - says what the layout is
    """The layouts of a package are too large to judge."""


class Budget:
    """Steps that are left."""

    def __init__(self, steps: int = _MOST_STEPS) -> None:
        self.steps = steps

    def take(self, steps: int) -> None:
        """Use some up."""
        self.steps -= steps
        if self.steps < 0:
            raise _TooMuch


def examine(
    layers: Iterable[tuple[str, str, Layer]], budget: Budget | None = None
) -> tuple[tuple[str, str, Layer, tuple[Problem, ...]], ...]:
    """Each output with its problems."""
    budget = budget or Budget()
    found: list[tuple[str, str, Layer, tuple[Problem, ...]]] = []
    for name, which, layer in layers:
        if layer.output is None:
            continue
        rule = "D080" if layer.slices is not None else "D077"
        try:
            problems = tuple(_of_layer(layer, budget))
        except _TooMuch:
            problems = ((rule, "any_layer", f"layouts of more than {_MOST_STEPS:,} rows are not judged"),)
        found.append((name, which, layer, problems))
    return tuple(found)


def _of_layer(layer: Layer, budget: Budget) -> Iterable[Problem]:
    if layer.slices is not None:
        yield from _of_slices(layer, layer.slices, budget)
        return
    signed = layer.element is not None and layer.element.signed
    flips = signed and layer.execution_count_per_inference > 1
    if flips:
        yield "D079", "data_type", "the driver flips the signs of the first execution only"
    if layer.y_dim == layer.x_dim == 1:
        return
    layout = layer.output.layout if layer.output else None
    maps = None if layout is None or min(layer.y_dim, layer.x_dim) < 1 else maps_of(layer, layout)
    if isinstance(maps, str) or (layout is None and min(layer.y_dim, layer.x_dim) >= 1):
        yield "D076", "any_layer", maps if isinstance(maps, str) else "there is no layout"
        return
    if maps is None or layer.element is None or layer.z_dim < 1:
        return
    if layer.size_bytes < layer.y_dim * layer.x_dim * layer.z_dim * layer.element.size:
        return  # D072
    budget.take(layer.y_dim + layer.x_dim)
    outside = maps.outside(layer.size_bytes // layer.element.size, budget)
    if outside:
        yield "D077", "any_layer", outside
        return
    shared = maps.shared(budget)
    if shared:
        yield "D078", "any_layer", shared
    if not flips:
        wrong = maps.driver_differs(layer.element.size)
        if wrong:
            yield "D079", "any_layer", wrong


def _gap(values: Sequence[int]) -> int:
    """How far the nearest two lie apart; beyond any tile where there is one alone."""
    return min((b - a for a, b in pairwise(sorted(values))), default=1 << 62)


class _Rows:
    """The rows of one tile id, by their place in it."""

    def __init__(self, local: list[int]) -> None:
        self.low = min(local)
        self.high = max(local)
        self.gap = _gap(local)


class _Columns:
    """The columns of one tile id. `row_size`: None where they have several."""

    def __init__(self, columns: list[tuple[int, int]]) -> None:
        self.columns = columns  # place, row size
        local = [place for place, _ in columns]
        self.low = min(local)
        self.high = max(local)
        self.gap = _gap(local)
        sizes = {size for _, size in columns}
        self.row_size = sizes.pop() if len(sizes) == 1 else None

    def span(self, rows: _Rows) -> tuple[int, int]:
        """The first and the last place of these rows and columns."""
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
        """Where element (y, x, 0) lies."""
        return self.offset[self.ytile[y] + self.xtile[x]] + self.ylocal[y] * self.rowsize[x] + self.xlocal[x]

    @cached_property
    def rows(self) -> dict[int, _Rows]:
        """By tile id."""
        found: dict[int, list[int]] = defaultdict(list)
        for tile, local in zip(self.ytile, self.ylocal, strict=True):
            found[tile].append(local)
        return {tile: _Rows(local) for tile, local in found.items()}

    @cached_property
    def columns(self) -> dict[int, _Columns]:
        """By tile id."""
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for tile, local, size in zip(self.xtile, self.xlocal, self.rowsize, strict=True):
            found[tile].append((local, size))
        return {tile: _Columns(columns) for tile, columns in found.items()}

    def tiles(self, budget: Budget) -> Iterator[tuple[int, _Rows, _Columns]]:
        """Every tile in use: its number, rows and columns."""
        for above, rows in self.rows.items():
            for beside, columns in self.columns.items():
                budget.take(1 if columns.row_size is not None else len(columns.columns))
                yield above + beside, rows, columns

    def outside(self, room: int, budget: Budget) -> str:
        """What lies outside of `room` elements, or has no tile; "" for nothing."""
        for tile, rows, columns in self.tiles(budget):
            if not 0 <= tile < len(self.offset):
                return f"tile {tile} has no offset: there are {len(self.offset)}"
            low, high = columns.span(rows)
            first = self.offset[tile] + low
            last = self.offset[tile] + high + self.z - 1
            if first < 0 or last >= room:
                return f"elements {first} to {last} of tile {tile} are not within 0 to {room - 1}"
        return ""

    def shared(self, budget: Budget) -> str:
        """Two elements at one place; "" where there are none."""
        if self._plain(budget):
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

    def _plain(self, budget: Budget) -> bool:
        """Whether tiles lie apart, rows apart in tiles and columns apart in rows: then nothing is shared."""
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

    def driver_differs(self, size: int) -> str:
        """How the driver's walk through the layout errs; "" where it does not. `size`: bytes of an element.

        It goes through runs of columns of equal tile id in constant steps, and copies at once what it takes for
        contiguous (DARWINN 7).
        """
        whole = self.z * size
        other = self.index(0, 1) if len(self.xtile) > 1 else self.index(1, 0)
        step = (other - self.index(0, 0)) * size
        if whole != step and whole in (1, 3):
            step = 4
        runs = self._runs()
        if step == whole and len(runs) == 1 and self.ytile[0] == self.ytile[-1]:
            across = len(self.xtile) * self.z
            for y in range(len(self.ytile)):
                if self.index(y, 0) != self.index(0, 0) + y * across:
                    return f"row {y} does not follow the row before it, and all is copied at once"
        locals_ = set(self.ylocal)
        for start, end in runs:
            for x in range(start + 1, end):
                lean = self.rowsize[x] - self.rowsize[start]
                place = self.xlocal[x] - self.xlocal[start]
                if any((local * lean + place) * size != (x - start) * step for local in (locals_ if lean else (0,))):
                    return f"column {x} is not {x - start} steps of {step} bytes after column {start}"
        return ""

    def _runs(self) -> list[tuple[int, int]]:
        """Stretches of columns of equal tile id."""
        cuts = [x for x in range(1, len(self.xtile)) if self.xtile[x] != self.xtile[x - 1]]
        return list(pairwise([0, *cuts, len(self.xtile)]))


def maps_of(layer: Layer, layout: OutputLayout) -> Maps | str:
    """The maps as far as the layer's dimensions go, or which one is too short."""
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


def _of_slices(layer: Layer, info: OutputShapeInfo, budget: Budget) -> Iterable[Problem]:
    """The first thing that is wrong with a layer's slices."""
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
        size = layer.element.size
        for number, (layout, offset) in enumerate(zip(layouts, offsets, strict=True)):
            budget.take(1 + len(shape))
            wrong = wrong_slice(layout, offset, shape, size, layer.size_bytes)
            if wrong:
                wrong = f"slice {number}: {wrong}"
                break
        else:
            wrong = _not_a_cover([tuple(item.shape.dimension or ()) for item in layouts if item.shape], shape, budget)
    if wrong:
        yield "D080", "any_layer", wrong


def wrong_slice(layout: TensorLayout, offset: int, shape: Box, size: int, room: int) -> str:
    """What is wrong with a slice by itself; "" for nothing. `size`: of an element, `room`: bytes of the layer."""
    box = tuple(layout.shape.dimension or ()) if layout.shape is not None else ()
    stride = tuple(layout.stride or ())
    if not len(box) == len(stride) == len(shape):
        return f"{plural(len(box), 'range')} and {plural(len(stride), 'stride')} for {plural(len(shape), 'dimension')}"
    lengths = [end - start + 1 for start, end in box]
    if min(lengths) < 1:
        return "an empty range"
    if any(a[0] < b[0] or a[1] > b[1] for a, b in zip(box, shape, strict=True)):
        return "it is not within the layer's shape"
    if stride[-1] < 1 or any(stride[i] < stride[i + 1] * lengths[i + 1] for i in range(len(box) - 1)):
        return f"strides {'/'.join(map(str, stride))} for lengths {'/'.join(map(str, lengths))}"
    if offset % size:
        return f"offset {offset} is not a multiple of {size}"
    end = offset + (sum(s * (n - 1) for s, n in zip(stride, lengths, strict=True)) + 1) * size
    return f"bytes {offset} to {end - 1} of {room}" if offset < 0 or end > room else ""


def _not_a_cover(boxes: list[Box], shape: Box, budget: Budget) -> str:
    """Whether boxes overlap or leave something of the shape; "" when they are exactly it."""
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
    return "" if have == want else f"the slices hold {have} of {want} elements"


def _volume(box: Box) -> int:
    return prod(end - start + 1 for start, end in box)
