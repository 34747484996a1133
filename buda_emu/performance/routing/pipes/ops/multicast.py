"""Operands that rows or columns of cores share, and the NoC over which they are multicast (net2pipe)."""

from dataclasses import dataclass

from buda_emu.netlist.model import Op
from buda_emu.performance.routing.pipes.ops.general import is_ethernet
from buda_emu.performance.routing.pipes.ops.operands import OpInputs


@dataclass(frozen=True, slots=True)
class Multicast:
    """The multicast of one operand: whether all cores of a row (column) of the op's grid get the same tiles, and
    whether over NoC 1."""

    rows: bool
    columns: bool
    noc1: bool


def multicast(inputs: OpInputs, index: int) -> Multicast:
    """Return how operand `index` is multicast to the cores that share it. Raises RefusedError for a fused op with more
    than two shared operands."""
    shared = inputs.sharing(index)
    if inputs.op.grid_transpose:
        across = shared.rows
    else:
        across = shared.columns
    return Multicast(shared.rows, shared.columns, across != shared.other_noc)


def direct(arch: str, grid: tuple[int, int], producer: Op, consumer: Op, shared: Multicast) -> int | None:
    """Return the NoC over which a producer beside its consumer's row (column) of cores can multicast itself, without
    another core between; None if it cannot. `grid` is the chip's, `shared` the multicast that the consumer wants."""
    apart = producer.target_device != consumer.target_device
    if arch != "wormhole_b0" or apart or is_ethernet(producer) or is_ethernet(consumer):
        return None
    down, across = consumer.blocking.grid_size
    rows = shared.rows and across > 1
    columns = shared.columns and down > 1
    along_x, along_y = (columns, rows) if consumer.grid_transpose else (rows, columns)
    for axis, along in ((1, along_x), (0, along_y)):
        noc = None
        if along:
            noc = _noc_from_beside(grid[axis], producer, consumer, axis)
        if noc is not None:
            if shared.noc1 == (noc == 1):
                return noc
            return None
    return None


def _noc_from_beside(size: int, producer: Op, consumer: Op, axis: int) -> int | None:
    """Return the NoC on which a producer's line of cores leads into the consumer along an axis of `size` cores: 0 if
    the producer stands right before it, 1 if right behind it, None if not beside it."""
    other = 1 - axis
    if consumer.cores[other] != producer.cores[other] or producer.cores[axis] != 1:
        return None
    if consumer.grid_loc[other] != producer.grid_loc[other]:
        return None
    if producer.grid_loc[axis] == (consumer.grid_loc[axis] + consumer.cores[axis]) % size:
        return 1
    if consumer.grid_loc[axis] == (producer.grid_loc[axis] + 1) % size:
        return 0
    return None
