"""What follows the product of a matmul: bias, requantisation, gelu, blanking (OPS 6.1). Depthwise shares the bias."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from buda_emu.errors import ProgramError
from buda_emu.kernels.products.matmul_tail import count_beyond
from buda_emu.kernels.tiles import binary as binary_kernel
from buda_emu.kernels.tiles import gather
from buda_emu.ops.base import OpCall, Parallel, Tiles
from buda_emu.ops.common import blank, items, kernel_operand
from buda_emu.ops.operands import blank_in_place, run_add, run_binary
from buda_emu.spec.blocking import FULL_TILE, Shape
from buda_emu.spec.ops import SFPU_TYPES

EXACT_LIMIT: Final = np.float32(1 << 24)
"""Integers beyond this magnitude are not all exact in float32."""


def check_tail(call: OpCall, first: int, shape: Shape) -> None:
    """Raises ProgramError unless operands `first`, ... are the bias and the scale that the attributes ask for, of the
    product's `shape`, and the SFPU function at the end is one that runs."""
    attributes = call.attributes
    scaled = attributes.requant or attributes.dequant
    wanted = first + attributes.bias + scaled
    if len(call.operands) != wanted:
        raise ProgramError(f"op {call.name}: {call.type} needs {wanted} input(s), it has {len(call.operands)}")
    if attributes.bias:
        require_full_shape(call, first, shape, "bias")
    if scaled:
        require_full_shape(call, wanted - 1, shape, "scale")
    if attributes.sfpu_op in SFPU_TYPES and attributes.sfpu_op != "gelu":  # any other word means none
        raise ProgramError(f"op {call.name}: matmul with sfpu_op {attributes.sfpu_op}, only gelu runs")


def require_full_shape(call: OpCall, index: int, shape: Shape, role: str) -> None:
    """Raises ProgramError unless operand `index` has the dims of the result."""
    found = call.operands[index].map.shape
    if found != shape:
        raise ProgramError(f"op {call.name}: {role} with dims {list(found)} for a product of {list(shape)} (t, r, c)")


def integer_mode(call: OpCall) -> bool:
    """Whether any input is labelled Int8 or Int32: the bias is then added element by element."""
    return any(operand.label in ("Int8", "Int32") for operand in call.operands)


def add_bias(product: Tiles, bias: Tiles, first_row: bool) -> Tiles:
    """product + bias; with `first_row` row 0 of each bias tile stands for all of its rows."""
    with np.errstate(all="ignore"):
        return product + (bias[..., :1, :] if first_row else bias)


def reference_tail(call: OpCall, product: Tiles, others: Sequence[Tiles]) -> Tiles:
    """The definition, from the product to the op's result. `others`: bias and scale, as far as they are there."""
    attributes, result = call.attributes, product
    if attributes.bias:
        result = add_bias(result, others[0], not integer_mode(call))
    if attributes.requant or attributes.dequant:
        _check_exact(call, int((np.abs(result) > EXACT_LIMIT).sum()))
        from buda_emu.ops.binary.op import multiply

        zero_point = np.float32(attributes.zero_point)
        with np.errstate(all="ignore"):
            if attributes.requant:
                result = multiply(result, others[-1]) + zero_point
            else:
                result = multiply(result + -zero_point, others[-1])
    if attributes.sfpu_op == "gelu":
        from buda_emu.ops.sfpu.op import on_region, region_of

        result = on_region(call, "gelu", region_of(call), result, outside=result)
    return blank(result, call.blocking.tile_dim)


def follows_bias(call: OpCall) -> bool:
    """Whether `run_tail` does anything."""
    attributes = call.attributes
    some = attributes.requant or attributes.dequant or attributes.sfpu_op == "gelu"
    return some or call.blocking.tile_dim != FULL_TILE


def run_bias(call: OpCall, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel, first: int) -> None:
    """The bias, operand `first`, in place on the product in `out`, if the op has one."""
    if call.attributes.bias:
        arrange = gather.AS_IS if integer_mode(call) else gather.FIRST_ROW
        run_add(out, kernel_operand(call, first, inputs), parallel, arrange)


def run_tail(call: OpCall, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
    """The kernels of what comes after the bias, in place on the product in `out`."""
    attributes = call.attributes
    if attributes.requant or attributes.dequant:
        if _must_be_exact(call):
            counts = np.zeros(items(out), np.int64)
            parallel(count_beyond, items(out), out, EXACT_LIMIT, counts)
            _check_exact(call, int(counts.sum()))
        code = binary_kernel.SCALE_SHIFT if attributes.requant else binary_kernel.SHIFT_SCALE
        scale = kernel_operand(call, len(inputs) - 1, inputs)
        run_binary(out, code, scale, parallel, attributes.zero_point)
    if attributes.sfpu_op == "gelu":
        from buda_emu.ops.sfpu.op import region_of, run_in_place  # all functions of the SFPU: few matmuls end in one

        run_in_place(call, "gelu", region_of(call), out, parallel)
    blank_in_place(out, call.blocking.tile_dim, parallel)


def _must_be_exact(call: OpCall) -> bool:
    """The reference aborts on large integers only where no bias has been added; otherwise it warns."""
    return integer_mode(call) and not call.attributes.bias


def _check_exact(call: OpCall, beyond: int) -> None:
    if beyond and _must_be_exact(call):
        raise ProgramError(f"op {call.name}: {beyond} element(s) beyond 2^24 before requantisation")
