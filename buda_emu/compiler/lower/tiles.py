"""The graph of netlist ops before it is placed: tensors of tiles, TMs on operands, constants."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import isqrt
from typing import Any, Final, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.graph.graph import FORWARD
from buda_emu.compiler.lower.layout import Layout
from buda_emu.compiler.target import Precision
from buda_emu.spec.ops import OP_TYPES, OfOpType

_TILE_BY_TILE = ("unary", "binary", "sfpu", "fused")
_OF_THE_WHOLE = ("identity", "untilize", "gradient", "dequant", "accumulate")
Words = NDArray[Any]
Shape = tuple[int, int, int]
"""A shape (t, rows, columns) in tiles."""

Tm = tuple[str, ...] | tuple[str, int] | tuple[str, str, int]
"""A TM such as ("transpose",), ("hslice", n) or ("broadcast", "r", n) (OPS 7)."""


def after(tm: Tm, shape: Shape) -> Shape:
    """Return the shape that a tensor of `shape` has behind one TM (OPS 7). The TM must divide it."""
    t, r, c = shape
    if tm[0] == "transpose":
        return t, c, r
    n = int(tm[-1])
    if tm[0] == "broadcast":
        return {"z": (t * n, r, c), "r": (t, r * n, c), "c": (t, r, c * n)}[str(tm[1])]
    return {
        "hslice": (t * n, r, c // n),
        "vslice": (t * n, r // n, c),
        "hstack": (t // n, r, c * n),
        "vstack": (t // n, r * n, c),
    }[str(tm[0])]


def over(shape: Shape) -> tuple[Tm, ...]:
    """Return TMs that repeat a tensor of one tile along t, rows and columns (OPS 7)."""
    tms: list[Tm] = [("broadcast", axis, count) for axis, count in zip("zrc", shape, strict=True) if count > 1]
    return tuple(tms)


def divisors(number: int) -> list[int]:
    """Return the divisors of a number, ascending."""
    low = [size for size in range(1, isqrt(number) + 1) if number % size == 0]
    return low + [number // size for size in reversed(low) if size * size != number]


@dataclass(frozen=True, slots=True)
class Use:
    """An operand: a tensor by name, and the TMs on the way. `buffer`: tiles of it that each core holds at least, in
    addition to what the op needs."""

    source: str
    tms: tuple[Tm, ...] = ()
    buffer: int = 0


@dataclass(frozen=True, slots=True)
class Constant:
    """The content of a queue: values [t, rows, columns] in elements. `kind`: "value" in the model's format, "picker"
    with few bits if it is 0 and 1, "words" of an encoding, "table" of an embedding, row by row; "codes", "sums" and
    "scale" of products of integers."""

    name: str
    values: Words
    kind: str = "value"

    @property
    def shape(self) -> Shape:
        """The shape in tiles."""
        t, r, c = self.values.shape
        return t, r // 32, c // 32


class TileAttributes(TypedDict, total=False):
    """Attributes of a netlist op: those of the language that the compiler sets (`spec.attributes` has their legal
    values), and its own, which `ir/verify.py` describes."""

    identity: bool
    num_sparse_tiles: int
    num_index_tiles: int
    sparse_tile_ptr_bits: int
    sparse_ublock_idx_bits: int
    indices_len: int
    act_t: int
    fracture_factor: int
    num_indices: int
    accumulate: bool
    z: int
    bias: bool
    dequant: bool
    zero_point: float
    sfpu_op: str
    vector: str
    relu_en: bool
    relu_mode: str
    relu_threshold: float
    dim: str
    type: str
    exp: int
    slope: float
    granularity: str
    untilize: bool
    gradient: bool
    strips: tuple[int, ...]
    rows: int
    ublocks: int  # of a draft that the search weighs
    table: Any  # a picker.PickTable, which knows tiles


RELU: Final = ("relu_en", "relu_mode", "relu_threshold")


def select_attributes(attrs: TileAttributes, names: Collection[str]) -> TileAttributes:
    """Return the attributes with these names."""
    return cast(TileAttributes, {name: value for name, value in attrs.items() if name in names})


@dataclass(frozen=True, slots=True)
class SubOp(OfOpType):
    """One op of a fused op, in the netlist's terms: `inputs` and `output` are inputN, intermedN, dest or output, `pop`
    the intermediates that are read for the last time. `spread`: "c" if column 0 of each tile of the second input stands
    for all columns; `columns` of tiles in its result, 0 for those of the fused op; `across`: how often the one column
    of its second input is repeated; `inner`: tiles that a maximum or a sum runs over, after which a schedule ends."""

    name: str
    type: str
    inputs: tuple[str, ...]
    output: str
    pop: tuple[str, ...] = ()
    attrs: TileAttributes = field(default_factory=TileAttributes)
    spread: str = ""
    columns: int = 0
    across: int = 0
    inner: int = 0


@dataclass(slots=True)
class TileOp(OfOpType):
    """One netlist op. `inner`: tiles that a product or a maximum runs over; `grid`: fixed rows and columns of cores, 0
    for those that are free; `source`: the node of the model's graph; `made_of`: all such nodes, if several ops were
    fused; `steps`: the sub-ops of a fused op; `precision`, if it is not the model's; `chip` that it must run on."""

    name: str
    type: str
    uses: list[Use]
    shape: Shape
    attrs: TileAttributes = field(default_factory=TileAttributes)
    inner: int = 0
    grid: tuple[int, int] | None = None
    ublock: tuple[int, int] | None = None
    source: str = ""
    made_of: tuple[str, ...] = ()
    steps: tuple[SubOp, ...] = ()
    program: str = FORWARD
    precision: Precision = Precision()
    chip: int | None = None
    mixes_padding: bool = False
    """Whether sixteen numbers of a row that share an exponent in a block format may hold both elements of the model and
    padding that is not 0."""
    avoids: str = ""
    """The block format that the op would have if it did not mix them."""

    @property
    def sources(self) -> tuple[str, ...]:
        """All nodes of the model's graph that the op stands for."""
        return self.made_of or (self.source,)

    @property
    def is_tile_by_tile(self) -> bool:
        """Return whether a tile of the result needs only the same tile of each operand."""
        return OP_TYPES[self.type].family in _TILE_BY_TILE and not self.has_sums

    @property
    def has_sums(self) -> bool:
        """Return whether the op is a fused op with products, or maxima and sums of rows: it has several schedules."""
        return any(step.inner for step in self.steps)

    @property
    def sums_rows(self) -> bool:
        """Return whether the op is a fused op that computes maxima or sums of whole rows."""
        return any(step.inner and step.columns for step in self.steps)

    @property
    def kept_format_of(self) -> str:
        """The operand whose format the result must have: for pickers and maxima over z (V-rules of `reduce`, FRONTEND
        3.5); "" for other ops."""
        if self.attrs.get("identity"):
            return self.uses[1].source
        if self.has("reduces") and self.attrs["dim"] == "z":
            return self.uses[0].source
        return ""

    def operand_shape(self, number: int) -> Shape:
        """Return the shape of operand `number` as read by an op that works tile by tile or has sums."""
        t, rows, columns = self.shape
        if not self.has_sums:
            return self.shape
        step = self.reader(number)
        if not step.inner:
            return t, rows, step.columns or columns
        if self.is_factor(number):
            return (t, step.inner, step.columns or columns)
        return (t, rows, step.inner)

    def reader(self, number: int) -> SubOp:
        """Return the step of a fused op that reads operand `number` first. Raises StopIteration if none does."""
        return next(step for step in self.steps if f"input{number}" in step.inputs)

    def is_factor(self, number: int) -> bool:
        """Return whether operand `number` is the second one of a product: all rows of cores read it, columns share
        it."""
        if self.has_sums:
            return f"input{number}" in self.reader(number).inputs[1:] and self.reader(number).inner > 0
        return self.has("inner dimension") and number == 1

    def is_left_factor(self, number: int) -> bool:
        """Return whether operand `number` is the first one of a product: all columns of cores read it, rows share
        it."""
        if self.has_sums:
            return f"input{number}" in self.reader(number).inputs[:1] and self.reader(number).inner > 0
        return self.has("inner dimension") and number == 0

    @property
    def may_be_cut(self) -> bool:
        """Return whether the op may run in parts: its grid is free, and no attribute concerns the whole result."""
        return self.grid is None and self.ublock is None and not any(self.attrs.get(key) for key in _OF_THE_WHOLE)

    @property
    def intermediates(self) -> int:
        """Number of buffers between the sub-ops of a fused op."""
        return len({step.output for step in self.steps if step.output.startswith("intermed")})


