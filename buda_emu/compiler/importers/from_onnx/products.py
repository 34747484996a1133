"""Matmuls, convolutions, pooling."""

from collections.abc import Sequence
from math import prod

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_onnx.call import Call, onnx_op

Pads = tuple[tuple[int, int], ...]


@onnx_op("MatMul")
def matmul(call: Call) -> Node:
    """`matmul`; vectors as matrices of one row or column"""
    return product(call, call[0], call[1])


def product(call: Call, a: Node, b: Node) -> Node:
    """numpy's matmul."""
    x = call.b.reshape(a, shape=(1, *a.shape)) if len(a.shape) == 1 else a
    y = call.b.reshape(b, shape=(*b.shape, 1)) if len(b.shape) == 1 else b
    found = call.b.matmul(x, y)
    shape = found.shape
    if len(b.shape) == 1:
        shape = shape[:-1]
    if len(a.shape) == 1:
        shape = (*shape[:-2], *shape[-1:]) if len(b.shape) > 1 else shape[:-1]
    return found if shape == found.shape else call.b.reshape(found, shape=shape)


@onnx_op("Gemm")
def gemm(call: Call) -> Node:
    """alpha A' B' + beta C"""
    b = call.b
    x, y = (
        b.transpose(call[place], perm=(1, 0)) if call.attr(name, 0) else call[place]
        for place, name in ((0, "transA"), (1, "transB"))
    )
    found = b.matmul(x, y)
    alpha, beta, c = call.attr("alpha", 1.0), call.attr("beta", 1.0), call.get(2)
    found = found if alpha == 1 else b.multiply(found, float(alpha))
    return found if c is None else b.add(found, c if beta == 1 else b.multiply(c, float(beta)))


