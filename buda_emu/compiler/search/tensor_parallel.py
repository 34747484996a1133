"""Products whose columns are distributed over chips, each with its share of the constant: N chips have N times the DRAM
and its bandwidth.

`y = f(x W + b)` becomes `y_k = f(x W_k + b_k)` on chip k, for `W = [W_0 W_1 ...]` and an element-wise f. An op that
needs all of y reads a `splice` on its own chip that puts the parts one after another along t, and then puts them side
by side (`hstack`). A product in slices along t (`lower/matmul.py`) is shared out by slices. No sum changes its order.
Ops that are not shared out stand on the first chip, which therefore has all that the others have: an epoch that it has
room for is one that all have room for."""

from dataclasses import dataclass, field, replace
from math import prod

from buda_emu.compiler.lower.tiles import Constant, TileGraph, TileOp, Tm, Use
from buda_emu.compiler.place.blocks import size_of_tile
from buda_emu.compiler.place.cost import speeds
from buda_emu.compiler.target import Target

MOST_PARTS = 8
"""Most parts of an op: a splice takes so many inputs (OPS 6.8), and an op so many readers (FRONTEND 4.4)."""


def share_products(tiles: TileGraph, target: Target, chips: int, cycles: float) -> TileGraph:
    """Return the graph with those products shared out over up to `chips` chips, by columns or slices, whose constants
    take DRAM at least `cycles` cycles for each input, and with the element-wise ops after them; the same object when
    there is none. Every op of the new graph is assigned to a chip."""
    sharing = _Sharing(tiles, target, min(chips, MOST_PARTS), cycles)
    for op in tiles.ops.values():
        sharing.add(op)
    if not sharing.parts:
        return tiles
    places = {name: place for name, place in tiles.places.items() if place[0] in sharing.ops}
    return replace(tiles, ops=sharing.ops, constants=sharing.constants, places=places)