@dataclass(frozen=True, slots=True)
class State:
    """A ram that programs read and write: `held` is the content that the host fills in, [t, rows, columns] in elements.

    With several `slots` it is read as a whole through this ram of one entry, and written slot by slot through another
    one on the same memory, whose entries follow each other along t (NETLIST 1.10). `df`: its format, "" the model's.
    `zeros`: whether it has a second entry, of zeros. `layout` places elements among those of `held`, row after row;
    slices of t may have been cut since (`place/rows.py`).
    """

    queue: str
    label: str
    host_shape: tuple[int, ...]
    dtype: str
    layout: Layout
    held: Words
    slots: int = 1
    df: str = ""
    zeros: bool = False

    @property
    def shape(self) -> Shape:
        """The shape in tiles."""
        t, r, c = self.held.shape
        return t, r // 32, c // 32

    @property
    def written(self) -> str:
        """The name of the queue that is written."""
        if self.slots == 1:
            return self.queue
        return f"{self.queue}.slots"

    def entries(self, held: Words) -> Words:
        """Return content [t, rows, columns] as entries of the written queue: one for each slot and, if the state has
        one, the entry of zeros."""
        entries = held.reshape(self.slots, -1, *held.shape[-2:])
        if self.zeros:
            return np.concatenate((entries, np.zeros_like(entries)))
        return entries


