"""Shapes, slices, padding, constants that count."""

import numpy as np

from buda_emu.compiler.graph.builder import made_size
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_jax.declared import Call, hlo
from buda_emu.compiler.importers.from_jax.products import spread
from buda_emu.compiler.importers.operators import NotSupportedError


@hlo("stablehlo.reshape")
def reshape(call: Call) -> Node:
    """`reshape`"""
    return call.b.reshape(call.operands[0], shape=call.shape)


@hlo("stablehlo.transpose")
def transpose(call: Call) -> Node:
    """`transpose`"""
    return call.b.transpose(call.operands[0], perm=tuple(call.attrs["permutation"]))


@hlo("stablehlo.broadcast_in_dim")
def broadcast_in_dim(call: Call) -> Node:
    """`transpose`, `reshape` and `expand`; a number stays one value where an op broadcasts it"""
    b, x, dims = call.b, call.operands[0], list(call.attrs["broadcast_dimensions"])
    order = sorted(range(len(dims)), key=dims.__getitem__)
    x = b.transpose(x, perm=tuple(order)) if order != list(range(len(dims))) else x
    shape = [1] * len(call.shape)
    for dim, size in zip(sorted(dims), x.shape, strict=True):
        shape[dim] = size
    x = b.reshape(x, shape=tuple(shape))
    return x if tuple(shape) == call.shape else b.expand(x, shape=call.shape)


@hlo("stablehlo.iota")
def iota(call: Call) -> Node:
    """a constant"""
    made_size("iota", call.shape)
    dim = call.attrs["iota_dimension"]
    along = [call.shape[dim] if place == dim else 1 for place in range(len(call.shape))]
    value = np.broadcast_to(np.arange(call.shape[dim]).reshape(along), call.shape)
    return call.b.constant(value.astype(call.dtypes[0]))


@hlo("stablehlo.concatenate")
def concatenate(call: Call) -> Node:
    """`concat`"""
    return call.b.concat(*call.operands, dim=call.attrs["dimension"])


@hlo("stablehlo.slice")
def slice_(call: Call) -> Node:
    """`slice` of each dimension that gets shorter"""
    x = call.operands[0]
    for dim, (start, step) in enumerate(zip(call.attrs["start_indices"], call.attrs["strides"], strict=True)):
        if call.shape[dim] != x.shape[dim]:
            x = call.b.slice(x, dim=dim, start=start, count=call.shape[dim], step=step)
    return x


@hlo("stablehlo.reverse")
def reverse(call: Call) -> Node:
    """`take` from the last to the first"""
    x = call.operands[0]
    for dim in call.attrs["dimensions"]:
        x = call.b.take(x, dim=dim, index=np.arange(x.shape[dim])[::-1])
    return x


@hlo("stablehlo.pad")
def pad(call: Call) -> Node:
    """`pad` by a constant; zeros between elements too"""
    x, value = call.operands
    if value.op != "constant":
        raise NotSupportedError("a value that is computed")
    number = float(value.value)
    between = call.listed("interior_padding", 0, len(x.shape))
    if any(between) and number:
        raise NotSupportedError("something else than zeros between elements")
    for dim, count in enumerate(between):
        x = spread(call, x, dim, count + 1)
    pads = tuple(zip(call.attrs["edge_padding_low"], call.attrs["edge_padding_high"], strict=True))
    return call.b.pad(x, pads=pads, value=number)
