"""Handlers of ONNX operators that are products, windows or quantised products."""

from collections.abc import Sequence
from itertools import starmap
from math import prod
from operator import sub

import numpy as np
import onnx

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node, dim_of
from buda_emu.compiler.importers.from_onnx.call import Call, onnx_op

Pads = tuple[tuple[int, int], ...]


@onnx_op("MatMul")
def matmul(call: Call) -> Node:
    """`matmul`; vectors as matrices of one row or column"""
    return multiply_matrices(call, call[0], call[1])


def multiply_matrices(call: Call, a: Node, b: Node) -> Node:
    """Multiply two values as numpy's matmul does, including vectors."""
    if len(a.shape) == 1:
        x = call.b.reshape(a, shape=(1, *a.shape))
    else:
        x = a
    if len(b.shape) == 1:
        y = call.b.reshape(b, shape=(*b.shape, 1))
    else:
        y = b
    result = call.b.matmul(x, y)
    shape = result.shape
    if len(b.shape) == 1:
        shape = shape[:-1]
    if len(a.shape) == 1:
        if len(b.shape) > 1:
            shape = (*shape[:-2], *shape[-1:])
        else:
            shape = shape[:-1]
    if shape == result.shape:
        return result
    return call.b.reshape(result, shape=shape)


@onnx_op("Gemm")
def gemm(call: Call) -> Node:
    """alpha A' B' + beta C

    A' and B' are the first two operands, transposed if the attributes say so; C may be missing.
    """
    b = call.b
    x, y = (
        b.transpose(call[place], perm=(1, 0)) if call.attr(name, 0) else call[place]
        for place, name in ((0, "transA"), (1, "transB"))
    )
    result = b.matmul(x, y)
    alpha = call.attr("alpha", 1.0)
    beta = call.attr("beta", 1.0)
    c = call.get(2)
    if alpha != 1:
        result = b.multiply(result, float(alpha))
    if c is None:
        return result
    return b.add(result, c if beta == 1 else b.multiply(c, float(beta)))


