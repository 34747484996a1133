"""Softmax and norms (FRONTEND 2)."""

from collections.abc import Sequence

import numpy as np

from buda_emu.compiler.graph.builder import Builder, check_constant_size
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.graph.registry import composite
from buda_emu.spec.precision import STAND_IN

_op = composite("normalise")


@_op
def softmax(b: Builder, x: Node, *, dim: int = -1) -> Node:
    """e / sum e with e = exp(x - max x)"""
    e = b.exp(b.subtract(x, b.reduce_largest(x, axes=[dim])))
    return b.multiply(e, b.reciprocal(b.reduce_sum(e, axes=[dim])))


@_op
def log_softmax(b: Builder, x: Node, *, dim: int = -1) -> Node:
    """x - max - log(sum exp(x - max))"""
    shifted = b.subtract(x, b.reduce_largest(x, axes=[dim]))
    return b.subtract(shifted, b.log(b.reduce_sum(b.exp(shifted), axes=[dim])))


@_op
def standardise(b: Builder, x: Node, *, axes: Sequence[int], epsilon: float) -> Node:
    """(x - mean) / sqrt(variance + epsilon) over dimensions

    Mean and variance are taken over the dimensions `axes`.
    """
    centred = b.subtract(x, b.reduce_mean(x, axes=axes))
    variance = b.reduce_mean(b.square(centred), axes=axes)
    return b.multiply(centred, b.rsqrt(b.add(variance, epsilon)))


@_op
def rms_normalise(b: Builder, x: Node, *, axes: Sequence[int], epsilon: float) -> Node:
    """x / sqrt(mean x^2 + epsilon)"""
    return b.multiply(x, b.rsqrt(b.add(b.reduce_mean(b.square(x), axes=axes), epsilon)))


@_op
def layer_norm(b: Builder, x: Node, *weights: Node, rank: int, epsilon: float, centre: bool = True) -> Node:
    """standardised over the last `rank` dimensions, times gamma, plus beta; without `centre` by the root mean square"""
    axes = list(range(len(x.shape) - rank, len(x.shape)))
    if centre:
        normalise = b.standardise
    else:
        normalise = b.rms_normalise
    return _apply_weights(b, normalise(x, axes=axes, epsilon=epsilon), weights)


@_op
def batch_norm(b: Builder, x: Node, gamma: Node, beta: Node, mean: Node, variance: Node, *, epsilon: float) -> Node:
    """x s + (beta - mean s), s = gamma / sqrt(variance + epsilon), along dimension 1"""
    scale = b.multiply(gamma, b.rsqrt(b.add(variance, epsilon)))
    shift = b.subtract(beta, b.multiply(mean, scale))
    return b.add(b.multiply(x, _along_channels(b, scale, x)), _along_channels(b, shift, x))


@_op
def group_norm(b: Builder, x: Node, *weights: Node, groups: int, epsilon: float) -> Node:
    """standardised over the channels of each group and all space, times gamma, plus beta for each channel"""
    split = b.reshape(x, shape=(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
    normal = b.standardise(split, axes=range(2, len(split.shape)), epsilon=epsilon)
    return _apply_weights(b, b.reshape(normal, shape=x.shape), [_along_channels(b, weight, x) for weight in weights])


def _apply_weights(b: Builder, x: Node, weights: Sequence[Node]) -> Node:
    """Multiply x by the first of the weights, gamma, and add the second one, beta, as far as they are there."""
    for weight, combine in zip(weights, (b.multiply, b.add), strict=False):
        x = combine(x, weight)
    return x


def _along_channels(b: Builder, weight: Node, x: Node) -> Node:
    """Reshape a vector to lie along dimension 1 of x."""
    return b.reshape(weight, shape=(weight.shape[0], *[1] * (len(x.shape) - 2)))


@_op
def lp_normalise(b: Builder, x: Node, *, dim: int, p: int) -> Node:
    """x over its L1 or L2 norm along a dimension"""
    if p == 1:
        norm = b.reduce_l1
    else:
        norm = b.reduce_l2
    return b.divide(x, norm(x, axes=[dim]))


@_op
def attention(
    b: Builder, q: Node, k: Node, v: Node, *mask: Node, scale: float, causal: bool = False, softcap: float = 0.0
) -> Node:
    """softmax(scale q k^T + mask) v on [..., heads, length, size]; fewer heads of k and v are shared in groups"""
    if q.shape[-3] != k.shape[-3]:
        k, v = (
            b.repeat(operand, dim=len(operand.shape) - 3, times=q.shape[-3] // operand.shape[-3]) for operand in (k, v)
        )
    perm = [*range(len(k.shape) - 2), len(k.shape) - 1, len(k.shape) - 2]
    scores = b.matmul(b.multiply(q, scale), b.transpose(k, perm=perm))
    if softcap:
        scores = b.multiply(b.tanh(b.multiply(scores, 1 / softcap)), softcap)
    for operand in mask:
        scores = b.add(scores, operand)
    if causal:
        rows, columns = scores.shape[-2:]
        check_constant_size("mask", (rows, columns))
        scores = b.add(scores, b.constant(np.triu(np.full((rows, columns), -STAND_IN, np.float32), 1)))
    return b.matmul(b.softmax(scores, dim=-1), v)
