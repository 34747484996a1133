"""More rows of cores for an identity matmul: each row has sparse tiles and an encoding of its own, which the host makes
for the new number of rows."""

from collections.abc import Iterator
from typing import Final

from buda_emu.advice.edits import Edit, Proposal, edited, merged
from buda_emu.advice.moves.cores import make_room, new_grid
from buda_emu.advice.moves.memory import Channels, may_move
from buda_emu.advice.moves.move import Move, Situation
from buda_emu.advice.moves.sparse import merged_columns
from buda_emu.checker.text import plural
from buda_emu.netlist.model import Op, Queue

_MOST: Final = 16  # rows


def _proposals(here: Situation) -> Iterator[Proposal]:
    op = here.op
    now = here.cycles(op) if op is not None else None
    if op is None or now is None or not op.attributes.identity or len(op.grid_loc) != 2 or op.grid_transpose:
        return
    queues = _encoded(here, op)
    if queues is None:
        return
    found: list[tuple[float, int, tuple[Edit, ...]]] = []
    for columns in ((), *merged_columns(op)):  # a column less makes room for rows
        base = edited(here.variant.netlist, columns).ops[op.name]
        rows, mblock = base.blocking.grid_size[0], base.blocking.mblock
        for times in range(2, mblock[0] + 1):
            if mblock[0] % times or rows * times > _MOST:
                continue
            grid = (rows * times, base.blocking.grid_size[1])
            own = (
                Edit("op", op.name, ("grid_size",), grid),
                Edit("op", op.name, ("mblock",), (mblock[0] // times, mblock[1])),
            )
            edits = merged((*columns, *own))
            after = here.cycles(edited(here.variant.netlist, edits).ops[op.name])
            if after is not None and after < now:
                found.append((after, grid[0] * grid[1], (*edits, *_queue_edits(here, queues, grid[0]))))
    for after, count, edits in sorted(found, key=lambda item: item[:2]):
        room = make_room(here, op, edits, now)
        if room is None:
            continue
        others, words = room
        rows = new_grid(edits)[0]
        own = f"{op.name} on {plural(count, 'core')}, {plural(rows, 'row')}, instead of {op.blocking.cells}{words}"
        yield Proposal(
            "rows",
            op.name,
            own,
            merged((*edits, *others)),
            gain=(now - after) / max(count - op.blocking.cells, 1),
            host=f"encodes {' and '.join(queue.name for queue in queues)} for {plural(rows, 'row')} of cores",
        )


def _encoded(here: Situation, op: Op) -> tuple[Queue, Queue] | None:
    """The queues of the sparse tiles and of their encoding, if the host fills them for this op alone."""
    netlist = here.variant.netlist
    found = [netlist.queues.get(op.inputs[operand]) for operand in (0, 2)] if len(op.inputs) == 3 else []
    readers = [name for other in netlist.ops.values() for name in other.inputs]
    queues = [
        queue
        for queue in found
        if queue is not None
        and queue.host_fed
        and readers.count(queue.name) == 1
        and may_move(here.variant, queue)
        and queue.blocking.grid_size[0] == op.blocking.grid_size[0]
    ]
    return (queues[0], queues[1]) if len(queues) == 2 else None


def _queue_edits(here: Situation, queues: tuple[Queue, Queue], rows: int) -> Iterator[Edit]:
    """As many rows of buffers as the op has rows of cores, each as large as before: a row may need all of it."""
    count = here.evaluator.chip.dram_channels
    room = Channels(here.variant, queues[0].target_device, count)
    for queue in queues:
        columns = queue.blocking.grid_size[1]
        buffers = list(queue.buffers)
        while len(buffers) < rows * columns:
            buffers.append(room.place(queue, len(buffers) % count))
        yield Edit("queue", queue.name, ("grid_size",), (rows, columns))
        yield Edit("queue", queue.name, ("dram",), tuple(buffers))


MOVE: Final = Move(
    "rows", "grid_size, mblock of an identity matmul and its queues",
    "an identity matmul that sets the pace, whose sparse tiles and encoding the host fills",
    lossy=False, proposals=_proposals,
)  # fmt: skip
