"""Handlers of element-wise ONNX operators, comparisons and casts."""

from typing import Any

import numpy as np
import onnx

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node, dim_of
from buda_emu.compiler.importers import special_values
from buda_emu.compiler.importers.from_onnx.call import Call, is_float, onnx_op

_PLAIN = {
    "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Reciprocal": "reciprocal", "Sigmoid": "sigmoid", "Tanh": "tanh",
    "Sin": "sine", "Cos": "cosine", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan", "Sinh": "sinh",
    "Cosh": "cosh", "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh", "Abs": "abs", "Neg": "negative",
    "Floor": "floor", "Ceil": "ceil", "Round": "round", "Sign": "sign", "Erf": "erf", "Relu": "relu",
    "Softplus": "softplus", "Softsign": "softsign", "HardSwish": "hard_swish", "Mish": "mish", "Not": "logical_not",
    "Identity": "identity",
    "Sub": "subtract", "Mul": "multiply", "Greater": "greater", "GreaterOrEqual": "greater_equal", "Less": "less",
    "LessOrEqual": "less_equal", "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor", "Add": "add",
    "PRelu": "prelu", "Equal": "equal",
}  # fmt: skip
"""Operators that are a single front-end op on all operands."""


@onnx_op(*_PLAIN, becomes=_PLAIN)
def emit_by_table(call: Call) -> Node:
    """Emit the front-end op that the table has for the operator."""
    if call.op == "PRelu" and len(call[1].shape) == 1 and len(call[0].shape) > 1 and call.opset < 7:
        raise call.refuse("channel-wise slopes of opset 6")
    return call.b.emit(_PLAIN[call.op], *align_operands(call))


def align_operands(call: Call) -> list[Node]:
    """Return the operands in shapes that numpy broadcasts: before opset 7 attributes said where the second one lies."""
    operands = [node for node in call.inputs if node is not None]
    axis = call.attr("axis")
    if not call.attr("broadcast", 0) or axis is None:
        return operands
    first, second = operands
    behind = len(first.shape) - dim_of(axis, len(first.shape)) - len(second.shape)
    return [first, call.b.reshape(second, shape=(*second.shape, *(1,) * behind))]


@onnx_op("Div")
def div(call: Call) -> Node:
    """`divide`; of integers `whole_quotient`"""
    x, y = align_operands(call)
    if is_float(x):
        return call.b.divide(x, y)
    return call.b.retype(call.b.whole_quotient(x, y), x.dtype)


@onnx_op("Mod")
def mod(call: Call) -> Node:
    """`modulo`; fmod 1 has the sign of the dividend"""
    if is_float(call[0]) and not call.attr("fmod", 0):
        raise call.refuse("of floats without fmod")
    remainder = call.b.modulo(call[0], call[1], truncated=bool(call.attr("fmod", 0)))
    if not is_float(call[0]):
        return call.b.retype(remainder, call[0].dtype)
    return remainder


@onnx_op("Pow")
def pow_(call: Call) -> Node:
    """`pow`; the result has the type of the base, for integers towards 0"""
    x, y = align_operands(call)
    power = call.b.pow(x, y)
    if is_float(x):
        return power
    if is_float(y) and not (y.op == "constant" and np.array_equal(y.value, np.trunc(y.value))):
        return call.b.retype(_truncate_power(call.b, power), x.dtype)
    return call.b.retype(call.b.round(power), x.dtype)


_POWER_ERROR = 4e-6
"""The relative error of a computed power: a result that is closer to an integer counts as this integer."""


def _truncate_power(b: Builder, power: Node) -> Node:
    """Return a power of integers towards 0, as the frameworks convert it to an integer. A whole power that is computed
    as slightly less than it is keeps its value."""
    whole = b.round(power)
    error = b.abs(b.subtract(power, whole))
    is_whole = b.less_equal(error, b.multiply(b.abs(whole), _POWER_ERROR))
    return b.where(is_whole, whole, b.truncate(power))


@onnx_op("Max", "Min", "Sum", "Mean")
def fold_operands(call: Call) -> Node:
    """`maximum`, `minimum` or `add`, one after the other

    The operator is Max, Min, Sum or Mean, which divides by the number of operands at the end.
    """
    combine = {"Max": call.b.maximum, "Min": call.b.minimum}.get(call.op, call.b.add)
    total = call[0]
    for place in range(1, len(call.inputs)):
        total = combine(total, call[place])
    if call.op == "Mean":
        return call.b.multiply(total, 1 / len(call.inputs))
    return total


@onnx_op("Clip")
def clip(call: Call) -> Node:
    """`clip` between numbers, `maximum` and `minimum` of values

    The bounds are operands or, before opset 11, attributes; either may be missing."""
    x = call[0]
    bounds = [call.get(1), call.get(2)]
    if all(node is None or node.op == "constant" for node in bounds):
        low, high = (
            float(node.value) if node is not None else call.attr(name)
            for node, name in zip(bounds, ("min", "max"), strict=True)
        )
        if low is None and high is None:
            return x
        return call.b.clip(x, low=low, high=high)
    for node, form in zip(bounds, (call.b.maximum, call.b.minimum), strict=True):
        if node is not None:
            x = form(x, node)
    return x


