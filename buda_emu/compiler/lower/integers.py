"""Integers: rounding to them, and those of 8 bits from float32 and back (OPS 6.4)."""

from dataclasses import dataclass
from typing import Final, Unpack

import numpy as np

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.lower.elementwise import settled
from buda_emu.compiler.lower.layout import TILE
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers
from buda_emu.compiler.lower.schedule import Part, scheduled
from buda_emu.compiler.lower.tiles import Constant, TileAttributes, TileGraph, TileOp, Use, over
from buda_emu.compiler.target import Precision, Target
from buda_emu.spec.formats import FORMATS
from buda_emu.support.errors import InternalError

WIDE: Final = Precision("Float32", "Float32")
WHOLE: Final = Precision("Int8", "Int32", "HiFi4")
BACK: Final = Precision("Float32", "Int32", "HiFi4")
PRODUCT: Final = Precision("", "Int32", "HiFi4")
"""V102, V103: what is rounded is Float32, the sums are Int32."""


@lowers("to_int8")
def to_int8(low: Lowering, node: Node) -> Value:
    """A nop to Float32, and the op `quantization`. Zeros beyond the value stay those of the real number."""
    value = settled(low, low.values[node.inputs[0]])
    wide = low.op("nop", [low.use(value, transpose=True)], value.tiles, suffix="float32")
    low.out.ops[wide].precision = WIDE
    factor = low.array(node.inputs[1])
    assert factor is not None
    number = low.constant(np.full((1, TILE, TILE), factor, np.float32), "scale", "factor")
    name = low.op("quantization", [Use(wide), Use(number, over(value.tiles))], value.tiles, zero_point=_zero(node))
    low.out.ops[name].precision = WHOLE
    return Value(
        source=name,
        layout=value.layout,
        tms=(),
        rows=None,
        clean_rows=value.clean_rows,
        clean_columns=value.clean_columns,
    )


@lowers("from_int8")
def from_int8(low: Lowering, node: Node) -> Value:
    """The op `dequantization`."""
    value = low.values[node.inputs[0]]
    scale = low.array(node.inputs[1])
    assert scale is not None
    number = low.constant(np.full((1, TILE, TILE), scale, np.float32), "scale", "scale")
    name = low.op(
        "dequantization", [Use(value.source), Use(number, over(value.tiles))], value.tiles, zero_point=_zero(node)
    )
    low.out.ops[name].precision = BACK
    return Value(
        source=name,
        layout=value.layout,
        tms=(),
        rows=None,
        clean_rows=value.clean_rows,
        clean_columns=value.clean_columns,
    )


def _zero(node: Node) -> float:
    return float(node.attrs["zero"])


def requantised(tiles: TileGraph, source: str, like: TileOp) -> list[TileOp]:
    """Ops that make the integers again of a tensor that holds real ones of the grid of `like`, a `dequantization`:
    it has been moved since. The last one gives them."""
    scale = tiles.constants[like.uses[1].source]
    factor = Constant(f"{source}.factor", 1 / scale.values, "scale")
    tiles.constants.setdefault(factor.name, factor)
    shape = tiles.shape_of(source)
    own = tiles.ops[source]
    return [
        TileOp(
            f"{source}.float32", "nop", [Use(source)], shape, source=own.source, program=own.program, precision=WIDE
        ),
        TileOp(
            name=f"{source}.int8",
            type="quantization",
            uses=[Use(f"{source}.float32"), Use(factor.name, over(shape))],
            shape=shape,
            attrs={"zero_point": like.attrs["zero_point"]},
            source=own.source,
            program=own.program,
            precision=WHOLE,
        ),
    ]


@dataclass(frozen=True, slots=True)
class Adder:
    """What sums are made in: formats and fidelity, the kind of constants, the bits of fraction that the chip keeps.
    `narrow`: exponents have 5 bits, so that 1.5 * 2^23 has to be a product, which on the chip is just a large number.
    """

    precision: Precision
    kind: str
    bits: int
    narrow: bool = False

    @staticmethod
    def of(target: Target) -> "Adder":
        """Float32, which the chip reads with 10 bits of fraction; Grayskull has the model's 16 bits."""
        if target.arch.name != "grayskull":
            return Adder(Precision("", "Float32", "HiFi4"), "scale", 10)
        if FORMATS[target.activation_df].family == "b":
            return Adder(Precision("", "Float16_b", "HiFi4"), "value", 7)
        return Adder(Precision("", "Float16", "HiFi4"), "value", 10, narrow=True)


_CLAMP: Final[TileAttributes] = {"relu_en": True, "relu_threshold": 1.0, "relu_mode": "max"}