def window(call: Call, kernel: Sequence[int], space: Sequence[int]) -> tuple[tuple[int, ...], Pads, tuple[int, ...]]:
    """Strides, pads and dilations, automatic pads worked out."""
    rank = len(kernel)
    strides = tuple(call.attr("strides") or (1,) * rank)
    dilations = tuple(call.attr("dilations") or (1,) * rank)
    given = call.attr("pads") or [0] * (2 * rank)
    auto = call.attr("auto_pad", b"NOTSET").decode()
    if auto in ("NOTSET", "VALID"):
        pads = [(given[k], given[k + rank]) if auto == "NOTSET" else (0, 0) for k in range(rank)]
        return strides, tuple(pads), dilations
    pads = []
    for k in range(rank):
        reach = (kernel[k] - 1) * dilations[k] + 1
        total = max((-(-space[k] // strides[k]) - 1) * strides[k] + reach - space[k], 0)
        small = total // 2
        pads.append((small, total - small) if auto == "SAME_UPPER" else (total - small, small))
    return strides, tuple(pads), dilations


@onnx_op("Conv")
def conv(call: Call) -> Node:
    """`convolution`, of any rank"""
    x, w = call[0], call[1]
    strides, pads, dilations = window(call, w.shape[2:], x.shape[2:])
    bias = [node for node in (call.get(2),) if node is not None]
    return call.b.convolution(
        x, w, *bias, strides=strides, pads=pads, dilations=dilations, groups=call.attr("group", 1)
    )


@onnx_op("ConvTranspose")
def conv_transpose(call: Call) -> Node:
    """`conv_transpose`; the output shape, if given, determines the pads"""
    x, w = call[0], call[1]
    rank = len(w.shape) - 2
    strides, pads, dilations = window(call, w.shape[2:], x.shape[2:])
    extra = tuple(call.attr("output_padding") or (0,) * rank)
    auto = call.attr("auto_pad", b"NOTSET").decode()
    shape = call.attr("output_shape")
    by_stride = shape is None and auto.startswith("SAME")
    if by_stride:
        shape = [size * stride for size, stride in zip(x.shape[2:], strides, strict=True)]
    if shape is not None:
        found = []
        for k in range(rank):
            reach = (w.shape[2 + k] - 1) * dilations[k] + 1
            total = strides[k] * (x.shape[2 + k] - 1) + extra[k] + reach - shape[-rank + k]
            if total < 0 and by_stride:
                raise call.refuse(f"auto_pad={auto}, of a window smaller than the stride: give output_shape or pads")
            small = total // 2
            if total < 0:  # what is missing lies behind, as in onnxruntime
                found.append((0, total))
            else:
                found.append((small, total - small) if auto == "SAME_UPPER" else (total - small, small))
        pads = tuple(found)
    bias = [node for node in (call.get(2),) if node is not None]
    return call.b.conv_transpose(
        x, w, *bias, strides=strides, pads=pads, dilations=dilations, groups=call.attr("group", 1), output_padding=extra
    )


def pooled(
    call: Call, x: Node, kernel: Sequence[int]
) -> tuple[tuple[int, ...], Pads, tuple[int, ...], tuple[int, ...]]:
    """Window and sizes of the result; with ceil_mode a last window that starts inside counts."""
    strides, pads, dilations = window(call, kernel, x.shape[2:])
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
    strides, pads, dilations, out = pooled(call, call[0], kernel)
    return call.b.max_pool(
        call[0], kernel=kernel, strides=strides, pads=pads, dilations=dilations, out=out, dtype=call[0].dtype
    )


@onnx_op("AveragePool", "LpPool")
def average_pool(call: Call) -> Node:
    """`avg_pool`; elements outside count if the attribute says so"""
    kernel = tuple(call.attr("kernel_shape"))
    strides, pads, dilations, out = pooled(call, call[0], kernel)
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
    """`reduce_mean`, `reduce_largest` or a norm over all space"""
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
        right = "".join(sorted(letter for letter in set("".join(terms)) if "".join(terms).count(letter) == 1))
    if any(len(set(term)) != len(term) for term in terms) or len(terms) > 2:
        raise call.refuse(f"equation {text}")
    b = call.b
    if len(terms) == 1:
        gone = [place for place, letter in enumerate(terms[0]) if letter not in right]
        x = b.reduce_sum(call[0], axes=gone, keepdims=False) if gone else call[0]
        kept = [letter for letter in terms[0] if letter in right]
        return b.transpose(x, perm=tuple(kept.index(letter) for letter in right)) if kept else x
    nodes, words = [call[0], call[1]], list(terms)
    for number in (0, 1):
        other = words[1 - number]
        gone = [place for place, letter in enumerate(words[number]) if letter not in right and letter not in other]
        if gone:
            nodes[number] = b.reduce_sum(nodes[number], axes=gone, keepdims=False)
            words[number] = "".join(letter for letter in words[number] if letter in right or letter in other)
    batch = [letter for letter in words[0] if letter in words[1] and letter in right]
    inner = [letter for letter in words[0] if letter in words[1] and letter not in right]
    rows = [letter for letter in words[0] if letter not in words[1]]
    columns = [letter for letter in words[1] if letter not in words[0]]
    size = {
        letter: n for word, node in zip(words, nodes, strict=True) for letter, n in zip(word, node.shape, strict=True)
    }
    x, y = (
        b.reshape(
            b.transpose(node, perm=tuple(word.index(letter) for group in groups for letter in group)),
            shape=tuple(prod(size[letter] for letter in group) for group in groups),
        )
        for node, word, groups in zip(nodes, words, ((batch, rows, inner), (batch, inner, columns)), strict=True)
    )
    order = [*batch, *rows, *columns]
    found = b.reshape(b.matmul(x, y), shape=tuple(size[letter] for letter in order))
    return b.transpose(found, perm=tuple(order.index(letter) for letter in right)) if order else found


@onnx_op("Det", "GridSample", "RoiAlign", "DeformConv", "MaxUnpool", "MaxRoiPool", "NonMaxSuppression", place="host")
def refused(call: Call) -> Node:
    """Depends on values in a way that no netlist op has."""
    raise call.refuse("")
