"""Fused ops: a chain of functions on blocks, its results in dest or in intermediates (OPS 8)."""

from dataclasses import field, replace

from buda_emu.netlist.model import FusedOp, SubOp, Tm
from buda_emu.records import dataclass
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.blocking import Blocking, Shape
from buda_emu.spec.ops import OP_TYPES
from buda_emu.testing.generator.formats import chosen, in_ublock, operands
from buda_emu.testing.generator.operands import operand
from buda_emu.testing.generator.shapes import any_shape
from buda_emu.testing.generator.sheet import Operand, Sheet

_MOST_STEPS, _INTERMEDIATES = 5, 8


def fused(sheet: Sheet, op_type: str) -> None:
    """A new definition, used once."""
    draw = sheet.draw
    formats = chosen(sheet, sums=True)
    shape = any_shape(sheet)
    blocking = sheet.blocking(shape, in_ublock(sheet, formats), order="r")
    chain = _Chain(sheet, shape, blocking)
    if blocking.mblock == (1, 1) and blocking.grid_size[1] == 1 and formats.acc != "Float32" and draw.chance(40):
        chain.less_maximum()
    for left in range(draw.integer(1, _MOST_STEPS), 0, -1):
        chain.step(last=left == 1)
    name = sheet.name("fused")
    sheet.document.fused_ops[name] = FusedOp(
        id=name, inputs=len(chain.sources), intermediates=chain.used, schedules=tuple(map(tuple, chain.schedules))
    )
    attributes: dict[str, object] = {"fused_op_id": name}
    if draw.chance(20):
        attributes["approximate_mode"] = True
    sheet.add(op_type, chain.sources, blocking, formats, attributes=attributes)


@dataclass(slots=True)
class _Chain:
    """Sub-ops, each of which reads what the one before it wrote."""

    sheet: Sheet
    shape: Shape
    blocking: Blocking
    sources: list[Operand] = field(default_factory=list[Operand])
    schedules: list[list[SubOp]] = field(default_factory=lambda: [[]])
    used: int = 0
    """Intermediates."""
    last: str = ""
    """Where the result of the last sub-op is."""

    def step(self, *, last: bool) -> None:
        """One sub-op more; the last one writes the result."""
        draw = self.sheet.draw
        two = draw.chance(50)
        kind = draw.pick([name for name in OP_TYPES if _may_stand(name, two)])
        inputs = [self.last or self.source()]
        popped = tuple(name for name in inputs if name.startswith("intermed"))
        if popped and draw.chance(25):
            self.schedules.append([])
        if two:
            inputs.append(self.source())
        output = "output" if last else draw.pick(("dest", f"intermed{self.used}"))
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
        self._add(kind, inputs, output, self.blocking.mblock, self.blocking.ublock, popped, tms, attributes)
        self.last = output

    def less_maximum(self) -> None:
        """The operand less the maximum of its rows, as a softmax begins."""
        first, width = self.source(), self.blocking.ublock
        self._add(
            "reduce", [first], "intermed0", (1, 1), (width[0], 1), (), ((),),
            {"type": "max", "dim": "c", "m_k": 1, "u_kt": width[1]},
        )  # fmt: skip
        self.schedules.append([])
        tms: tuple[Tm, ...] = (Tm("tile_broadcast", ("c",)),)
        if width[1] > 1:
            tms = (Tm("broadcast", ("c", width[1])), *tms)
        self._add("subtract", [first, "intermed0"], "dest", (1, 1), width, ("intermed0",), ((), tms), {})
        self.used, self.last = 1, "dest"

    def source(self) -> str:
        """An operand of the fused op: one that it has, or a new one."""
        draw = self.sheet.draw
        if not self.sources or (len(self.sources) < 6 and draw.chance(70)):
            self.sources.append(operand(self.sheet, self.shape, operands(self.sheet)))
            return f"input{len(self.sources) - 1}"
        return f"input{draw.integer(0, len(self.sources) - 1)}"

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
            name=name, type=kind, inputs=tuple(inputs), output=output, mblock=mblock, ublock=ublock, pop=popped,
            input_tms=tms, attributes=found,
        )  # fmt: skip
        self.schedules[-1].append(made)


def _may_stand(name: str, two: bool) -> bool:
    """Whether an op type is one of the links: floats in, floats out, of any sign."""
    declared = OP_TYPES[name]
    wrong = ("rounds to Int8", "integers beside floats", "takes positive numbers", "Ethernet", "no gradient")
    return (
        declared.in_fused and declared.has("tile by tile") and (declared.inputs[0] == 2) == two
        and not any(trait in declared.traits for trait in wrong)
    )  # fmt: skip
