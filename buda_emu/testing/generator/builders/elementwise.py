"""Ops that work tile by tile: functions of one operand, arithmetic of two, copies."""

from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.blocking import FULL_TILE, Shape
from buda_emu.spec.ops import OP_TYPES, OpType
from buda_emu.testing.generator.builders import integers
from buda_emu.testing.generator.draft import Formats, NetlistDraft, NoRoomError, Operand
from buda_emu.testing.generator.formats import chosen, in_ublock, operands
from buda_emu.testing.generator.operands import operand
from buda_emu.testing.generator.shapes import any_shape

KEEP_POSITIVE = ("nop", "datacopy", "add", "multiply", "maximum", "sqrt", "reciprocal", "exp", "square", "abs",
                  "sigmoid", "dropout", "power")  # fmt: skip
"""Results of operands that are not negative are not negative."""
ALWAYS_POSITIVE = ("square", "abs", "sigmoid")


def unary(draft: NetlistDraft, op_type: str) -> None:
    """A function of one operand, or a copy."""
    declared = OP_TYPES[op_type]
    if declared.has("Int32 sums of floats") and draft.draw.sometimes(4, "conversion"):
        return integers.conversion(draft, op_type)
    if not declared.has("vector unit") and draft.draw.sometimes(12, "integers"):
        return integers.elementwise(draft, op_type)
    gradient = _may_sum(draft, declared)
    formats = chosen(draft, gradient=gradient)
    shape = any_shape(draft)
    source = operand(
        draft,
        shape,
        operands(draft),
        transposed=declared.transposed == 0,
        positive=declared.has("takes positive numbers"),
    )
    attributes = _function(draft, declared) | extras(draft)
    return _add(draft, declared, (source,), shape, formats, attributes, gradient=gradient)


def binary(draft: NetlistDraft, op_type: str) -> None:
    """Arithmetic of two operands."""
    declared = OP_TYPES[op_type]
    if draft.draw.sometimes(12, "integers"):
        return integers.elementwise(draft, op_type)
    gradient = _may_sum(draft, declared)
    formats = chosen(draft, gradient=gradient)
    shape = any_shape(draft)
    may_transpose = declared.transposed == 0 and draft.arch.name != "grayskull" and not gradient
    sources = (
        operand(draft, shape, operands(draft), transposed=may_transpose),
        operand(draft, shape, operands(draft)),
    )
    return _add(draft, declared, sources, shape, formats, extras(draft), gradient=gradient)


def _may_sum(draft: NetlistDraft, declared: OpType) -> bool:
    """Whether the op adds to its result of before (NETLIST V031, V095)."""
    on_grayskull = declared.has("sums gradients on grayskull")
    may = on_grayskull if draft.arch.name == "grayskull" or declared.one_input else not declared.has("no gradient")
    return may and draft.draw.sometimes(8, "gradient op", "gradient_op", "zero")


def ethernet(draft: NetlistDraft, op_type: str) -> None:
    """A copy over the link to the other chip, whose graph reads it (NETLIST V159, V366)."""
    if draft.chips == 1 or draft.graph.chip != 0 or (draft.graph.ops and draft.draw.chance(50)):
        raise NoRoomError
    formats, shape = chosen(draft), any_shape(draft)
    source = operand(draft, shape, operands(draft), shaped=False)
    formats = Formats(source.value.df, formats.intermed, formats.acc)
    blocking = draft.blocking(shape, in_ublock(draft, formats), one_core=True)
    attributes: dict[str, object] = {"ingress_channels": (0,), "egress_channels": (0,), "dest_device": 1}
    draft.add(
        op_type,
        (source,),
        blocking,
        formats,
        attributes=attributes,
        fields={"on_ethernet": True},
        positive=source.value.positive,
    )


def _add(
    draft: NetlistDraft,
    declared: OpType,
    sources: tuple[Operand, ...],
    shape: Shape,
    formats: Formats,
    attributes: dict[str, object],
    *,
    gradient: bool = False,
) -> None:
    blocking = draft.blocking(shape, in_ublock(draft, formats))
    kept = declared.name in KEEP_POSITIVE and all(source.value.positive for source in sources)
    capped = attributes.get("relu_mode") == "max"
    positive = declared.name in ALWAYS_POSITIVE or (kept and not capped)
    fields: dict[str, object] = {"gradient_op": True} if gradient else {}
    draft.add(declared.name, sources, blocking, formats, attributes=attributes, positive=positive, fields=fields)


def _function(draft: NetlistDraft, declared: OpType) -> dict[str, object]:
    """Attributes of vector functions, and those that only this one has."""
    draw = draft.draw
    found: dict[str, object] = {}
    if declared.has("vector unit") and draw.sometimes(25, "approximate_mode"):
        found["approximate_mode"] = draw.chance(50)
    if declared.has("vector unit") and draw.sometimes(15, "vector"):
        found["vector"] = _vector(draft)
    own = {"p": (0.0, 0.25, 0.5), "seed": (0, 7), "slope": (0.1, 0.01, 1.5), "exp": (2, 3)}
    for name in declared.attributes:
        if name in own and (draw.sometimes(60, name) or name == "exp"):
            found[name] = draw.pick(own[name])
    if "sfpu_execution_thread" in declared.attributes and draw.sometimes(10, "sfpu_execution_thread"):
        words = ("math",) if draft.arch.name == "grayskull" else ATTRIBUTES["sfpu_execution_thread"].words
        found["sfpu_execution_thread"] = draw.pick(words)
    return found


def _vector(draft: NetlistDraft) -> str:
    """Any, on whole tiles (NETLIST V059)."""
    if draft.tile == FULL_TILE:
        return draft.draw.pick(ATTRIBUTES["vector"].words)
    return "c" if draft.tile[0] == FULL_TILE[0] else "r"


def extras(draft: NetlistDraft) -> dict[str, object]:
    """Attributes that any op may have: relu, stochastic rounding in its words, broadcasts that stay in L1."""
    draw = draft.draw
    found: dict[str, object] = {}
    if draw.sometimes(12, "relu_en", "relu_threshold", "relu_mode"):
        found["relu_en"] = True
        found["relu_threshold"] = draw.pick((0.0, 0.5, 1.5))
        found["relu_mode"] = draw.pick(ATTRIBUTES["relu_mode"].words)
    if draw.chance(3):
        found["stoch_rnd_mode"] = "none"
    return found
