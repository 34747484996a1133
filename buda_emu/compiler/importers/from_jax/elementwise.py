"""Element by element: arithmetic, comparisons, choices, element types."""

from typing import Final

import numpy as np

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_jax.declared import Call, hlo, plain
from buda_emu.compiler.importers.operators import NotSupportedError

plain(
    {
        "stablehlo.abs": "abs", "stablehlo.add": "add", "stablehlo.ceil": "ceil", "stablehlo.cosine": "cosine",
        "stablehlo.exponential": "exp", "stablehlo.floor": "floor", "stablehlo.log": "log",
        "stablehlo.logistic": "sigmoid", "stablehlo.maximum": "maximum", "stablehlo.minimum": "minimum",
        "stablehlo.multiply": "multiply", "stablehlo.negate": "negative", "stablehlo.power": "pow",
        "stablehlo.round_nearest_even": "round", "stablehlo.rsqrt": "rsqrt", "stablehlo.sign": "sign",
        "stablehlo.sine": "sine", "stablehlo.sqrt": "sqrt", "stablehlo.subtract": "subtract", "stablehlo.tan": "tan",
        "stablehlo.tanh": "tanh", "chlo.acos": "acos", "chlo.acosh": "acosh", "chlo.asin": "asin",
        "chlo.asinh": "asinh", "chlo.atan": "atan", "chlo.atanh": "atanh", "chlo.cosh": "cosh", "chlo.erf": "erf",
        "chlo.sinh": "sinh", "chlo.square": "square", "chlo.tan": "tan",
    }
)  # fmt: skip
_COMPARISONS: Final = {
    "EQ": "equal", "NE": "not_equal", "GE": "greater_equal", "GT": "greater", "LE": "less_equal", "LT": "less",
}  # fmt: skip


@hlo("chlo.erfc")
def erfc(call: Call) -> Node:
    """1 - `erf`"""
    return call.b.subtract(1.0, call.b.erf(*call.operands))


@hlo("stablehlo.log_plus_one")
def log_plus_one(call: Call) -> Node:
    """log(1 + x)"""
    return call.b.log(call.b.add(call.operands[0], 1.0))


@hlo("stablehlo.exponential_minus_one")
def exponential_minus_one(call: Call) -> Node:
    """exp(x) - 1"""
    return call.b.subtract(call.b.exp(*call.operands), 1.0)


@hlo("stablehlo.divide")
def divide(call: Call) -> Node:
    """`divide`; of integers `whole_quotient`, towards 0"""
    return call.b.emit("divide" if _floats(call) else "whole_quotient", *call.operands)


@hlo("stablehlo.remainder")
def remainder(call: Call) -> Node:
    """`modulo` with the sign of x"""
    return call.b.modulo(*call.operands, truncated=True)


def _floats(call: Call) -> bool:
    return np.dtype(call.dtypes[0]).kind == "f"


@hlo("stablehlo.compare")
def compare(call: Call) -> Node:
    """`equal`, `not_equal`, `greater_equal`, `greater`, `less_equal` or `less`"""
    if call.attrs.get("compare_type") == "TOTALORDER":
        raise NotSupportedError("compare_type=TOTALORDER: NaN and -0 are not kept apart on the device")
    return call.b.emit(_COMPARISONS[call.attrs["comparison_direction"]], *call.operands)


@hlo("stablehlo.and", "stablehlo.or", "stablehlo.xor", "stablehlo.not")
def logical(call: Call) -> Node:
    """`logical_and` and so on, of bool only"""
    if call.dtypes[0] != "bool":
        raise NotSupportedError(f"bits of {call.dtypes[0]}")
    return call.b.emit(f"logical_{call.operator}", *call.operands)


@hlo("stablehlo.select")
def select(call: Call) -> Node:
    """`where`; a side that is NaN everywhere is the result of an index outside of its table, and never taken"""
    chosen, x, y = call.operands
    for side, other in ((x, y), (y, x)):
        if side.op == "constant" and side.value.dtype.kind == "f" and np.isnan(side.value).all():
            return other
    if chosen.op != "constant" and chosen.shape != x.shape:
        chosen = call.b.expand(chosen, shape=x.shape)
    return call.b.where(chosen, x, y)


@hlo("stablehlo.clamp")
def clamp(call: Call) -> Node:
    """`minimum` of `maximum`"""
    low, x, high = call.operands
    return call.b.minimum(call.b.maximum(x, low), high)


@hlo("stablehlo.convert")
def convert(call: Call) -> Node:
    """the same value under another type; `truncate` from floats to integers, x != 0 to bool"""
    x, (dtype,) = call.operands[0], call.dtypes
    before, after = np.dtype(x.dtype).kind, np.dtype(dtype).kind
    if after == "b" and before != "b":
        return call.b.boolean(x)
    return call.b.truncate(x) if before == "f" and after in "iu" else x


@hlo("stablehlo.optimization_barrier")
def barrier(call: Call) -> list[Node]:
    """its operands"""
    return list(call.operands)
