"""Handlers of products of matrices, attention, convolutions, distances of all pairs, and products of three."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_torch.declared import aten
from buda_emu.compiler.importers.from_torch.operators.moves import expand, view
from buda_emu.compiler.importers.operators import NotSupportedError
from buda_emu.compiler.importers.special_values import find_unmasked_rows, zero_masked_rows


@aten("mm", "bmm", "matmul")
def matmul(b: Builder, x: Node, y: Node) -> Node:
    """`matmul`"""
    return b.matmul(x, y)


@aten("addmm", "baddbmm")
def addmm(b: Builder, c: Node, x: Node, y: Node, *, beta: float = 1, alpha: float = 1) -> Node:
    """beta c + alpha x y"""
    product = b.matmul(x, y)
    if alpha != 1:
        product = b.multiply(product, float(alpha))
    return b.add(product, c if beta == 1 else b.multiply(c, float(beta)))


@aten("_grouped_mm", "transformers.grouped_mm_fallback")
def grouped_mm(b: Builder, x: Node, weights: Node, offs: Node | None = None) -> Node:
    """`matmul` of all rows by every matrix; each row keeps the result of its group: rows up to `offs`

    `offs`: for each matrix the row of x behind its group. Raises NotSupportedError for groups of another kind.
    """
    if len(x.shape) != 2 or len(weights.shape) != 3 or offs is None:
        raise NotSupportedError("groups of another kind than rows that each take one of several matrices")
    rows = x.shape[0]
    groups = weights.shape[0]
    place = b.constant(np.arange(rows, dtype=np.float32))
    below = b.less(place, b.reshape(offs, shape=(groups, 1)), dtype="float32")  # [groups, rows]
    membership = b.subtract(below, b.take(below, dim=0, index=np.arange(-1, groups - 1)))
    products = b.matmul(b.reshape(x, shape=(1, *x.shape)), weights)
    return b.reduce_sum(b.multiply(products, b.reshape(membership, shape=(groups, rows, 1))), axes=(0,), keepdims=False)


@aten("linear", intact=True)
def linear(b: Builder, x: Node, weight: Node, bias: Node | None = None) -> Node:
    """`matmul` by the transposed weights, or one row of them, plus the bias"""
    if len(x.shape) > 1:
        matrix_shape = x.shape
    else:
        matrix_shape = (1, *x.shape)
    if len(weight.shape) > 1:
        rows = weight.shape
    else:
        rows = (1, -1)
    product = b.matmul(view(b, x, matrix_shape), b.transpose(view(b, weight, rows), perm=(1, 0)))
    product = view(b, product, (*x.shape[:-1], *weight.shape[:-1]))
    if bias is None:
        return product
    return b.add(product, bias)


@aten("scaled_dot_product_attention", intact=True)
def attention(
    b: Builder,
    q: Node,
    k: Node,
    v: Node,
    mask: Node | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    scale: float | None = None,
) -> Node:
    """`attention`: softmax(scale q k' + mask) v, also grouped queries and causal masks; 0 where everything is masked"""
    if dropout:
        raise NotSupportedError("dropout")
    masks: list[Node] = []
    unmasked_rows = None
    if mask is not None:
        bias = mask
        if mask.dtype == "bool":
            bias = b.where(mask, 0.0, -np.inf)
        masks.append(bias)
        unmasked_rows = find_unmasked_rows(b, bias, len(bias.shape) - 1)
    if scale is None:
        size = q.shape[-1] ** -0.5
    else:
        size = float(scale)
    heads = [operand if len(operand.shape) > 2 else view(b, operand, (1, *operand.shape)) for operand in (q, k, v)]
    result = b.attention(*heads, *masks, scale=size, causal=bool(causal))
    return zero_masked_rows(b, view(b, result, (*q.shape[:-1], v.shape[-1])), unmasked_rows)


@aten("flex_attention")
def flex_attention(
    b: Builder,
    q: Node,
    k: Node,
    v: Node,
    change_score: Callable[..., Node],
    blocks: Sequence[Any],
    scale: float,
    _options: Mapping[str, Any],
    score_buffers: Sequence[Any] = (),
    mask_buffers: Sequence[Any] = (),
) -> Any:
    """`attention` under the mask that the model's function of places gives; a changed score in steps, with `softmax`

    `change_score` builds the changed score from the score and its place (batch, head, query, key); the last of `blocks`
    builds the mask from the place. The others say which parts of such a mask are empty, and are not read: as in eager
    torch, blocks that were made without a mask's function change no result.
    """
    heads = q.shape[1]
    sizes = (*q.shape[:3], k.shape[2])  # of batch, head, query and key
    place = [
        b.constant(np.arange(size, dtype=np.int32).reshape([-1 if dim == axis else 1 for axis in range(4)]))
        for dim, size in enumerate(sizes)
    ]
    mask: Node | None = b.retype(blocks[-1](*place, *mask_buffers), "bool")
    if mask.op == "constant" and mask.value.all():
        mask = None
    wide_keys = b.repeat(k, dim=1, times=heads // k.shape[1])
    scores = b.multiply(b.matmul(q, b.transpose(wide_keys, perm=(0, 1, 3, 2))), float(scale))
    changed = change_score(scores, *place, *score_buffers)
    if changed is scores:
        return [attention(b, q, k, v, mask, scale=scale), None, None]
    if changed.shape != scores.shape:  # a function that leaves the score out depends on fewer places
        changed = expand(b, changed, scores.shape)
    unmasked_rows = None
    if mask is not None:
        bias = b.where(mask, 0.0, -np.inf)
        unmasked_rows = find_unmasked_rows(b, bias, len(bias.shape) - 1)
        changed = b.add(changed, bias)
    result = b.matmul(b.softmax(changed, dim=3), b.repeat(v, dim=1, times=heads // v.shape[1]))
    return [zero_masked_rows(b, result, unmasked_rows), None, None]


@aten("convolution")
def convolution(
    b: Builder,
    x: Node,
    w: Node,
    bias: Node | None,
    strides: Any,
    pads: Any,
    dilations: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Node:
    """`convolution` or `conv_transpose`, of any rank"""
    rank = len(w.shape) - 2
    options = [
        tuple(option * (rank if len(option) == 1 else 1)) for option in (strides, pads, dilations, output_padding)
    ]
    pad_pairs = tuple((pad, pad) for pad in options[1])
    weights = [w, *([bias] if bias is not None else [])]
    if transposed:
        return b.conv_transpose(
            x,
            *weights,
            strides=options[0],
            pads=pad_pairs,
            dilations=options[2],
            groups=groups,
            output_padding=options[3],
        )
    return b.convolution(x, *weights, strides=options[0], pads=pad_pairs, dilations=options[2], groups=groups)


@aten("_cdist_forward")
def cdist(b: Builder, x: Node, y: Node, p: float) -> Node:
    """`subtract` of all pairs, and a norm of the differences

    Returns the distances of order `p` between each row of x and each row of y."""
    left = b.reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1]))
    right = b.reshape(y, shape=(*y.shape[:-2], 1, *y.shape[-2:]))
    return _norm_of_last_dim(b, b.subtract(left, right), p)


@aten("_pdist_forward")
def pdist(b: Builder, x: Node, p: float = 2.0) -> Node:
    """`take` of the rows of all pairs, `subtract`, and a norm

    Returns the distances of order `p` between all rows of x, each pair once."""
    first, second = np.triu_indices(x.shape[0], 1)
    return _norm_of_last_dim(b, b.subtract(b.take(x, dim=0, index=first), b.take(x, dim=0, index=second)), p)


def _norm_of_last_dim(b: Builder, x: Node, p: float) -> Node:
    """Return the norm of order `p` of the last dimension, without that dimension."""
    return b.reduce_lp(x, p=float(p), axes=(len(x.shape) - 1,), keepdims=False)


@aten("_trilinear")
def trilinear(
    b: Builder,
    x: Node,
    y: Node,
    z: Node,
    of_x: Sequence[int],
    of_y: Sequence[int],
    of_z: Sequence[int],
    summed_dims: Any,
) -> Node:
    """`multiply` of three with inserted dimensions, and a sum

    `of_x`, `of_y` and `of_z` are the dimensions of the product that each factor lacks, `summed_dims` those to sum over.
    """
    factors = [_insert_dims(b, node, tuple(dims)) for node, dims in ((x, of_x), (y, of_y), (z, of_z))]
    rank = len(factors[0].shape)
    # What the third factor does not have is summed before it comes.
    early = tuple(dim for dim in summed_dims if factors[2].shape[dim] == 1)
    first = b.multiply(factors[0], factors[1])
    if early:
        first = b.reduce_sum(first, axes=early)
    late = tuple(dim for dim in summed_dims if dim not in early)
    total = b.multiply(first, factors[2])
    if late:
        total = b.reduce_sum(total, axes=late)
    return b.reshape(
        total, shape=[size for dim, size in enumerate(total.shape) if dim not in summed_dims or dim >= rank]
    )


def _insert_dims(b: Builder, x: Node, dims: tuple[int, ...]) -> Node:
    """Insert dimensions of size 1 at the places `dims` of the new shape."""
    shape = list(x.shape)
    for dim in sorted(dims):
        shape.insert(dim, 1)
    return b.reshape(x, shape=tuple(shape))
