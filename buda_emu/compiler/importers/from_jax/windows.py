"""Pooling: reductions over windows."""

from math import prod

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_jax.declared import Call, hlo
from buda_emu.compiler.importers.from_jax.reductions import begins_with
from buda_emu.compiler.importers.operators import NotSupportedError


@hlo("stablehlo.reduce_window")
def reduce_window(call: Call) -> Node:
    """`max_pool`, or `avg_pool` for its sums, over the dimensions along which windows are wider than 1"""
    b, x = call.b, call.operands[0]
    rank = len(x.shape)
    kernel = call.listed("window_dimensions", 1, rank)
    strides, dilations = call.listed("window_strides", 1, rank), call.listed("window_dilations", 1, rank)
    pads = [tuple(around) for around in call.attrs.get("padding") or ((0, 0),) * rank]
    body = call.regions[0]
    if len(call.operands) != 2 or body not in (("add",), ("maximum",)):
        raise NotSupportedError(f"of {', '.join(body)}")
    if max(call.listed("base_dilations", 1, rank)) > 1:
        raise NotSupportedError("of elements that are spread")
    begins_with(call, {"add": "0", "maximum": "the least"}[body[0]])
    pooled = [dim for dim in range(rank) if kernel[dim] > 1 or strides[dim] > 1 or any(pads[dim])]
    if not pooled:
        return x
    rest = [dim for dim in range(rank) if dim not in pooled]
    order = (*rest, *pooled)
    size = prod(x.shape[dim] for dim in rest)
    flat = b.reshape(b.transpose(x, perm=order), shape=(1, size, *(x.shape[dim] for dim in pooled)))
    options = {
        "kernel": tuple(kernel[dim] for dim in pooled),
        "strides": tuple(strides[dim] for dim in pooled),
        "pads": tuple(pads[dim] for dim in pooled),
        "dilations": tuple(dilations[dim] for dim in pooled),
    }
    y = b.max_pool(flat, **options) if body == ("maximum",) else b.avg_pool(flat, **options, total=True)
    y = b.reshape(y, shape=tuple(call.shape[dim] for dim in order))
    return b.transpose(y, perm=tuple(order.index(dim) for dim in range(rank)))
