"""Lowerings of rounding to integers, and of 8-bit integers from float32 and back (OPS 6.4)."""

from dataclasses import dataclass
from typing import Final, Unpack

import numpy as np

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.lower.elementwise import materialise
from buda_emu.compiler.lower.layout import TILE
from buda_emu.compiler.lower.lowering import LoweredValue, Lowering, lowers
from buda_emu.compiler.lower.schedule import Part, schedule_parts
from buda_emu.compiler.lower.tiles import Constant, TileAttributes, TileGraph, TileOp, Use, over
from buda_emu.compiler.target import Precision, Target
from buda_emu.spec.formats import FORMATS
from buda_emu.support.errors import InternalError

WIDE: Final = Precision("Float32", "Float32")
WHOLE: Final = Precision("Int8", "Int32", "HiFi4")
BACK: Final = Precision("Float32", "Int32", "HiFi4")
PRODUCT: Final = Precision("", "Int32", "HiFi4")
"""Formats for integers: what is rounded is Float32, the sums are Int32 (V102, V103)."""


@lowers("to_int8")
def to_int8(low: Lowering, node: Node) -> LoweredValue:
    """Lower to a nop to Float32 and a `quantization`. Padding that is zero keeps representing the number 0."""
    value = materialise(low, low.values[node.inputs[0]])
    wide = low.op("nop", [low.use(value, transpose=True)], value.shape_in_tiles, suffix="float32")
    low.out.ops[wide].precision = WIDE
    factor = low.array(node.inputs[1])
    assert factor is not None
    number = low.constant(np.full((1, TILE, TILE), factor, np.float32), "scale", "factor")
    name = low.op(
        "quantization",
        [Use(wide), Use(number, over(value.shape_in_tiles))],
        value.shape_in_tiles,
        zero_point=_zero_point(node),
    )
    low.out.ops[name].precision = WHOLE
    return LoweredValue(
        source=name,
        layout=value.layout,
        tms=(),
        rows=None,
        clean_rows=value.clean_rows,
        clean_columns=value.clean_columns,
    )


@lowers("from_int8")
def from_int8(low: Lowering, node: Node) -> LoweredValue:
    """Lower to a `dequantization` by a constant scale."""
    value = low.values[node.inputs[0]]
    scale = low.array(node.inputs[1])
    assert scale is not None
    number = low.constant(np.full((1, TILE, TILE), scale, np.float32), "scale", "scale")
    name = low.op(
        "dequantization",
        [Use(value.source), Use(number, over(value.shape_in_tiles))],
        value.shape_in_tiles,
        zero_point=_zero_point(node),
    )
    low.out.ops[name].precision = BACK
    return LoweredValue(
        source=name,
        layout=value.layout,
        tms=(),
        rows=None,
        clean_rows=value.clean_rows,
        clean_columns=value.clean_columns,
    )


def _zero_point(node: Node) -> float:
    """Return the zero point of a quantisation."""
    return float(node.attrs["zero"])


def requantise(tiles: TileGraph, source: str, like: TileOp) -> list[TileOp]:
    """Return ops, which the caller adds, that turn the moved tensor `source` of real numbers back into the integers
    that `like`, a `dequantization`, made them of. The last op gives the integers. Their scale is added to the constants
    of `tiles`."""
    scale = tiles.constants[like.uses[1].source]
    factor = Constant(f"{source}.factor", 1 / scale.values, "scale")
    tiles.constants.setdefault(factor.name, factor)
    shape = tiles.shape_of(source)
    source_op = tiles.ops[source]
    return [
        TileOp(
            f"{source}.float32",
            "nop",
            [Use(source)],
            shape,
            source=source_op.source,
            program=source_op.program,
            precision=WIDE,
        ),
        TileOp(
            name=f"{source}.int8",
            type="quantization",
            uses=[Use(f"{source}.float32"), Use(factor.name, over(shape))],
            shape=shape,
            attrs={"zero_point": like.attrs["zero_point"]},
            source=source_op.source,
            program=source_op.program,
            precision=WHOLE,
        ),
    ]


@dataclass(frozen=True, slots=True)
class Adder:
    """The arithmetic in which sums round: formats and fidelity, the kind of constants, and the bits of fraction that
    the chip keeps. `narrow`: exponents have 5 bits, so that 1.5 * 2^23 must be written as a product, which the chip
    computes as just a large number."""

    precision: Precision
    kind: str
    bits: int
    narrow: bool = False

    @staticmethod
    def of(target: Target) -> "Adder":
        """Return the adder of a target: Float32, which the chip reads with 10 bits of fraction; on Grayskull the
        model's 16 bits."""
        if target.arch.name != "grayskull":
            return Adder(Precision("", "Float32", "HiFi4"), "scale", 10)
        if FORMATS[target.activation_df].family == "b":
            return Adder(Precision("", "Float16_b", "HiFi4"), "value", 7)
        return Adder(Precision("", "Float16", "HiFi4"), "value", 10, narrow=True)


_CLAMP: Final[TileAttributes] = {"relu_en": True, "relu_threshold": 1.0, "relu_mode": "max"}


