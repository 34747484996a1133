"""Builders of products and of fused ops."""

from dataclasses import field, replace
from typing import Final

from buda_emu.netlist.model import FusedOp, SubOp, Tm
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.blocking import Blocking, Shape
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.records import dataclass
from buda_emu.testing.generator.builders import extras
from buda_emu.testing.generator.draft import Formats, NetlistDraft, NoRoomError, Operand, any_shape
from buda_emu.testing.generator.operands import draw_formats, draw_operand, operand_formats, tiles_in_ublock

_OF_SPARSE: Final = frozenset(
    ("identity", "num_sparse_tiles", "num_columns", "indices_len", "fracture_factor", "starting_row", "act_t",
     "num_index_tiles", "sparse_tile_ptr_bits", "sparse_ublock_idx_bits", "num_nz_strips")
)  # fmt: skip
_OF_INTEGERS: Final = frozenset(("requant", "dequant", "zero_point"))


def matmul(draft: NetlistDraft, op_type: str) -> None:
    """Add a product: of floats, of integers, or with sparse tiles. Raises NoRoomError if it does not fit."""
    kind = draft.draw.integer(0, 9)
    preferred = draft.draw.wanted
    if kind < 2 or _OF_SPARSE & preferred:
        _add_sparse_product(draft, op_type)
    elif (kind < 4 or _OF_INTEGERS & preferred) and draft.arch.name != "grayskull":
        _add_integer_product(draft, op_type)
    else:
        _add_dense_product(draft, op_type)


def _draw_inner_dimension(draft: NetlistDraft) -> tuple[int, int]:
    """Draw m_k and u_kt, whose product is the number of tiles of the inner dimension."""
    return draft.draw.pick((1, 1, 2, 3)), draft.draw.pick((1, 1, 2, 4))


def _add_dense_product(draft: NetlistDraft, op_type: str) -> None:
    """Add a product of floats, now and then with a bias, an accumulation over t or a gradient. Raises NoRoomError if it
    does not fit."""
    draw = draft.draw
    t, rows, cols = any_shape(draft)
    m_k, u_kt = _draw_inner_dimension(draft)
    summed = 1
    if t < 3 and draw.sometimes(15, "accumulate", "z"):
        summed = draw.pick((2, 3))
    bias = draw.sometimes(35, "bias")
    gradient = summed == 1 and not bias and draw.sometimes(10, "gradient op", "zero")
    formats = draw_formats(draft, sums=m_k > 1 or bias or summed > 1, gradient=gradient)
    inner = m_k * u_kt
    sources = [
        draw_operand(draft, (t * summed, rows, inner), operand_formats(draft)),
        draw_operand(draft, (t * summed, inner, cols), operand_formats(draft), transposed=not gradient),
    ]
    if bias:
        sources.append(draw_operand(draft, (t, rows, cols), operand_formats(draft)))
    attributes = _draw_dense_attributes(draft, m_k, u_kt, summed, bias)
    formats = _draw_l1_accumulation(draft, formats, attributes)
    attributes |= extras(draft)
    blocking = draft.blocking((t, rows, cols), tiles_in_ublock(draft, formats), order="r")
    changes_sign = "relu_mode" in attributes or "sfpu_op" in attributes
    positive = all(source.value.positive for source in sources) and not changes_sign
    fields: dict[str, object] = {"gradient_op": True} if gradient else {}
    draft.add(op_type, sources, blocking, formats, attributes=attributes, positive=positive, fields=fields)


def _draw_dense_attributes(draft: NetlistDraft, m_k: int, u_kt: int, summed: int, bias: bool) -> dict[str, object]:
    """Return the attributes of a product with this inner dimension, which adds up `summed` slices along t; add others
    now and then."""
    attributes: dict[str, object] = {"m_k": m_k, "u_kt": u_kt}
    if summed > 1:
        attributes |= {"accumulate": True, "z": summed}
    if bias:
        attributes["bias"] = True
    if draft.draw.sometimes(10, "sfpu_op"):
        attributes["sfpu_op"] = "gelu"
    if draft.draw.sometimes(10, "min_buffer_input"):
        attributes["min_buffer_input"] = draft.draw.integer(0, 1)
    return attributes


