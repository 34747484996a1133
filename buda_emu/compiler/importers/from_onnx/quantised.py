"""Quantised models: QuantizeLinear and DequantizeLinear around operators, and operators on integers."""

from math import prod

import numpy as np
import onnx

from buda_emu.compiler.graph.graph import Node, dim_of
from buda_emu.compiler.importers.from_onnx.call import Call, onnx_op
from buda_emu.compiler.importers.from_onnx.products import product, window

_WHOLE = ("int8", "uint8")
"""Of 8 bits, as the device has them."""
_EXACT = 1 << 24
"""Integers that float32 holds (OPS 4.4)."""


@onnx_op("QuantizeLinear")
def quantize(call: Call) -> Node:
    """The result has the zero point's type, else that of the attribute, else uint8."""
    zero = call.get(2)
    number = call.attr("output_dtype", 0)
    if zero is not None:
        kind = zero.dtype
    else:
        kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number)).name if number else "uint8"
    if kind not in _WHOLE:
        raise call.refuse(f"to {kind}, which the device does not have")
    if call[1].op not in ("constant", "input"):
        raise call.refuse("by a scale that is computed: quotients of the device may round to the other side")
    scale, point = _spread(call, call[1]), call.b.constant(np.float32(0)) if zero is None else _spread(call, zero)
    return call.b.quantize(call[0], scale, point, type=kind, dtype=kind)


@onnx_op("DequantizeLinear")
def dequantize(call: Call) -> Node:
    """Of integers of 8 or 32 bits."""
    call.only("output_dtype", onnx.TensorProto.UNDEFINED, onnx.TensorProto.FLOAT)
    if call[0].dtype not in (*_WHOLE, "int32"):
        raise call.refuse(f"of {call[0].dtype}, which the device does not have")
    zero = call.get(2)
    point = call.b.constant(np.float32(0)) if zero is None else _spread(call, zero)
    return call.b.dequantize(call[0], _spread(call, call[1]), point, dtype="float32")


def _spread(call: Call, scale: Node) -> Node:
    """Along the axis, or in blocks of it, as the operand has it."""
    shape, size = call[0].shape, call.attr("block_size", 0)
    axis = call.attr("axis", 1)
    if prod(scale.shape) == 1:
        return call.b.reshape(scale, shape=())
    axis = dim_of(axis, len(shape))
    if size:
        wide = call.b.repeat(scale, dim=axis, times=size)
        return call.b.slice(wide, dim=axis, start=0, count=shape[axis])
    return call.b.reshape(scale, shape=[n if place == axis else 1 for place, n in enumerate(shape)])


def _centred(call: Call, x: Node, zero: Node | None, axis: int | None) -> Node:
    """x less its zero point, which may be one for each place along an axis."""
    if zero is None or (zero.op == "constant" and not zero.value.any()):
        return x
    if prod(zero.shape) == 1:
        zero = call.b.reshape(zero, shape=())
    elif axis is not None and len(zero.shape) == 1:
        dim = dim_of(axis, len(x.shape))
        zero = call.b.reshape(zero, shape=[n if place == dim else 1 for place, n in enumerate(x.shape)])
    return call.b.subtract(x, zero, dtype="float32")


def _small_enough(call: Call, terms: int) -> None:
    if terms * 255 * 255 > _EXACT:
        raise call.refuse(f"sums of {terms} products, which float32 does not hold as integers")


@onnx_op("MatMulInteger")
def matmul_integer(call: Call) -> Node:
    """The product after subtracting the zero points."""
    a, b = _centred(call, call[0], call.get(2), -2), _centred(call, call[1], call.get(3), -1)
    _small_enough(call, a.shape[-1])
    return call.b.retyped(product(call, a, b), "int32")


@onnx_op("ConvInteger")
def conv_integer(call: Call) -> Node:
    """The same with a convolution."""
    x, w = _centred(call, call[0], call.get(2), None), _centred(call, call[1], call.get(3), 0)
    _small_enough(call, prod(w.shape[1:]))
    return call.b.retyped(_convolved(call, x, w), "int32")


def _convolved(call: Call, x: Node, w: Node) -> Node:
    strides, pads, dilations = window(call, w.shape[2:], x.shape[2:])
    return call.b.convolution(
        x, w, strides=strides, pads=pads, dilations=dilations, groups=call.attr("group", 1), dtype="float32"
    )


@onnx_op("QLinearMatMul")
def qlinear_matmul(call: Call) -> Node:
    """quantize(scale (a - zero) (b - zero))"""
    b = call.b
    left, right = _centred(call, call[0], call.get(2), -2), _centred(call, call[3], call.get(5), -1)
    sums = product(call, left, right)
    return _requantized(call, sums, b.multiply(_row(call, call[1]), call[4]), call[6], call[7])


def _row(call: Call, scale: Node) -> Node:
    return call.b.reshape(scale, shape=(*scale.shape, 1)) if len(scale.shape) == 1 and scale.shape != (1,) else scale


@onnx_op("QLinearConv")
def qlinear_conv(call: Call) -> Node:
    """The same with a convolution; the bias is in units of the product of both scales."""
    b = call.b
    x, w = _centred(call, call[0], call.get(2), None), _centred(call, call[3], call.get(5), 0)
    sums, bias = _convolved(call, x, w), call.get(8)
    form = (-1, *[1] * (len(w.shape) - 2))
    if bias is not None:
        sums = b.add(sums, b.reshape(bias, shape=(bias.shape[0], *form[1:])), dtype="float32")
    own = call[4]
    scale = b.reshape(own, shape=() if prod(own.shape) == 1 else (own.shape[0], *form[1:]))
    return _requantized(call, sums, b.multiply(b.reshape(call[1], shape=()), scale), call[6], call[7])


def _requantized(call: Call, sums: Node, scale: Node, out_scale: Node, zero: Node) -> Node:
    b = call.b
    if zero.dtype not in _WHOLE:
        raise call.refuse(f"to {zero.dtype}, which the device does not have")
    unit = b.divide(out_scale, scale)  # sums / (out / (a b))
    point = b.reshape(zero, shape=()) if prod(zero.shape) == 1 else zero
    if prod(out_scale.shape) == 1:
        unit = b.divide(b.reshape(out_scale, shape=()), scale)
    return b.quantize(sums, unit, point, type=zero.dtype, dtype=zero.dtype)
