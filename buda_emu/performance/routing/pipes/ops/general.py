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
    """Return whether an op's output buffer and its intermediate buffer, if there is one, are the same bytes (for an
    Ethernet copy: input and output buffer)."""
    one_kind = op.intermed_df == op.out_df and not op.untilize_output and op.type not in ("fused_op", "topk")
    return (has_output_buffer(op) and one_kind) or is_ethernet(op)


def kernel_broadcast(op: Op, index: int) -> tuple[int, bool]:
    """Return the tiles that a core keeps of operand `index` and reads again and again, as its attributes ask for, and
    whether it keeps as many for each t; (0, False) where all tiles come."""
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
    """Return the mblocks that the output buffer holds at a time: half of buf_size_mb, since it is filled while it is
    read. Raises RefusedError for an odd number above 1."""
    size = op.buf_size_mb
    if size > 1 and size % 2:
        raise RefusedError("V080", f"buf_size_mb is {size}", "use 1 or an even number")
    return max(1, size // 2)