def _draw_l1_accumulation(draft: NetlistDraft, formats: Formats, attributes: dict[str, object]) -> Formats:
    """Draw whether partial sums are added up in L1. If so, set the attribute in `attributes`, and return the formats
    that this demands (NETLIST V092), else the given ones."""
    possible = formats.intermed in ("Float32", "Float16_b") and draft.arch.name != "grayskull"
    if not possible or not draft.draw.sometimes(20, "l1_acc"):
        return formats
    attributes["l1_acc"] = True
    acc = "Float16_b"
    if formats.acc == formats.intermed:
        acc = formats.acc
    return Formats(formats.out, formats.intermed, acc)


def _add_integer_product(draft: NetlistDraft, op_type: str) -> None:
    """Add a product of Int8 summed in Int32; the result is scaled to Float32 or Int8, or left as it is. Raises
    NoRoomError if it does not fit."""
    draw = draft.draw
    t, rows, cols = any_shape(draft)
    m_k, u_kt = _draw_inner_dimension(draft)
    inner = m_k * u_kt
    bias = draw.chance(50)
    end = draw.pick(("", "requant", "dequant"))
    sources = [
        draw_operand(draft, (t, rows, inner), ("Int8",)),
        draw_operand(draft, (t, inner, cols), ("Int8",)),
    ]
    attributes: dict[str, object] = {"m_k": m_k, "u_kt": u_kt}
    if bias:
        attributes["bias"] = True
        sources.append(draw_operand(draft, (t, rows, cols), ("Int32",)))
    if end:
        attributes[end] = True
        attributes["zero_point"] = float(draw.integer(0, 5))
        sources.append(draw_operand(draft, (t, rows, cols), ("Float32",)))
    formats = Formats({"": "Int32", "requant": "Int8", "dequant": "Float32"}[end], "Int32", "Int32")
    blocking = draft.blocking((t, rows, cols), tiles_in_ublock(draft, formats), order="r")
    draft.add(op_type, sources, blocking, formats, attributes=attributes)


def _add_sparse_product(draft: NetlistDraft, op_type: str) -> None:
    """Add a product in which tiles of operand 0 pick tiles of operand 1, as a stream of indices says (NETLIST 5.2).
    Raises NoRoomError if it does not fit."""
    draw = draft.draw
    t, rows, cols = any_shape(draft)
    tiles = draw.integer(1, 4)
    index_tiles = draw.integer(1, 2)
    m_k = draw.integer(1, 3)
    u_kt = draw.integer(1, 2)
    act_t = draw.pick((1, t))
    l1_attributes: dict[str, object] = {}
    formats = _draw_l1_accumulation(draft, draw_formats(draft, sums=True), l1_attributes)
    blocking = draft.blocking((t, rows, cols), tiles_in_ublock(draft, formats), order="r")
    if blocking.block_rows * u_kt > 64:
        raise NoRoomError
    down, across = blocking.grid_size
    attributes: dict[str, object] = {
        "identity": True,
        "num_sparse_tiles": tiles,
        "num_index_tiles": index_tiles,
        "m_k": m_k,
        "u_kt": u_kt,
        "sparse_tile_ptr_bits": 4,
        "sparse_ublock_idx_bits": 5,
        "act_t": act_t,
        "fracture_factor": 1,
        **l1_attributes,
    }
    formats_of_sparse = [name for name in operand_formats(draft) if name != "Float32"]
    sources = [
        draw_operand(draft, (1, down, tiles * across), formats_of_sparse, shaped=False),
        draw_operand(draft, (act_t, m_k * u_kt, cols), operand_formats(draft), shaped=False),
        draw_operand(draft, (1, down, index_tiles), ("RawUInt32",), shaped=False, source="own"),
    ]
    if draw.chance(25):
        attributes["bias"] = True
        sources.append(draw_operand(draft, (t, rows, cols), operand_formats(draft)))
    draft.add(op_type, sources, blocking, formats, attributes=attributes)
    tiles = sources[0].value
    if tiles.is_queue and draft.document.queues[tiles.name].host_fed and draw.sometimes(30, "sparse"):
        draft.sparse.append(tiles.name)