@dataclass(frozen=True, slots=True)
class _Axis:
    """The axis along which an op is shared out in `count` parts: "c", the columns of each slice, or "z", the slices
    along t."""

    name: str
    count: int

    @property
    def place(self) -> int:
        """The index of the axis in a shape."""
        return "zrc".index(self.name)

    def part(self, size: tuple[int, int, int]) -> tuple[int, int, int]:
        """Return the shape of one part of a tensor with this shape (t, rows, columns)."""
        t, rows, columns = size
        if self.name == "z":
            return (t // self.count, rows, columns)
        return (t, rows, columns // self.count)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The names of the parts of an op, and the axis along which it is divided."""

    axis: _Axis
    names: tuple[str, ...]


@dataclass(slots=True)
class _Sharing:
    """The new graph while it is built from `tiles`, op by op; products are shared whose constants keep DRAM busy for
    `cycles`.

    `parts` has for each op that is shared out its parts, on chip 0 and those that follow; `gathered` the op that puts
    the parts of an op together on a chip, by the names of the op and the number of the chip."""

    tiles: TileGraph
    target: Target
    chips: int
    cycles: float
    parts: dict[str, _Parts] = field(default_factory=dict[str, _Parts])
    gathered: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    ops: dict[str, TileOp] = field(default_factory=dict[str, TileOp])
    constants: dict[str, Constant] = field(default_factory=dict[str, Constant])

    def add(self, op: TileOp) -> None:
        """Add an op to the new graph, in parts if it is shared out or else whole on the first chip. All ops that it
        reads have to be there."""
        axis = self._axis_to_share(op)
        if axis is not None and all(self._parts_can_read(op, place, axis) for place in range(len(op.uses))):
            parts = [self._add_part(op, number, axis) for number in range(axis.count)]
            self.parts[op.name] = _Parts(axis, tuple(part.name for part in parts))
        else:
            self.ops[op.name] = replace(op, uses=[self._gather_use(use, 0) for use in op.uses], chip=0)

    def _axis_to_share(self, op: TileOp) -> _Axis | None:
        """Return the axis along which an op may be shared out: that of a product with a large constant, or that of the
        operands in parts of an op that works tile by tile. None where the op stays whole."""
        if not op.may_be_cut:
            return None
        if op.has("rows by columns"):
            return self._product_axis(op)
        if not op.is_tile_by_tile or any(step.has("keeps sums") for step in op.steps):
            return None
        axes = {self._axis_of_reader(use) for use in op.uses if use.source in self.parts}
        if len(axes) == 1:
            return axes.pop()
        return None

    def _product_axis(self, op: TileOp) -> _Axis | None:
        """Return the axis along which a product may be shared out: the slices if its factor has several, else the
        columns, in the most parts up to the number of chips that divide them. None where its constant is too small or
        nothing divides them."""
        if not self._has_heavy_constant(op):
            return None
        in_slices = op.shape[0] > 1 and self.tiles.shape_of(op.uses[1].source)[0] > 1
        name = "z" if in_slices else "c"
        size = op.shape["zrc".index(name)]
        axes = (_Axis(name, count) for count in range(min(self.chips, size), 1, -1) if size % count == 0)
        return next(axes, None)

    def _axis_of_reader(self, use: Use) -> _Axis | None:
        """Return the axis along which the reader of an op in parts is in parts, too, if each of its parts reads one
        part: the same axis, or columns where it reads slices side by side (hstack). None where each part would need
        more than one."""
        axis = self.parts[use.source].axis
        if not use.tms:
            return axis
        stacked = use.tms == (("hstack", self.tiles.shape_of(use.source)[0]),)
        if stacked and axis.name == "z":
            return _Axis("c", axis.count)
        return None

    def _has_heavy_constant(self, op: TileOp) -> bool:
        """Return whether the second operand of a product is a constant that keeps DRAM busy for at least `cycles`
        cycles for each input."""
        right = op.uses[1]
        constant = self.tiles.constants.get(right.source)
        if constant is None or constant.kind != "value" or any(tm[:2] != ("broadcast", "z") for tm in right.tms):
            return False
        size = size_of_tile(self.target.of(op.precision).activation_df, self.target.arch.alignment)
        return prod(constant.shape) * size / speeds(self.target.chip).dram >= self.cycles

    def _parts_can_read(self, op: TileOp, place: int, axis: _Axis) -> bool:
        """Return whether the parts of an op that is shared out along `axis` can read operand `place`, each the whole
        operand or one part of it."""
        use = op.uses[place]
        if op.has("rows by columns") and place == 0:
            return axis.name == "c" or self._is_broadcast(use, op.shape, axis)
        if use.source in self.parts:
            return self._axis_of_reader(use) == axis
        if self._is_broadcast(use, op.shape, axis):
            return True
        constant = self.tiles.constants.get(use.source)
        if constant is None or any(tm[0] != "broadcast" for tm in use.tms):
            return False
        return constant.shape[axis.place] == op.shape[axis.place]

    @staticmethod
    def _is_broadcast(use: Use, shape: tuple[int, int, int], axis: _Axis) -> bool:
        """Return whether an operand is the same for all parts: its last TM repeats it along the whole axis of an op of
        this shape."""
        return bool(use.tms) and use.tms[-1] == ("broadcast", axis.name, shape[axis.place])

    def _add_part(self, op: TileOp, number: int, axis: _Axis) -> TileOp:
        """Add part `number` of an op that is divided along `axis` to the new graph, on the chip of the same number, and
        return it."""
        uses = [self._part_operand(op, place, number, axis) for place in range(len(op.uses))]
        name = self._unused_name(f"{op.name}.part.{number}")
        self.ops[name] = replace(op, name=name, uses=uses, shape=axis.part(op.shape), chip=number)
        return self.ops[name]

    def _part_operand(self, op: TileOp, place: int, number: int, axis: _Axis) -> Use:
        """Return operand `place` of an op for its part `number`: the whole operand or the part of it that this part
        needs. Adds the part of a constant, or the splice that puts an operand together, to the new graph."""
        use = op.uses[place]
        if self._is_broadcast(use, op.shape, axis):
            source = self._gather_use(Use(use.source, use.tms[:-1]), number)
            times = op.shape[axis.place] // axis.count
            repeats: tuple[Tm, ...] = (("broadcast", axis.name, times),) if times > 1 else ()
            return Use(source.source, (*source.tms, *repeats))
        if op.has("rows by columns") and place == 0:
            return self._gather_use(use, number)
        if use.source in self.parts:
            if use.tms:
                stacked = self.tiles.shape_of(use.source)[0] // axis.count
            else:
                stacked = 1
            return Use(self.parts[use.source].names[number], (("hstack", stacked),) if stacked > 1 else ())
        constant = self.tiles.constants[use.source]
        size = constant.values.shape[axis.place] // axis.count
        share = slice(number * size, (number + 1) * size)
        if axis.name == "z":
            values = constant.values[share]
        else:
            values = constant.values[:, :, share]
        name = f"{constant.name}.part.{number}.{axis.count}"
        self.constants[name] = replace(constant, name=name, values=values)
        return Use(name, use.tms)

    def _gather_use(self, use: Use, chip: int) -> Use:
        """Return a use of the whole operand for an op of a chip. If the operand is in parts, the splice that puts them
        together on this chip is added where there is none yet; a constant is added to the new graph."""
        parts = self.parts.get(use.source)
        if parts is None:
            if use.source in self.tiles.constants:
                self.constants[use.source] = self.tiles.constants[use.source]
            return use
        axis = parts.axis
        count = parts.axis.count
        first = self.ops[parts.names[0]]
        if axis.name == "z":
            turn = first.shape[0]
        else:
            turn = 1
        if (use.source, chip) not in self.gathered:
            t, rows, columns = first.shape
            name = self.gathered[use.source, chip] = self._unused_name(f"{use.source}.whole.{chip}")
            # In turns some slices of each (OPS 6.8): of columns one, so that hstack puts their shares side by side.
            slices = {f"input{number}": (0, turn, turn) for number in range(count)}
            self.ops[name] = replace(
                first,
                name=name,
                type="splice",
                uses=[Use(part) for part in parts.names],
                inner=0,
                steps=(),
                shape=(t * count, rows, columns),
                attrs={"granularity": "t", **slices},
                chip=chip,
            )
        stack: tuple[Tm, ...] = (("hstack", count),) if axis.name == "c" else ()
        return Use(self.gathered[use.source, chip], (*stack, *use.tms))

    def _unused_name(self, name: str) -> str:
        """Return the name, with underscores after it until nothing else has it."""
        while name in self.tiles.ops or name in self.ops or name in self.tiles.inputs or name in self.tiles.constants:
            name += "_"
        return name