def window_options(
    call: Call, kernel: Sequence[int], space: Sequence[int]
) -> tuple[tuple[int, ...], Pads, tuple[int, ...]]:
    """Return strides, pads and dilations of a window of sizes `kernel` that moves over dimensions of sizes `space`,
    with automatic pads computed."""
    rank = len(kernel)
    strides = tuple(call.attr("strides") or (1,) * rank)
    dilations = tuple(call.attr("dilations") or (1,) * rank)
    explicit_pads = call.attr("pads") or [0] * (2 * rank)
    auto = call.attr("auto_pad", b"NOTSET").decode()
    if auto in ("NOTSET", "VALID"):
        pads = [(explicit_pads[k], explicit_pads[k + rank]) if auto == "NOTSET" else (0, 0) for k in range(rank)]
        return strides, tuple(pads), dilations
    pads = []
    for k in range(rank):
        reach = (kernel[k] - 1) * dilations[k] + 1
        total = max((-(-space[k] // strides[k]) - 1) * strides[k] + reach - space[k], 0)
        half = total // 2
        pads.append((half, total - half) if auto == "SAME_UPPER" else (total - half, half))
    return strides, tuple(pads), dilations


@onnx_op("Conv")
def conv(call: Call) -> Node:
    """`convolution`, of any rank

    Emits `convolution`, with a bias if there is one.
    """
    x = call[0]
    w = call[1]
    strides, pads, dilations = window_options(call, w.shape[2:], x.shape[2:])
    bias = [node for node in (call.get(2),) if node is not None]
    return call.b.convolution(
        x, w, *bias, strides=strides, pads=pads, dilations=dilations, groups=call.attr("group", 1)
    )


def _divide_pad(total: int, auto: str) -> tuple[int, int]:
    """Return the pads in front and behind whose sum is `total`; of an odd sum `auto_pad` names the side of the larger
    one."""
    if total < 0:  # what is missing lies behind, as in onnxruntime
        return 0, total
    half = total // 2
    if auto == "SAME_UPPER":
        return half, total - half
    return total - half, half


def _size_without_pads(stride: int, size: int, beyond: int, window: int, dilation: int) -> int:
    """Return the size along one dimension that a transposed convolution of `size` elements gives before pads are cut
    off; `beyond` is its output padding."""
    return stride * (size - 1) + beyond + (window - 1) * dilation + 1


@onnx_op("ConvTranspose")
def conv_transpose(call: Call) -> Node:
    """`conv_transpose`; the output shape, if given, determines the pads"""
    x = call[0]
    w = call[1]
    rank = len(w.shape) - 2
    strides, pads, dilations = window_options(call, w.shape[2:], x.shape[2:])
    extra = tuple(call.attr("output_padding") or (0,) * rank)
    auto = call.attr("auto_pad", b"NOTSET").decode()
    shape = call.attr("output_shape")
    by_stride = shape is None and auto.startswith("SAME")
    if by_stride:
        shape = [size * stride for size, stride in zip(x.shape[2:], strides, strict=True)]
    if shape is not None:
        windows = zip(strides, x.shape[2:], extra, w.shape[2:], dilations, strict=True)
        totals = list(map(sub, starmap(_size_without_pads, windows), shape[-rank:]))
        if by_stride and min(totals, default=0) < 0:
            raise call.refuse(f"auto_pad={auto}, of a window smaller than the stride: give output_shape or pads")
        pads = tuple(_divide_pad(total, auto) for total in totals)
    bias = [node for node in (call.get(2),) if node is not None]
    return call.b.conv_transpose(
        x, w, *bias, strides=strides, pads=pads, dilations=dilations, groups=call.attr("group", 1), output_padding=extra
    )


def pool_window(
    call: Call, x: Node, kernel: Sequence[int]
) -> tuple[tuple[int, ...], Pads, tuple[int, ...], tuple[int, ...]]:
    """Return strides, pads and dilations of a pool, and the sizes of its result. With ceil_mode a last window counts if
    it starts inside."""
    strides, pads, dilations = window_options(call, kernel, x.shape[2:])
    out: list[int] = []
    for k, size in enumerate(x.shape[2:]):
        room = size + sum(pads[k]) - ((kernel[k] - 1) * dilations[k] + 1)
        count = (-(-room // strides[k]) if call.attr("ceil_mode", 0) else room // strides[k]) + 1
        if call.attr("ceil_mode", 0) and (count - 1) * strides[k] >= size + pads[k][0]:
            count -= 1
        out.append(count)
    return strides, pads, dilations, tuple(out)


@onnx_op("MaxPool")
def max_pool(call: Call) -> Node:
    """`max_pool`; indices of the largest are not available"""
    if len(call.shapes) > 1:
        raise call.refuse("indices")
    kernel = tuple(call.attr("kernel_shape"))
    strides, pads, dilations, out = pool_window(call, call[0], kernel)
    return call.b.max_pool(
        call[0], kernel=kernel, strides=strides, pads=pads, dilations=dilations, out=out, dtype=call[0].dtype
    )


@onnx_op("AveragePool", "LpPool")
def average_pool(call: Call) -> Node:
    """`avg_pool`; elements outside count if the attribute says so"""
    kernel = tuple(call.attr("kernel_shape"))
    strides, pads, dilations, out = pool_window(call, call[0], kernel)
    if call.op == "LpPool":
        return call.b.lp_pool(
            call[0], kernel=kernel, p=call.attr("p", 2), strides=strides, pads=pads, dilations=dilations, out=out
        )
    return call.b.avg_pool(
        call[0],
        kernel=kernel,
        strides=strides,
        pads=pads,
        dilations=dilations,
        out=out,
        count_pads=bool(call.attr("count_include_pad", 0)),
    )


@onnx_op("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(call: Call) -> Node:
    """`reduce_mean`, `reduce_largest` or a norm over all space

    The operator is GlobalAveragePool, GlobalMaxPool or GlobalLpPool. Raises NotSupportedError for a norm other than L2.
    """
    x = call.image(0)
    axes = tuple(range(2, len(x.shape)))
    if call.op == "GlobalLpPool":
        if call.attr("p", 2) != 2:
            raise call.refuse(f"p {call.attr('p')}")
        return call.b.reduce_l2(x, axes=axes)
    return (call.b.reduce_mean if call.op == "GlobalAveragePool" else call.b.reduce_largest)(x, axes=axes)


@onnx_op("Einsum")
def einsum(call: Call) -> Node:
    """Sums of products by letters, one after the other, each as a product of matrices."""
    text = call.attr("equation").decode().replace(" ", "")
    if "..." in text:
        raise call.refuse("an ellipsis")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if not arrow:
        letters = "".join(terms)
        right = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    if any(len(set(term)) != len(term) for term in terms) or len(terms) > 2:
        raise call.refuse(f"equation {text}")
    if len(terms) == 1:
        x, term = _sum_letters(call, call[0], terms[0], right)
        return _order_letters(call, x, term, right)
    x, x_term = _sum_letters(call, call[0], terms[0], right + terms[1])
    y, y_term = _sum_letters(call, call[1], terms[1], right + x_term)
    return _multiply_terms(call, (x, x_term), (y, y_term), right)


def _sum_letters(call: Call, x: Node, term: str, needed: str) -> tuple[Node, str]:
    """Sum a factor of an einsum, whose letters are `term`, over the letters that are not `needed`, and return it with
    the remaining letters."""
    summed = [place for place, letter in enumerate(term) if letter not in needed]
    if summed:
        x = call.b.reduce_sum(x, axes=summed, keepdims=False)
    return x, "".join(letter for letter in term if letter in needed)


def _order_letters(call: Call, x: Node, term: str, order: str) -> Node:
    """Transpose a value with the letters of `term` to another order of them."""
    if not term:
        return x
    return call.b.transpose(x, perm=tuple(term.index(letter) for letter in order))


def _group_letters(b: Builder, node: Node, term: str, groups: Sequence[str]) -> Node:
    """Bring an operand of einsum, whose letters are `term`, into the order of `groups` of letters, and join the
    dimensions of each group."""
    size = dict(zip(term, node.shape, strict=True))
    ordered = b.transpose(node, perm=tuple(term.index(letter) for letter in "".join(groups)))
    return b.reshape(ordered, shape=tuple(prod(size[letter] for letter in group) for group in groups))


def _multiply_terms(call: Call, left: tuple[Node, str], right: tuple[Node, str], result: str) -> Node:
    """Multiply two factors of an einsum, each with its letters, as matrices, and return the product with its dimensions
    in the order of the letters `result`. Common letters that `result` has are a batch, other common ones are summed."""
    b = call.b
    x, x_term = left
    y, y_term = right
    size = {**dict(zip(x_term, x.shape, strict=True)), **dict(zip(y_term, y.shape, strict=True))}
    common = [letter for letter in x_term if letter in y_term]
    batch = "".join(letter for letter in common if letter in result)
    inner = "".join(letter for letter in common if letter not in result)
    rows = "".join(letter for letter in x_term if letter not in y_term)
    columns = "".join(letter for letter in y_term if letter not in x_term)
    product = b.matmul(
        _group_letters(b, x, x_term, (batch, rows, inner)), _group_letters(b, y, y_term, (batch, inner, columns))
    )
    order = batch + rows + columns
    return _order_letters(call, b.reshape(product, shape=tuple(size[letter] for letter in order)), order, result)


@onnx_op("Det", "GridSample", "RoiAlign", "DeformConv", "MaxUnpool", "MaxRoiPool", "NonMaxSuppression", place="host")
def refuse_on_device(call: Call) -> Node:
    """Depends on values in a way that no netlist op has.

    Always raises NotSupportedError: the reader then tries the operator's definition or the host.
    """
    raise call.refuse("")


_WHOLE = ("int8", "uint8")
"""Integer types of 8 bits, the only ones that the device quantises to."""
_EXACT = 1 << 24
"""Limit up to which float32 holds every integer (OPS 4.4)."""


@onnx_op("QuantizeLinear")
def quantize(call: Call) -> Node:
    """The result has the zero point's type, else that of the attribute, else uint8.

    Emits `quantize` by a scale for all, for each place of an axis or for each block. Raises NotSupportedError for a
    type that the device does not have, and for a scale that is computed.
    """
    zero = call.get(2)
    number = call.attr("output_dtype", 0)
    if zero is not None:
        kind = zero.dtype
    else:
        if number:
            kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number)).name
        else:
            kind = "uint8"
    if kind not in _WHOLE:
        raise call.refuse(f"to {kind}, which the device does not have")
    if call[1].op not in ("constant", "input"):
        raise call.refuse("by a scale that is computed: quotients of the device may round to the other side")
    scale = _broadcast_scale(call, call[1])
    if zero is None:
        point = call.b.constant(np.float32(0))
    else:
        point = _broadcast_scale(call, zero)
    return call.b.quantize(call[0], scale, point, type=kind, dtype=kind)


@onnx_op("DequantizeLinear")
def dequantize(call: Call) -> Node:
    """`dequantize` of integers of 8 or 32 bits"""
    call.require_attr("output_dtype", onnx.TensorProto.UNDEFINED, onnx.TensorProto.FLOAT)
    if call[0].dtype not in (*_WHOLE, "int32"):
        raise call.refuse(f"of {call[0].dtype}, which the device does not have")
    zero = call.get(2)
    if zero is None:
        point = call.b.constant(np.float32(0))
    else:
        point = _broadcast_scale(call, zero)
    return call.b.dequantize(call[0], _broadcast_scale(call, call[1]), point, dtype="float32")


def _broadcast_scale(call: Call, scale: Node) -> Node:
    """Reshape a scale to broadcast with the first operand: one number, one for each place of an axis, or one for each
    block of it."""
    shape = call[0].shape
    size = call.attr("block_size", 0)
    axis = call.attr("axis", 1)
    if prod(scale.shape) == 1:
        return call.b.reshape(scale, shape=())
    axis = dim_of(axis, len(shape))
    if size:
        wide = call.b.repeat(scale, dim=axis, times=size)
        return call.b.slice(wide, dim=axis, start=0, count=shape[axis])
    return call.b.reshape(scale, shape=[n if place == axis else 1 for place, n in enumerate(shape)])


def _subtract_zero_point(call: Call, x: Node, zero: Node | None, axis: int | None) -> Node:
    """Subtract the zero point of x, which may be one number or one for each place of an axis."""
    if zero is None or (zero.op == "constant" and not zero.value.any()):
        return x
    if prod(zero.shape) == 1:
        zero = call.b.reshape(zero, shape=())
    elif axis is not None and len(zero.shape) == 1:
        dim = dim_of(axis, len(x.shape))
        zero = call.b.reshape(zero, shape=[n if place == dim else 1 for place, n in enumerate(x.shape)])
    return call.b.subtract(x, zero, dtype="float32")


def _require_exact_sum(call: Call, terms: int) -> None:
    """Raise NotSupportedError if sums of `terms` products of integers are so large that float32 may not hold them
    exactly."""
    if terms * 255 * 255 > _EXACT:
        raise call.refuse(f"sums of {terms} products, which float32 does not hold as integers")


@onnx_op("MatMulInteger")
def matmul_integer(call: Call) -> Node:
    """The product after subtracting the zero points.

    Raises NotSupportedError for sums that float32 does not hold exactly.
    """
    a = _subtract_zero_point(call, call[0], call.get(2), -2)
    b = _subtract_zero_point(call, call[1], call.get(3), -1)
    _require_exact_sum(call, a.shape[-1])
    return call.b.retype(multiply_matrices(call, a, b), "int32")


@onnx_op("ConvInteger")
def conv_integer(call: Call) -> Node:
    """`convolution` after subtracting the zero points"""
    x = _subtract_zero_point(call, call[0], call.get(2), None)
    w = _subtract_zero_point(call, call[1], call.get(3), 0)
    _require_exact_sum(call, prod(w.shape[1:]))
    return call.b.retype(_convolve(call, x, w), "int32")


def _convolve(call: Call, x: Node, w: Node) -> Node:
    """Add the convolution of x by w in float32, with the strides, pads, dilations and groups of the operator."""
    strides, pads, dilations = window_options(call, w.shape[2:], x.shape[2:])
    return call.b.convolution(
        x, w, strides=strides, pads=pads, dilations=dilations, groups=call.attr("group", 1), dtype="float32"
    )


@onnx_op("QLinearMatMul")
def qlinear_matmul(call: Call) -> Node:
    """quantize(scale (a - zero) (b - zero))"""
    b = call.b
    left = _subtract_zero_point(call, call[0], call.get(2), -2)
    right = _subtract_zero_point(call, call[3], call.get(5), -1)
    sums = multiply_matrices(call, left, right)
    return _requantize(call, sums, b.multiply(_scale_per_row(call, call[1]), call[4]), call[6], call[7])


def _scale_per_row(call: Call, scale: Node) -> Node:
    """Reshape a scale for each row to broadcast over columns."""
    if len(scale.shape) == 1 and scale.shape != (1,):
        return call.b.reshape(scale, shape=(*scale.shape, 1))
    return scale


@onnx_op("QLinearConv")
def qlinear_conv(call: Call) -> Node:
    """quantize(scale conv(a - zero, b - zero)); the bias is in units of the product of both scales"""
    b = call.b
    x = _subtract_zero_point(call, call[0], call.get(2), None)
    w = _subtract_zero_point(call, call[3], call.get(5), 0)
    sums = _convolve(call, x, w)
    bias = call.get(8)
    channel_shape = (-1, *[1] * (len(w.shape) - 2))
    if bias is not None:
        sums = b.add(sums, b.reshape(bias, shape=(bias.shape[0], *channel_shape[1:])), dtype="float32")
    weight_scale = call[4]
    scale = b.reshape(
        weight_scale, shape=() if prod(weight_scale.shape) == 1 else (weight_scale.shape[0], *channel_shape[1:])
    )
    return _requantize(call, sums, b.multiply(b.reshape(call[1], shape=()), scale), call[6], call[7])


def _requantize(call: Call, sums: Node, scale: Node, out_scale: Node, zero: Node) -> Node:
    """Convert the exact sums of a quantised product to its element type: divide by `out_scale / scale`, add the zero
    point `zero`, round and clamp. `scale` is the product of the scales of both operands. Raises NotSupportedError for a
    type that the device does not have."""
    b = call.b
    if zero.dtype not in _WHOLE:
        raise call.refuse(f"to {zero.dtype}, which the device does not have")
    unit = b.divide(out_scale, scale)  # sums / (out / (a b))
    if prod(zero.shape) == 1:
        point = b.reshape(zero, shape=())
    else:
        point = zero
    if prod(out_scale.shape) == 1:
        unit = b.divide(b.reshape(out_scale, shape=()), scale)
    return b.quantize(sums, unit, point, type=zero.dtype, dtype=zero.dtype)