@dataclass(frozen=True, slots=True)
class Store:
    """A write to a state: the op that writes it at the end of its program; `accumulate`: whether it adds to the
    content. `queue` is the state's."""

    queue: str
    op: str
    accumulate: bool


@dataclass(frozen=True, slots=True)
class InputQueue:
    """A queue that the host fills for an input: `shape` in tiles, `view` [t, rows, columns] of the host's tensor.
    `indices`: whether it holds indices of an embedding, as words; `gather`: the elements of the input that they are, if
    not all in order; `rows` of the table; `from_end`: whether negative indices count from its end; `zero`: an index
    that reads a row of zeros."""

    name: str
    label: str
    shape: Shape
    view: tuple[int, int, int]
    indices: bool = False
    gather: tuple[int, ...] = ()
    rows: int = 0
    from_end: bool = False
    zero: int | None = None


@dataclass(frozen=True, slots=True)
class OutputQueue:
    """A queue that the host reads: `view` is its leading [t, rows, columns], which the host gives the model's own
    shape; `slices` along t are put side by side."""

    name: str
    label: str
    op: str
    view: tuple[int, int, int]
    host_shape: tuple[int, ...]
    dtype: str
    slices: int = 1


@dataclass(slots=True)
class TileGraph:
    """Netlist ops in an order in which they can run, and what feeds and leaves them. `places`: for values of the
    model's graph that an op gives unchanged, that op and the layout of the elements; the op may be part of another one
    by now."""

    ops: dict[str, TileOp] = field(default_factory=dict[str, TileOp])
    constants: dict[str, Constant] = field(default_factory=dict[str, Constant])
    inputs: dict[str, InputQueue] = field(default_factory=dict[str, InputQueue])
    outputs: dict[str, OutputQueue] = field(default_factory=dict[str, OutputQueue])
    states: dict[str, State] = field(default_factory=dict[str, State])
    stores: dict[str, Store] = field(default_factory=dict[str, Store])
    """States and stores have the names of their queues as keys."""
    places: dict[str, tuple[str, Layout]] = field(default_factory=dict[str, tuple[str, Layout]])
    undefined_is_nan: bool = False
    """Whether a root or reciprocal may have no result, which then is NaN and must not stop a run."""

    def shape_of(self, name: str) -> Shape:
        """Return the shape in tiles of an op's result, a constant, an input or a state. Raises KeyError for another
        name."""
        for group in (self.ops, self.constants, self.inputs, self.states):
            tensors: Mapping[str, Any] = group
            if name in tensors:
                return tensors[name].shape
        raise KeyError(name)

    @property
    def shown(self) -> frozenset[str]:
        """The ops whose results a ram or the host takes."""
        return frozenset(output.op for output in (*self.stores.values(), *self.outputs.values()))

    @property
    def trains(self) -> bool:
        """Return whether gradients are added up."""
        return any(store.accumulate for store in self.stores.values())

    @property
    def windows(self) -> bool:
        """Return whether programs run a window of inputs again for each input that is added to it, because a cache has
        slots."""
        return any(state.slots > 1 for state in self.states.values())

    def flows(self, program: str) -> bool:
        """Return whether inputs go through a program; an optimizer reads only states, and runs once for all inputs."""
        return bool(self.flow_into(program))

    def flow_into(self, program: str) -> tuple[str, str] | None:
        """Return the first op of a program that reads an input or an op of another program, and what it reads; None
        where there is none."""
        for op in self.ops.values():
            if op.program != program:
                continue
            for use in op.uses:
                source = self.ops.get(use.source)
                if use.source in self.inputs or (source is not None and source.program != program):
                    return op.name, use.source
        return None

    def state(self, label: str) -> State | None:
        """Return the state with a label, None if there is none."""
        return next((state for state in self.states.values() if state.label == label), None)
