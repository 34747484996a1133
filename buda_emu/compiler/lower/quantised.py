"""Integers of 8 bits: from float32 and back (OPS 6.4, V103)."""

from typing import Final

import numpy as np

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.lower.elementwise import settled
from buda_emu.compiler.lower.layout import TILE
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers
from buda_emu.compiler.lower.tiles import Constant, TileGraph, TileOp, Use, over
from buda_emu.compiler.target import Precision

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
    return Value(name, value.layout, (), None, value.clean_rows, value.clean_columns)


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
    return Value(name, value.layout, (), None, value.clean_rows, value.clean_columns)


def _zero(node: Node) -> float:
    return float(node.attrs["zero"])


def requantised(tiles: TileGraph, source: str, like: TileOp) -> list[TileOp]:
    """Ops that make the integers again of a tensor that holds real ones of the grid of `like`, a `dequantization`:
    it has been moved since. The last one gives them."""
    scale = tiles.constants[like.uses[1].source]
    factor = Constant(f"{source}.factor", 1 / scale.values, "scale")
    tiles.constants.setdefault(factor.name, factor)
    shape, own = tiles.shape_of(source), tiles.ops[source]
    return [
        TileOp(
            f"{source}.float32", "nop", [Use(source)], shape, source=own.source, program=own.program, precision=WIDE
        ),
        TileOp(
            f"{source}.int8",
            "quantization",
            [Use(f"{source}.float32"), Use(factor.name, over(shape))],
            shape,
            {"zero_point": like.attrs["zero_point"]},
            source=own.source,
            program=own.program,
            precision=WHOLE,
        ),
    ]
