"""What the vendor's pipe compiler distinguishes ops by: how they read, and which buffers a core has for them."""

from collections.abc import Mapping
from functools import cache
from typing import Literal, get_args

from buda_emu.netlist.model import Op
from buda_emu.routing.pipes.refusal import RefusedError
from buda_emu.spec.ops import OP_TYPES

OpClass = Literal[
    "matmul", "depthwise", "reduce", "fused_op", "splice", "buffer", "embedding", "tilizer", "topk", "binary", "unary"
]
_BY_TYPE: Mapping[str, OpClass] = {kind: kind for kind in get_args(OpClass) if kind not in ("binary", "unary")}
_ALL_INPUTS = ("fused_op", "splice", "buffer", "embedding", "tilizer", "depthwise", "topk")


def op_class(op: Op) -> OpClass:
    """Its class: its type's, else by its inputs. RefusedError for other ops with more than two."""
    found = _BY_TYPE.get(op.type)
    if found is not None:
        return found
    if len(op.inputs) not in (1, 2):
        raise RefusedError("V085", f"{op.type} has input buffers for 2 operands, not for {len(op.inputs)}")
    return "binary" if len(op.inputs) == 2 else "unary"


def is_ethernet(op: Op) -> bool:
    """Whether it runs on Ethernet cores, between chips."""
    return _on_ethernet(op.type)


@cache
def _on_ethernet(kind: str) -> bool:
    return OP_TYPES[kind].has("Ethernet")


def is_drainer(op: Op) -> bool:
    """Whether its result goes nowhere."""
    return op.type == "drainer"


def input_buffers(op: Op) -> int:
    """Operands that have a buffer in each core."""
    own, kind = op.attributes, op_class(op)
    if kind == "matmul":
        scaled = own.requant or own.dequant
        return 2 + (own.identity or own.bias or scaled) + (own.bias and (own.identity or scaled))
    if kind in _ALL_INPUTS:
        return len(op.inputs)
    return 2 if kind == "binary" else 1


def has_output_buffer(op: Op) -> bool:
    """A gradient accumulates in its intermediate buffer instead."""
    return not op.gradient_op and not is_drainer(op)


def intermediates(op: Op, of_fused: int = 0) -> int:
    """Intermediate buffers of a core; `of_fused`: those that the definition of a fused op has."""
    own, kind = op.attributes, op_class(op)
    if kind == "matmul":
        many = own.m_k > 1 or own.accumulate or own.identity
        return int(many or own.bias or own.requant or own.dequant or op.gradient_op)
    if kind == "depthwise":
        return int(own.m_k > 1 or own.bias or op.gradient_op)
    if kind == "topk":
        return 2
    if kind == "fused_op":
        return of_fused if of_fused > 0 or op.gradient_op else 0
    return int(op.gradient_op or (kind == "reduce" and own.dim == "z" and own.z > 1))


def shares_output(op: Op, has_intermediate: bool) -> bool:
    """Whether output and intermediate buffer are the same bytes (of an Ethernet copy: input and output buffer)."""
    one_kind = op.intermed_df == op.out_df and not op.untilize_output and op.type not in ("fused_op", "topk")
    return (has_output_buffer(op) and has_intermediate and one_kind) or is_ethernet(op)


def kernel_broadcast(op: Op, index: int) -> tuple[int, bool]:
    """Tiles that a core keeps of an operand, 0 for all, and whether for each t anew."""
    own = op.attributes
    for number, tiles in own.kernel_broadcast_per_t:
        if number == index:
            return tiles, True
    for number, tiles in own.kernel_broadcast:
        if number == index:
            return tiles, False
    return (1, False) if index in own.single_tile else (0, False)


def mblock_tiles(op: Op) -> int:
    """Tiles of one mblock of the result."""
    return op.blocking.block_rows * op.blocking.block_cols


def buffered_mblocks(op: Op) -> int:
    """Mblocks that the output buffer holds at a time: half of buf_size_mb, as it is filled while it is read.
    RefusedError for an odd number above 1."""
    size = op.buf_size_mb
    if size > 1 and size % 2:
        raise RefusedError("V080", f"buf_size_mb is {size}", "use 1 or an even number")
    return max(1, size // 2)
