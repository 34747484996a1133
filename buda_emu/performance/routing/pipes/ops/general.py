"""Properties of any op for the vendor's pipe compiler: the cores that it runs on, and the buffers of its result."""

from functools import cache

from buda_emu.netlist.model import Op
from buda_emu.performance.routing.pipes.model import RefusedError
from buda_emu.spec.ops import OP_TYPES


def is_ethernet(op: Op) -> bool:
    """Return whether the op runs on Ethernet cores, between chips."""
    return _on_ethernet(op.type)


@cache
def _on_ethernet(kind: str) -> bool:
    """Return whether ops of a type run on Ethernet cores."""
    return OP_TYPES[kind].has("Ethernet")


def is_drainer(op: Op) -> bool:
    """Return whether the op is a drainer, whose result goes nowhere."""
    return op.type == "drainer"


def has_output_buffer(op: Op) -> bool:
    """Return whether the op has an output buffer. A gradient accumulates in its intermediate buffer instead."""
    return not op.gradient_op and not is_drainer(op)


def shares_output(op: Op) -> bool:
    """Return whether the bytes of an op's output buffer are also those of its intermediate buffer, if it has one; for a
    copy on Ethernet cores, of its input buffer."""
    one_kind = op.intermed_df == op.out_df and not op.untilize_output and op.type not in ("fused_op", "topk")
    return (has_output_buffer(op) and one_kind) or is_ethernet(op)


def kernel_broadcast(op: Op, index: int) -> tuple[int, bool]:
    """Return how many tiles of operand `index` a core keeps and reads again and again (kernel_broadcast, single_tile),
    and whether it keeps as many for each t; (0, False) if it keeps none."""
    attributes = op.attributes
    for number, tiles in attributes.kernel_broadcast_per_t:
        if number == index:
            return tiles, True
    for number, tiles in attributes.kernel_broadcast:
        if number == index:
            return tiles, False
    if index in attributes.single_tile:
        return (1, False)
    return (0, False)


def mblock_tiles(op: Op) -> int:
    """Return the tiles of one mblock of the result."""
    return op.blocking.block_rows * op.blocking.block_cols


def buffered_mblocks(op: Op) -> int:
    """Return how many mblocks the output buffer can hold while others are read: half of buf_size_mb, at least 1. Raises
    RefusedError for an odd buf_size_mb above 1."""
    size = op.buf_size_mb
    if size > 1 and size % 2:
        raise RefusedError("V080", f"buf_size_mb is {size}", "use 1 or an even number")
    return max(1, size // 2)