class _Steps:
    """The sub-ops on one operand, as they are added."""

    def __init__(self, low: Lowering, value: Value, adder: Adder) -> None:
        self.low = low
        self.value = value
        self.adder = adder
        self.members: dict[str, TileOp] = {}
        self.name = low.name()

    def do(self, type: str, /, *operands: Use | str, **attrs: Unpack[TileAttributes]) -> str:
        """One more, on operands of the fused op and results of others."""
        name = f"{self.name}.{len(self.members)}"
        uses = [Use(item) if isinstance(item, str) else item for item in operands]
        self.members[name] = TileOp(name=name, type=type, uses=uses, shape=self.value.tiles, attrs=attrs)
        return name

    def number(self, number: float) -> Use:
        """The same number everywhere."""
        held = self.low.constant(np.full((1, TILE, TILE), number, np.float32), self.adder.kind, "number")
        return Use(held, over(self.value.tiles))

    def middle(self, power: int) -> Use | str:
        """1.5 * 2^power: sums with smaller numbers stay between the two powers of 2."""
        if self.adder.narrow and power > 15:
            return self.do("multiply", self.number(1.5 * 2**10), self.number(2.0 ** (power - 10)))
        return self.number(1.5 * 2.0**power)

    def positive(self, difference: str) -> str:
        """1 where what is at most 1 is above 0, else 0: times 2^126, or so often by what 5 bits of exponent hold."""
        steps, factor = (4, self.number(2.0**15)) if self.adder.narrow else (1, self.number(2.0**126))
        for _ in range(steps):
            difference = self.do("multiply", difference, factor, **_CLAMP)
        return difference

    def apart(self, x: Use | str, near: str, least: float) -> tuple[str, str]:
        """What x is above and below a number, 0 for what is less than `least`."""
        keep: TileAttributes = {"relu_en": True, "relu_threshold": least, "relu_mode": "min"}
        return self.do("subtract", x, near, **keep), self.do("subtract", near, x, **keep)

    def summed(self, x: Use | str, power: int) -> str:
        """The multiple of 2^(power - fraction bits) that a sum leaves of x."""
        middle = self.middle(power)
        return self.do("subtract", self.do("add", x, middle), middle)

    def near(self, x: Use | str, doubled: bool = False) -> str:
        """An integer less than 1 from x; `doubled`: an even one less than 1.5 from it, or x itself."""
        found = self.summed(x, 23 + doubled)
        left = self.do("subtract", *self.apart(x, found, 1.25 if doubled else 0.75))
        rough = self.summed(left, self.adder.bits + 2 + doubled)
        fine = self.summed(self.do("subtract", left, rough), self.adder.bits + doubled)
        found = self.do("add", self.do("add", found, rough), fine)
        # still integers, of numbers that have no room for a fraction
        above, below = self.apart(x, found, 1.75 if doubled else 0.875)
        return self.do("subtract", self.do("add", found, above), below)

    def floor(self, x: Use | str) -> str:
        """Below or at x."""
        near = self.near(x)
        return self.do("subtract", near, self.positive(self.do("subtract", near, x)))

    def ceil(self, x: Use | str) -> str:
        """Above or at x."""
        near = self.near(x)
        return self.do("add", near, self.positive(self.do("subtract", x, near)))

    def round(self, x: Use | str) -> str:
        """Nearest, halves to even: an even number, and 1 more or less where x is more than 0.5 from it."""
        even = self.near(x, doubled=True)
        half = self.number(0.5)
        above = self.positive(self.do("subtract", self.do("subtract", x, even), half))
        below = self.positive(self.do("subtract", self.do("subtract", even, x), half))
        return self.do("subtract", self.do("add", even, above), below)

    def truncate(self, x: Use | str) -> str:
        """Towards 0: floor(|x|), and its sign as operand 0 of a product, which is the one of fewer bits."""
        size = self.floor(self.do("abs", x))
        above = self.positive(self.do("nop", x, **_CLAMP))
        sign = self.do("subtract", self.do("add", above, above), self.number(1.0))
        return self.do("multiply", sign, size)


@lowers("floor", "ceil", "round", "truncate")
def whole(low: Lowering, node: Node) -> Value:
    """One fused op; before it a nop to Float32, where the chip has that."""
    adder = Adder.of(low.target)
    value = settled(low, low.values[node.inputs[0]])
    if adder.precision.acc_df == "Float32" and low.target.activation_df != "Float32":
        x = Use(low.op("nop", [low.use(value, transpose=True)], value.tiles, suffix="float32"))
        low.out.ops[x.source].precision = WIDE
    else:
        x = low.use(value)
    steps = _Steps(low, value, adder)
    root = getattr(steps, node.op)(x)
    parts = {name: Part.of(op, steps.members) for name, op in steps.members.items()}
    found = scheduled(parts, root, low.target.arch.name)
    if found is None:
        raise InternalError(f"{node.op} does not fit the buffers of a fused op")
    name = low.op("fused_op", found[1], value.tiles)
    low.out.ops[name].steps, low.out.ops[name].precision = found[0], adder.precision
    return Value(
        source=name,
        layout=value.layout,
        tms=(),
        rows=None,
        clean_rows=value.clean_rows,
        clean_columns=value.clean_columns,
    )