class _Steps:
    """The sub-ops of a fused op on one operand. Each method adds sub-ops to `members`, and returns the name of the one
    with the result."""

    def __init__(self, low: Lowering, value: LoweredValue, adder: Adder) -> None:
        self.low = low
        self.value = value
        self.adder = adder
        self.members: dict[str, TileOp] = {}
        self.name = low.name()

    def add_op(self, type: str, /, *operands: Use | str, **attrs: Unpack[TileAttributes]) -> str:
        """Record a sub-op in `members`, and return its name, an operand for later sub-ops. `operands`: names of
        sub-ops, or uses by the fused op, which is made of all members later."""
        name = f"{self.name}.{len(self.members)}"
        uses = [Use(operand) if isinstance(operand, str) else operand for operand in operands]
        self.members[name] = TileOp(name=name, type=type, uses=uses, shape=self.value.shape_in_tiles, attrs=attrs)
        return name

    def number(self, number: float) -> Use:
        """Return an operand with the same number everywhere, a constant of one tile that is broadcast."""
        held = self.low.constant(np.full((1, TILE, TILE), number, np.float32), self.adder.kind, "number")
        return Use(held, over(self.value.shape_in_tiles))

    def middle(self, power: int) -> Use | str:
        """Return 1.5 * 2^power, as an operand or computed by a sub-op. Its sums with smaller numbers stay between
        2^power and 2^(power + 1), where all numbers have the same unit in the last place."""
        if self.adder.narrow and power > 15:
            return self.add_op("multiply", self.number(1.5 * 2**10), self.number(2.0 ** (power - 10)))
        return self.number(1.5 * 2.0**power)

    def positive(self, difference: str) -> str:
        """Add sub-ops that give 1 where a difference (the name of a sub-op, of at most 1) is above 0, else 0:
        multiplications with 2^126, or several with the largest power that 5 bits of exponent hold, and clamping."""
        steps, factor = (4, self.number(2.0**15)) if self.adder.narrow else (1, self.number(2.0**126))
        for _ in range(steps):
            difference = self.add_op("multiply", difference, factor, **_CLAMP)
        return difference

    def apart(self, x: Use | str, near: str, least: float) -> tuple[str, str]:
        """Add sub-ops for how far x is above and below the number `near`, with 0 for distances smaller than `least`,
        and return their two names."""
        keep: TileAttributes = {"relu_en": True, "relu_threshold": least, "relu_mode": "min"}
        return self.add_op("subtract", x, near, **keep), self.add_op("subtract", near, x, **keep)

    def round_by_sum(self, x: Use | str, power: int) -> str:
        """Add sub-ops that round x to a multiple of 2^(power - fraction bits) by a sum with a large number."""
        middle = self.middle(power)
        return self.add_op("subtract", self.add_op("add", x, middle), middle)

    def near(self, x: Use | str, doubled: bool = False) -> str:
        """Add sub-ops for an integer less than 1 from x; if `doubled`, for an even one less than 1.5 from it, or x
        itself."""
        integer = self.round_by_sum(x, 23 + doubled)
        left = self.add_op("subtract", *self.apart(x, integer, 1.25 if doubled else 0.75))
        rough = self.round_by_sum(left, self.adder.bits + 2 + doubled)
        fine = self.round_by_sum(self.add_op("subtract", left, rough), self.adder.bits + doubled)
        integer = self.add_op("add", self.add_op("add", integer, rough), fine)
        # still integers, of numbers that have no room for a fraction
        above, below = self.apart(x, integer, 1.75 if doubled else 0.875)
        return self.add_op("subtract", self.add_op("add", integer, above), below)

    def floor(self, x: Use | str) -> str:
        """Add sub-ops for the largest integer that is not above x."""
        near = self.near(x)
        return self.add_op("subtract", near, self.positive(self.add_op("subtract", near, x)))

    def ceil(self, x: Use | str) -> str:
        """Add sub-ops for the smallest integer that is not below x."""
        near = self.near(x)
        return self.add_op("add", near, self.positive(self.add_op("subtract", x, near)))

    def round(self, x: Use | str) -> str:
        """Add sub-ops for the nearest integer, halves to even: an even number, and 1 more or less if x is more than 0.5
        from it."""
        even = self.near(x, doubled=True)
        half = self.number(0.5)
        above = self.positive(self.add_op("subtract", self.add_op("subtract", x, even), half))
        below = self.positive(self.add_op("subtract", self.add_op("subtract", even, x), half))
        return self.add_op("subtract", self.add_op("add", even, above), below)

    def truncate(self, x: Use | str) -> str:
        """Add sub-ops that round towards 0: floor(|x|), times its sign. The sign is operand 0 of the product, which is
        the one of fewer bits."""
        size = self.floor(self.add_op("abs", x))
        above = self.positive(self.add_op("nop", x, **_CLAMP))
        sign = self.add_op("subtract", self.add_op("add", above, above), self.number(1.0))
        return self.add_op("multiply", sign, size)


@lowers("floor", "ceil", "round", "truncate")
def round_to_integers(low: Lowering, node: Node) -> LoweredValue:
    """Lower a rounding to one fused op, with a nop to Float32 in front of it if the chip has that."""
    adder = Adder.of(low.target)
    value = materialise(low, low.values[node.inputs[0]])
    if adder.precision.acc_df == "Float32" and low.target.activation_df != "Float32":
        x = Use(low.op("nop", [low.use(value, transpose=True)], value.shape_in_tiles, suffix="float32"))
        low.out.ops[x.source].precision = WIDE
    else:
        x = low.use(value)
    steps = _Steps(low, value, adder)
    root = getattr(steps, node.op)(x)
    parts = {name: Part.of(op, steps.members) for name, op in steps.members.items()}
    schedule = schedule_parts(parts, root, low.target.arch.name)
    if schedule is None:
        raise InternalError(f"{node.op} does not fit the buffers of a fused op")
    name = low.op("fused_op", schedule[1], value.shape_in_tiles)
    fused = low.out.ops[name]
    fused.steps = schedule[0]
    fused.precision = adder.precision
    return LoweredValue(
        source=name,
        layout=value.layout,
        tms=(),
        rows=None,
        clean_rows=value.clean_rows,
        clean_columns=value.clean_columns,
    )
