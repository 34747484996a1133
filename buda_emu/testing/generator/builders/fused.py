"""Fused ops: a chain of functions on blocks, its results in dest or in intermediates (OPS 8)."""

from dataclasses import field, replace

from buda_emu.netlist.model import FusedOp, SubOp, Tm
from buda_emu.records import dataclass
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.blocking import Blocking, Shape
from buda_emu.spec.ops import OP_TYPES
from buda_emu.testing.generator.builders.elementwise import ALWAYS_POSITIVE, KEEP_POSITIVE
from buda_emu.testing.generator.draft import Formats, NetlistDraft, Operand
from buda_emu.testing.generator.formats import chosen, in_ublock, operands
from buda_emu.testing.generator.operands import operand
from buda_emu.testing.generator.shapes import any_shape

_MOST_STEPS, _INTERMEDIATES = 5, 8
_ON_INTEGERS = tuple(name for name, op in OP_TYPES.items() if op.family == "quantization")


def fused(draft: NetlistDraft, op_type: str) -> None:
    """A new definition, used once."""
    draw = draft.draw
    formats = chosen(draft, sums=True)
    shape = any_shape(draft)
    begin = draw.pick(("", "", "reduce", "matmul", *(() if draft.arch.name == "grayskull" else _ON_INTEGERS)))
    if begin in _ON_INTEGERS:
        formats = Formats("Float32" if begin == "dequantization" else "Int8", "Int32", "Int32")
    blocking = draft.blocking(shape, in_ublock(draft, formats), order="r")
    chain = _Chain(draft, shape, blocking)
    if begin in _ON_INTEGERS:
        chain.of_integers(begin)
    else:
        if begin == "reduce" and blocking.mblock == (1, 1) and blocking.grid_size[1] == 1 and formats.acc != "Float32":
            chain.less_maximum()
        elif begin == "matmul" and blocking.cells == 1:
            chain.product()
        for left in range(draw.integer(1, _MOST_STEPS), 0, -1):
            chain.step(last=left == 1)
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
    """Sub-ops, each of which reads what the one before it wrote."""

    draft: NetlistDraft
    shape: Shape
    blocking: Blocking
    sources: list[Operand] = field(default_factory=list[Operand])
    schedules: list[list[SubOp]] = field(default_factory=lambda: [[]])
    used: int = 0
    """Intermediates."""
    kept: int = 0
    """Operands that only the first sub-op reads, of other shapes."""
    last: str = ""
    """Where the result of the last sub-op is."""
    positive: bool = False
    """No element of that is below zero."""

    def step(self, *, last: bool) -> None:
        """One sub-op more; the last one writes the result."""
        draw = self.draft.draw
        two = draw.chance(50)
        kind = draw.pick([name for name in OP_TYPES if self._may_stand(name, two, last)])
        inputs = [self.last or self.source()]
        popped = tuple(name for name in inputs if name.startswith("intermed"))
        if popped and self.schedules[-1] and draw.chance(25):
            self.schedules.append([])
        if two:
            inputs.append(self.source())
        beside = () if OP_TYPES[kind].has("no gradient") else ("dest",)
        output = "output" if last else draw.pick((*beside, f"intermed{self.used}"))
        if output.startswith("intermed"):
            if self.used == _INTERMEDIATES:
                output = "dest"
            self.used += output != "dest"
        tms: tuple[tuple[Tm, ...], ...] = ((),) * len(inputs)
        if kind in ("add", "subtract", "multiply") and draw.chance(20):
            tms = ((), (Tm("tile_broadcast", (draw.pick("rc"),)),))
        attributes: dict[str, object] = {}
        if draw.chance(10):
            attributes = {"relu_en": True, "relu_threshold": 0.5, "relu_mode": draw.pick(("min", "max"))}
        if "exp" in OP_TYPES[kind].attributes:
            attributes["exp"] = draw.pick((2, 3))
        self._add(kind, inputs, output, self.blocking.mblock, self.blocking.ublock, popped, tms, attributes)
        kept = not two and self.positive and kind in KEEP_POSITIVE
        self.last, self.positive = output, (kind in ALWAYS_POSITIVE or kept) and attributes.get("relu_mode") != "max"

    def _may_stand(self, name: str, two: bool, last: bool) -> bool:
        """Whether an op type is the next link: floats in, floats out, of a sign that it takes (NETLIST V133)."""
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
        """A matmul, whose result the others go on with."""
        inner = self.draft.draw.integer(1, 2)
        t, rows, cols = self.shape
        for shape in ((t, rows, inner), (t, inner, cols)):
            self.sources.append(operand(self.draft, shape, operands(self.draft)))
        self._add(
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
        self.used, self.last, self.kept = 1, "intermed0", 2

    def of_integers(self, last: str) -> None:
        """Quantised numbers: combined and scaled, or floats made such (NETLIST V141)."""
        draft, blocks = self.draft, (self.blocking.mblock, self.blocking.ublock)

        def source(df: str) -> str:
            self.sources.append(operand(draft, self.shape, (df,)))
            return f"input{len(self.sources) - 1}"

        first = source("Float32" if last == "quantization" else "Int8")
        popped: tuple[str, ...] = ()
        if last != "quantization":
            kind = draft.draw.pick(("add", "maximum", "multiply", "datacopy"))
            inputs = [first] if OP_TYPES[kind].one_input else [first, source("Int8")]
            self._add(kind, inputs, "intermed0", *blocks, (), ((),) * len(inputs), {})
            first, popped, self.used = "intermed0", ("intermed0",), 1
        self._add(last, [first, source("Float32")], "output", *blocks, popped, ((), ()), {})

    def less_maximum(self) -> None:
        """The operand less the maximum of its rows, as a softmax begins."""
        first, width = self.source(), self.blocking.ublock
        self._add(
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
        self._add("subtract", [first, "intermed0"], "dest", (1, 1), width, ("intermed0",), ((), tms), {})
        self.used, self.last = 1, "dest"

    def source(self) -> str:
        """An operand of the fused op: one that it has, or a new one."""
        draw = self.draft.draw
        if len(self.sources) == self.kept or (len(self.sources) < 6 and draw.chance(70)):
            self.sources.append(operand(self.draft, self.shape, operands(self.draft)))
            return f"input{len(self.sources) - 1}"
        return f"input{draw.integer(self.kept, len(self.sources) - 1)}"

    def _add(
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
        found = replace(Attributes(), given=frozenset(attributes), **attributes)  # type: ignore[arg-type]  # by their table
        name = f"step_{sum(map(len, self.schedules))}"
        made = SubOp(
            name=name,
            type=kind,
            inputs=tuple(inputs),
            output=output,
            mblock=mblock,
            ublock=ublock,
            pop=popped,
            input_tms=tms,
            attributes=found,
        )
        self.schedules[-1].append(made)