@onnx_op("LeakyRelu")
def leaky_relu(call: Call) -> Node:
    """`leaky_relu`: times the slope below 0"""
    return call.b.leaky_relu(call[0], slope=float(call.attr("alpha", 0.01)))


@onnx_op("ThresholdedRelu")
def thresholded_relu(call: Call) -> Node:
    """x above alpha, else 0"""
    alpha = float(call.attr("alpha", 1.0))
    return call.b.multiply(call[0], call.b.greater(call[0], alpha), dtype=call[0].dtype)


@onnx_op("Elu", "Selu", "Celu")
def elu(call: Call) -> Node:
    """`elu`: three names of one form

    The operator is Elu, Selu or Celu.
    """
    if call.op == "Selu":
        alpha = call.attr("alpha", 1.6732631921768188)
        gamma = call.attr("gamma", 1.0507010221481323)
        return call.b.elu(call[0], alpha=alpha, scale=gamma)
    alpha = call.attr("alpha", 1.0)
    return call.b.elu(call[0], alpha=alpha, slope=1 / alpha if call.op == "Celu" else 1.0)


@onnx_op("HardSigmoid")
def hard_sigmoid(call: Call) -> Node:
    """alpha x + beta between 0 and 1"""
    return call.b.hard_sigmoid(call[0], alpha=call.attr("alpha", 0.2), beta=call.attr("beta", 0.5))


@onnx_op("Gelu")
def gelu(call: Call) -> Node:
    """`gelu`, exact or with tanh"""
    return call.b.gelu(call[0], approximate=call.attr("approximate", b"none").decode())


@onnx_op("Swish")
def swish(call: Call) -> Node:
    """x sigmoid(alpha x)"""
    return call.b.silu(call[0], alpha=float(call.attr("alpha", 1.0)))


@onnx_op("Cast", "CastLike")
def cast(call: Call) -> Node:
    """Another element type: to integers `truncate`, to bool x != 0"""
    if call.op == "CastLike":
        dtype = call[1].dtype
    else:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(call.attr("to"))).name
        if {dtype, call[0].dtype} & {"float64", "float16"}:
            raise call.refuse(f"from {call[0].dtype} to {dtype}: the device rounds as --df says")
    return convert_type(call, call[0], dtype)


def convert_type(call: Call, x: Node, dtype: str) -> Node:
    """Convert a value to another element type. Raise NotSupportedError for types that the device does not have, and for
    conversions that wrap or whose rounding is the device's own."""
    source_type = np.dtype(x.dtype)
    target_type = np.dtype(dtype)
    _require_conversion(call, source_type, target_type)
    if target_type.kind == "b":
        if source_type.kind != "b":
            return call.b.retype(call.b.boolean(x), dtype)
        return x
    if target_type.kind in "iu" and source_type.kind == "f":
        return call.b.retype(call.b.truncate(x), dtype)
    if source_type != target_type:
        return call.b.retype(x, dtype)
    return x


def _require_conversion(call: Call, source: np.dtype[Any], target: np.dtype[Any]) -> None:
    """Raise NotSupportedError for types that the device does not have, and for conversions that wrap or round."""
    if target.kind not in "fiub" or target.name.startswith("float8"):
        raise call.refuse(f"to {target.name}")
    # Narrowing to int32 is accepted, since the device's integers are exact to 24 bits only.
    is_narrower = target.itemsize < source.itemsize and source.kind in "iu" and target != np.int32
    if target.kind in "iu" and is_narrower:
        raise call.refuse(f"from {source} to {target}, which may wrap")
    if target.kind == "f" and target.itemsize < 4 and source != target:
        raise call.refuse(f"to {target}: its rounding is the device's own business (--df)")


@onnx_op("Where")
def where(call: Call) -> Node:
    """`where`, or `guarded_where` if the condition asks for NaN or infinities"""
    return special_values.select_values(call.b, call[0], call[1], call[2])


@onnx_op("IsNaN")
def is_nan(call: Call) -> Node:
    """`is_nan`; of a softmax the rows that are masked completely"""
    return special_values.is_nan(call.b, call[0])


@onnx_op("IsInf")
def is_infinite(call: Call) -> Node:
    """`is_infinite`, above or below 0 or both"""
    above, below = (bool(call.attr(f"detect_{sign}", 1)) for sign in ("positive", "negative"))
    return special_values.is_infinite(call.b, call[0], above=above, below=below)


@onnx_op("Shrink")
def shrink(call: Call) -> Node:
    """x + bias below -lambd, x - bias above lambd, else 0"""
    b = call.b
    x = call[0]
    lambd = float(call.attr("lambd", 0.5))
    bias = float(call.attr("bias", 0.0))
    low = b.multiply(b.less(x, -lambd), b.add(x, bias), dtype=x.dtype)
    return b.add(low, b.multiply(b.greater(x, lambd), b.subtract(x, bias), dtype=x.dtype))


@onnx_op("Dropout")
def dropout(call: Call) -> tuple[Node, Node]:
    """The operand itself and a mask that is all true, as in inference; refused in training unless the ratio is 0"""
    training = call.get(2)
    if training is not None and (training.op != "constant" or bool(training.value)):
        ratio = call.constant(1, "ratio")
        if training.op != "constant" or ratio is None or float(ratio) != 0:
            raise call.refuse("in training")
    return call[0], call.b.constant(np.broadcast_to(np.array(True), call[0].shape))
