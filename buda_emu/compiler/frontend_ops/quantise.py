"""Integers with a scale (FRONTEND 2)."""

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.graph.registry import composite

_op = composite("quantise")


@_op
def quantize(b: Builder, x: Node, scale: Node, zero: Node, *, type: str) -> Node:
    """round(x / scale) + zero, halves to even, within the range of a type of integers"""
    bounds = np.iinfo(np.dtype(type))
    integers = b.add(b.round(b.divide(x, scale), dtype="float32"), zero, dtype="float32")
    return b.retype(b.clip(integers, low=float(bounds.min), high=float(bounds.max)), type)


@_op
def dequantize(b: Builder, x: Node, scale: Node, zero: Node) -> Node:
    """(x - zero) * scale"""
    if zero.op == "constant" and not zero.value.any():
        centred = x
    else:
        centred = b.subtract(x, zero, dtype="float32")
    return b.multiply(centred, scale, dtype="float32")