def depthwise(draft: NetlistDraft, op_type: str) -> None:
    """Add a product of blocks of columns, each with its own row of weights (OPS 6.3). Raises NoRoomError if it does not
    fit."""
    draw = draft.draw
    t, rows, cols = any_shape(draft)
    m_k = draw.integer(1, 3)
    bias = draw.sometimes(35, "bias")
    formats = draw_formats(draft, sums=True)
    base = draft.blocking((t, rows, cols), tiles_in_ublock(draft, formats), order="r")
    blocking = Blocking(
        grid_size=(base.grid_size[0], 1),
        t=t,
        mblock=(base.mblock[0], cols // base.ublock[1]),
        ublock=base.ublock,
        ublock_order="r",
    )
    sources = [
        draw_operand(draft, (t, rows, cols * m_k), operand_formats(draft)),
        draw_operand(draft, (t, m_k, cols), operand_formats(draft)),
    ]
    attributes: dict[str, object] = {"m_k": m_k, "u_kt": 1}
    if bias:
        attributes["bias"] = True
        sources.append(draw_operand(draft, (t, rows, cols), operand_formats(draft)))
    if draw.sometimes(15, "min_buffer_input"):
        attributes["min_buffer_input"] = 0
    draft.add(op_type, sources, blocking, formats, attributes=attributes | extras(draft))


_MOST_STEPS = 5  # sub-ops of a fused op: more make a netlist slower to run
_INTERMEDIATES = 8  # of a fused op (V130)
_ON_INTEGERS = tuple(name for name, op in OP_TYPES.items() if op.family == "quantization")


def fused_op(draft: NetlistDraft, op_type: str) -> None:
    """Add a fused op with a new definition, which only this op uses. Raises NoRoomError if it does not fit."""
    draw = draft.draw
    formats = draw_formats(draft, sums=True)
    shape = any_shape(draft)
    beginnings = ("", "", "reduce", "matmul")
    if draft.arch.name != "grayskull":
        beginnings = (*beginnings, *_ON_INTEGERS)
    begin = draw.pick(beginnings)
    if begin in _ON_INTEGERS:
        formats = Formats("Float32" if begin == "dequantization" else "Int8", "Int32", "Int32")
    blocking = draft.blocking(shape, tiles_in_ublock(draft, formats), order="r")
    chain = _Chain(draft, shape, blocking)
    if begin in _ON_INTEGERS:
        chain.of_integers(begin)
    else:
        chain.of_floats(begin, formats)
    name = draft.name("fused")
    draft.document.fused_ops[name] = FusedOp(
        id=name, inputs=len(chain.sources), intermediates=chain.used, schedules=tuple(map(tuple, chain.schedules))
    )
    attributes: dict[str, object] = {"fused_op_id": name}
    if draw.chance(20):
        attributes["approximate_mode"] = True
    draft.add(op_type, chain.sources, blocking, formats, attributes=attributes)


@dataclass(slots=True)
class _Chain:
    """Sub-ops of a fused op, each of which reads what the one before it wrote."""

    draft: NetlistDraft
    shape: Shape
    blocking: Blocking
    sources: list[Operand] = field(default_factory=list[Operand])
    schedules: list[list[SubOp]] = field(default_factory=lambda: [[]])
    used: int = 0
    """Number of intermediates."""
    kept: int = 0
    """Number of operands that only the first sub-op reads, of other shapes."""
    last: str = ""
    """Name of the buffer with the result of the last sub-op."""
    positive: bool = False
    """True where no element of that result is below zero."""

    def of_floats(self, begin: str, formats: Formats) -> None:
        """Add some sub-ops of floats; the first is a reduce or matmul if `begin` is its name and the blocking allows
        it."""
        one_block_wide = self.blocking.mblock == (1, 1) and self.blocking.grid_size[1] == 1
        if begin == "reduce" and one_block_wide and formats.acc != "Float32":
            self.less_maximum()
        elif begin == "matmul" and self.blocking.cells == 1:
            self.product()
        for remaining in range(self.draft.draw.integer(1, _MOST_STEPS), 0, -1):
            self.step(last=remaining == 1)

    def step(self, *, last: bool) -> None:
        """Add a drawn sub-op, which reads the result of the one before. With `last` it writes the result of the fused
        op."""
        draw = self.draft.draw
        two = draw.chance(50)
        kind = draw.pick([name for name in OP_TYPES if self._may_stand(name, two, last)])
        inputs = [self.last or self.source()]
        popped = tuple(name for name in inputs if name.startswith("intermed"))
        if popped and self.schedules[-1] and draw.chance(25):
            self.schedules.append([])
        if two:
            inputs.append(self.source())
        output = "output" if last else self._draw_output(kind)
        tms: tuple[tuple[Tm, ...], ...] = ((),) * len(inputs)
        if kind in ("add", "subtract", "multiply") and draw.chance(20):
            tms = ((), (Tm("tile_broadcast", (draw.pick("rc"),)),))
        attributes = self._draw_attributes(kind)
        self._add_sub_op(kind, inputs, output, self.blocking.mblock, self.blocking.ublock, popped, tms, attributes)
        self.last = output
        self.positive = self._gives_positive(kind, two) and attributes.get("relu_mode") != "max"

    def _draw_attributes(self, kind: str) -> dict[str, object]:
        """Draw the attributes of a sub-op: a relu now and then, and the exponent of a power."""
        draw = self.draft.draw
        attributes: dict[str, object] = {}
        if draw.chance(10):
            attributes = {"relu_en": True, "relu_threshold": 0.5, "relu_mode": draw.pick(("min", "max"))}
        if "exp" in OP_TYPES[kind].attributes:
            attributes["exp"] = draw.pick((2, 3))
        return attributes

    def _gives_positive(self, kind: str, two: bool) -> bool:
        """Return whether no element of the result of a sub-op of type `kind`, with a second input if `two`, is below
        zero."""
        declared = OP_TYPES[kind]
        if declared.has("gives positive"):
            return True
        return not two and self.positive and declared.has("keeps positive")

    def _draw_output(self, kind: str) -> str:
        """Draw the buffer to which a sub-op other than the last writes its result: dest or the next intermediate, which
        is then counted in `used`."""
        next_intermediate = f"intermed{self.used}"
        if OP_TYPES[kind].has("no gradient"):
            buffers = (next_intermediate,)
        else:
            buffers = ("dest", next_intermediate)
        output = self.draft.draw.pick(buffers)
        if output == next_intermediate and self.used == _INTERMEDIATES:
            return "dest"
        self.used += output != "dest"
        return output

    def _may_stand(self, name: str, two: bool, last: bool) -> bool:
        """Return whether an op type can be the next sub-op, with two inputs if `two`: it computes on floats, and takes
        the signs that they have (NETLIST V133). `last` says whether it writes the fused op's result."""
        declared = OP_TYPES[name]
        return (
            declared.in_fused
            and declared.has("tile by tile")
            and (declared.inputs[0] == 2) == two
            and declared.family != "quantization"
            and (self.positive or not declared.has("takes positive numbers"))
            and (not declared.has("no gradient") or (self.last != "dest" and not last))
        )

    def product(self) -> None:
        """Begin the chain with a matmul, whose result the next sub-op reads."""
        inner = self.draft.draw.integer(1, 2)
        t, rows, cols = self.shape
        for shape in ((t, rows, inner), (t, inner, cols)):
            self.sources.append(draw_operand(self.draft, shape, operand_formats(self.draft)))
        self._add_sub_op(
            "matmul",
            ["input0", "input1"],
            "intermed0",
            self.blocking.mblock,
            self.blocking.ublock,
            (),
            ((), ()),
            {"m_k": 1, "u_kt": inner},
        )
        self.schedules.append([])
        self.used = 1
        self.last = "intermed0"
        self.kept = 2

    def of_integers(self, last: str) -> None:
        """Add sub-ops that combine and scale quantised numbers, or quantise floats (NETLIST V141). `last` is the op
        type of the last sub-op."""
        draft = self.draft
        blocks = (self.blocking.mblock, self.blocking.ublock)

        def source(df: str) -> str:
            """Add an operand of a format, and return its name inside the fused op."""
            self.sources.append(draw_operand(draft, self.shape, (df,)))
            return f"input{len(self.sources) - 1}"

        first = source("Float32" if last == "quantization" else "Int8")
        popped: tuple[str, ...] = ()
        if last != "quantization":
            kind = draft.draw.pick(("add", "maximum", "multiply", "datacopy"))
            if OP_TYPES[kind].one_input:
                inputs = [first]
            else:
                inputs = [first, source("Int8")]
            self._add_sub_op(kind, inputs, "intermed0", *blocks, (), ((),) * len(inputs), {})
            first = "intermed0"
            popped = ("intermed0",)
            self.used = 1
        self._add_sub_op(last, [first, source("Float32")], "output", *blocks, popped, ((), ()), {})

    def less_maximum(self) -> None:
        """Begin the chain with an operand less the maximum of its rows, as a softmax does."""
        first = self.source()
        width = self.blocking.ublock
        self._add_sub_op(
            "reduce",
            [first],
            "intermed0",
            (1, 1),
            (width[0], 1),
            (),
            ((),),
            {"type": "max", "dim": "c", "m_k": 1, "u_kt": width[1]},
        )
        self.schedules.append([])
        tms: tuple[Tm, ...] = (Tm("tile_broadcast", ("c",)),)
        if width[1] > 1:
            tms = (Tm("broadcast", ("c", width[1])), *tms)
        self._add_sub_op("subtract", [first, "intermed0"], "dest", (1, 1), width, ("intermed0",), ((), tms), {})
        self.used = 1
        self.last = "dest"

    def source(self) -> str:
        """Return the name of an operand for a sub-op: one that the fused op already has, or a new one, which is
        drawn."""
        draw = self.draft.draw
        if len(self.sources) == self.kept or (len(self.sources) < 6 and draw.chance(70)):
            self.sources.append(draw_operand(self.draft, self.shape, operand_formats(self.draft)))
            return f"input{len(self.sources) - 1}"
        return f"input{draw.integer(self.kept, len(self.sources) - 1)}"

    def _add_sub_op(
        self,
        kind: str,
        inputs: list[str],
        output: str,
        mblock: tuple[int, int],
        ublock: tuple[int, int],
        popped: tuple[str, ...],
        tms: tuple[tuple[Tm, ...], ...],
        attributes: dict[str, object],
    ) -> None:
        """Add a sub-op to the last schedule. `popped` are the intermediates that are read for the last time, `tms` the
        TMs of each input."""
        record = replace(Attributes(), given=frozenset(attributes), **attributes)  # type: ignore[arg-type]  # by their table
        sub_op = SubOp(
            name=f"step_{sum(map(len, self.schedules))}",
            type=kind,
            inputs=tuple(inputs),
            output=output,
            mblock=mblock,
            ublock=ublock,
            pop=popped,
            input_tms=tms,
            attributes=record,
        )
        self.schedules[-1].append(sub_op)
