"""Moves of cores: more cores for the op that sets the pace, and other rows and columns of cores for identity
matmuls."""

from collections.abc import Iterator, Mapping
from itertools import chain
from math import prod
from typing import Final

from buda_emu.netlist.model import Op, Queue
from buda_emu.netlist.rules.queues.memory import L1_RESERVED, l1_bytes
from buda_emu.performance.advice.edits import Edit, Proposal, apply_edits, merge_edits
from buda_emu.performance.advice.layout import Place
from buda_emu.performance.advice.moves.buffers import Channels, may_move
from buda_emu.performance.advice.moves.move import Move, Situation
from buda_emu.support.checker.text import plural


def merged_columns(op: Op) -> Iterator[tuple[Edit, ...]]:
    """Yield edits that give an identity matmul fewer columns of cores, each with a wider block; nothing for other ops.
    The content of the queues that it reads stays as it is."""
    rows, columns = op.blocking.grid_size
    if not op.attributes.identity or columns < 2 or len(op.inputs) != 3 or op.grid_transpose:
        return
    places = [_broadcast_place(op, operand, columns) for operand in (0, 2)]
    for fewer in range(1, columns):
        if columns % fewer or None in places:
            continue
        mblock = (op.blocking.mblock[0], op.blocking.mblock[1] * columns // fewer)
        edits = [Edit("op", op.name, ("grid_size",), (rows, fewer)), Edit("op", op.name, ("mblock",), mblock)]
        for operand, place in zip((0, 2), places, strict=True):
            assert place is not None
            edits.append(Edit("op", op.name, (f"input_{operand}_tms", place, "broadcast", "c"), fewer))
        yield tuple(edits)


def _broadcast_place(op: Op, operand: int, columns: int) -> int | None:
    """Return the place, among an operand's TMs, of its broadcast to `columns` columns, None if it has none."""
    if operand < len(op.input_tms):
        chain = op.input_tms[operand]
    else:
        chain = ()
    for place, tm in enumerate(chain):
        if tm.name == "broadcast" and tm.args == ("c", columns):
            return place
    return None


_MOST: Final = 16  # cores
_SHAPES: Final = 6  # that are tried, the best first
_SPARE: Final = 0.85  # of the cycles that the op takes now: what a donor may take afterwards


def _propose_cores(situation: Situation) -> Iterator[Proposal]:
    """Propose more cores for the op that limits the epoch: the fastest grids for which there is room, or for which
    other ops can move or give cores away."""
    op = situation.op
    cycles_before = situation.op_cycles
    if op is None or cycles_before is None or not can_be_cut(situation, op):
        return
    tried = 0
    for cycles_after, count, edits in _fastest_cuts(situation, op, cycles_before):
        room = make_room(situation, op, edits, cycles_before)
        if room is None:
            continue
        others, words = room
        edits = (*edits, *_queue_edits(situation, op, edits))
        sentence = f"{op.name} on {plural(count, 'core')} instead of {op.blocking.cells}{words}"
        gain = (cycles_before - cycles_after) / (count - op.blocking.cells)  # others may need cores as much
        yield Proposal("cores", op.name, sentence, merge_edits((*edits, *others)), gain=gain)
        tried += 1
        if tried == _SHAPES:
            return


def _fastest_cuts(situation: Situation, op: Op, cycles_before: float) -> list[tuple[float, int, tuple[Edit, ...]]]:
    """Return (cycles, number of cores, edits) of grids of more cores on which the op takes fewer cycles than
    `cycles_before`: the fastest grid of each number of cores, in rising order of cycles."""
    candidates: list[tuple[float, int, tuple[Edit, ...]]] = []
    for edits in _cuts(op):
        cycles_after = situation.cycles(apply_edits(situation.variant.netlist, edits).ops[op.name])
        if cycles_after is not None and cycles_after < cycles_before:
            candidates.append((cycles_after, _new_core_count(edits), edits))
    best: dict[int, tuple[float, int, tuple[Edit, ...]]] = {}
    for candidate in sorted(candidates, key=lambda candidate: candidate[:2]):
        best.setdefault(candidate[1], candidate)
    return list(best.values())


def can_be_cut(situation: Situation, op: Op) -> bool:
    """Return whether an op can run on another number of cores by new blocks and grid alone, with nothing else in the
    netlist that counts on its present cores. Never for an identity matmul."""
    return not op.attributes.identity and not _obstacle(situation, op)


def _obstacle(situation: Situation, op: Op) -> str:
    """Return what ties an op to its number of cores, as words for the user; "" if nothing does. The sparse tiles and
    the encoding of an identity matmul are no obstacle here: the move `rows` looks at them."""
    attributes = op.attributes
    counted = (attributes.kernel_broadcast, attributes.kernel_broadcast_per_t, attributes.single_tile)
    if op.has("cut by its attributes"):
        return f"the blocks of its cores stand in more than its own fields ({op.type})"
    if op.gradient_op:
        return "it adds up gradients in its output buffer"
    if op.grid_transpose or len(op.grid_loc) != 2:
        return "its place is no plain rectangle of the grid"
    if any(counted):
        return "kernel_broadcast counts the tiles of one core"
    for queue in _queues_of(situation, op):
        if not may_move(situation.variant, queue):
            return f"queue {queue.name} has to stay where it is"
        if queue.blocking != op.blocking:
            return f"queue {queue.name}, which it feeds, has other blocks"
    return ""


def reason_unsplit(situation: Situation, op: Op) -> str:
    """Return why no move gives more cores to `op`, which is the target of the situation; "" if a move does."""
    if _can_take_cores(situation) or _can_take_rows(situation):
        return ""
    identity = op.attributes.identity
    obstacle = _obstacle(situation, op)
    if obstacle:
        return obstacle
    if not any(True for _ in _cuts(op)) or (identity and op.blocking.mblock[0] == 1):
        return _reason_of_small_slices(op)
    if identity and _encoding_queues(situation, op) is None:
        return (
            "its sparse tiles and their encoding are not filled by the host for this op alone, or their buffers cannot "
            "be moved"
        )
    if identity:
        return "on more rows of cores it takes no fewer cycles, or no free cores make up such a rectangle"
    cycles = situation.cycles(op)
    if cycles is None or not _fastest_cuts(situation, op, cycles):
        return "on more cores it takes no fewer cycles"
    return "no free cores make up a rectangle that is large enough, and no op can give any away"


def _reason_of_small_slices(op: Op) -> str:
    """Return the reason for an op whose slices are too small to be shared."""
    t, rows, columns = op.blocking.shape
    text = f"a slice of its result is {plural(rows, 'tile')} high and {plural(columns, 'tile')} wide, and cores share"
    if t > 1:
        return (
            f"{text} the tiles of a slice, never slices: put its {t} slices below each other (vstack) where the "
            "netlist is made, and slice them again in its readers (vslice)"
        )
    return f"{text} its tiles, not less"


def _can_take_cores(situation: Situation) -> bool:
    """Return whether the move `cores` has a proposal, so that nobody needs a reason why it has none."""
    return next(_propose_cores(situation), None) is not None


def _can_take_rows(situation: Situation) -> bool:
    """Return whether the move `rows` has a proposal, so that nobody needs a reason why it has none."""
    return next(_propose_rows(situation), None) is not None


def _queues_of(situation: Situation, op: Op) -> list[Queue]:
    """Return the queues that an op feeds."""
    return [queue for queue in situation.variant.netlist.queues.values() if queue.input == op.name]


def _queue_edits(situation: Situation, op: Op, edits: tuple[Edit, ...]) -> Iterator[Edit]:
    """Yield the edits of queues that an op feeds, so that they follow its `edits`: one buffer for each of its cores, in
    its blocks."""
    queues = _queues_of(situation, op)
    if not queues:
        return
    count = situation.evaluator.chip.dram_channels
    blocks = [edit for edit in edits if edit.name == op.name and edit.path[0] in ("grid_size", "mblock", "ublock")]
    room = Channels(situation.variant, op.target_device, count)
    for queue in queues:
        block_edits = [Edit("queue", queue.name, edit.path, edit.value) for edit in blocks]
        yield from block_edits
        new = apply_edits(situation.variant.netlist, block_edits).queues[queue.name]
        first = queue.buffers[0].channel
        buffers = tuple(room.place(new, (first + cell) % count) for cell in range(new.blocking.cells))
        yield Edit("queue", queue.name, ("dram",), buffers)


def _cuts(op: Op) -> Iterator[tuple[Edit, ...]]:
    """Yield edits of grid and blocks that give an op more cores, up to a limit, for the same tensor. t and the inner
    blocks of a matmul stay, and so does the ublock where the mblock alone can be shared out."""
    blocking = op.blocking
    rows = _side_cuts(blocking.grid_size[0], blocking.mblock[0], blocking.ublock[0])
    columns = _side_cuts(blocking.grid_size[1], blocking.mblock[1], blocking.ublock[1])
    for r, (m, u) in rows.items():
        for c, (n, v) in columns.items():
            if blocking.cells < r * c <= _MOST:
                yield _block_edits(op, (r, c), (m, n), (u, v))


def _side_cuts(grid: int, mblock: int, ublock: int) -> dict[int, tuple[int, int]]:
    """Return for each number of cores along one side the (mblock, ublock) of each core: the ublock is kept, or divided
    if the mblock is 1 already. `grid`, `mblock` and `ublock` are the present sizes along that side."""
    blocks = {r: (grid * mblock // r, ublock) for r in range(1, grid * mblock + 1) if grid * mblock % r == 0}
    for cut in range(2, ublock + 1):
        if ublock % cut == 0:
            blocks.setdefault(grid * mblock * cut, (1, ublock // cut))
    return blocks


def _block_edits(op: Op, grid: tuple[int, int], mblock: tuple[int, int], ublock: tuple[int, int]) -> tuple[Edit, ...]:
    """Return the edits that give an op this grid and these blocks, without those that would change nothing."""
    values = (("grid_size", grid), ("mblock", mblock), ("ublock", ublock))
    return tuple(Edit("op", op.name, (key,), value) for key, value in values if getattr(op.blocking, key) != value)


def new_grid(edits: tuple[Edit, ...]) -> tuple[int, int]:
    """Return the rows and columns of cores that an op has after `edits`, which must change the grid_size of exactly one
    op. Raises StopIteration if none does."""
    grid = next(edit.value for edit in edits if edit.kind == "op" and edit.path == ("grid_size",))
    assert isinstance(grid, tuple)
    return grid[0], grid[1]


def _new_core_count(edits: tuple[Edit, ...]) -> int:
    """Return the number of cores that an op has after `edits`, which must change its grid_size."""
    return prod(new_grid(edits))


def make_room(
    situation: Situation, op: Op, edits: tuple[Edit, ...], cycles_before: float
) -> tuple[tuple[Edit, ...], str] | None:
    """Find room for the grid that `edits` give an op. Return the further edits needed, grid_loc of ops that move and
    grids of ops that give cores away, and words that describe them ("" for none); None if there is no room.
    `cycles_before` is the cycles of the op now: ops that give cores away must stay below it."""
    layout = situation.layout(op)
    rows, columns = new_grid(edits)
    donors: list[tuple[Edit, ...]] = []
    missing = rows * columns - op.blocking.cells - len(layout.free)
    places = dict(layout.places)
    if missing > 0:
        for other, cut in _donor_edits(situation, op, cycles_before):
            donors.append(cut)
            high, wide = new_grid(cut)
            row, column, *_ = places[other.name]
            places[other.name] = (row, column, high, wide)
            missing -= other.blocking.cells - high * wide
            if missing <= 0:
                break
        if missing > 0:
            return None
    moved = type(layout)(layout.grid, places).room_for(op.name, rows, columns)
    if moved is None:
        return None
    words = _room_words([cut[0].name for cut in donors if cut], [name for name in moved if name != op.name])
    return (*chain.from_iterable(donors), *_placement_edits(situation, layout.places, moved)), words


def _room_words(donors: list[str], others: list[str]) -> str:
    """Return the end of a sentence that names the ops that give cores away, and counts those that move."""
    words = ""
    if donors:
        verb = "gives" if len(donors) == 1 else "give"
        words = f"; {', '.join(donors)} {verb} cores"
    if others:
        words += f"; {plural(len(others), 'other')} moved"
    return words


def _placement_edits(situation: Situation, before: Mapping[str, Place], moved: Mapping[str, Place]) -> Iterator[Edit]:
    """Yield edits of grid_loc for the ops in `moved` (new places by name) whose top left core differs from that in
    `before`."""
    for name, place in moved.items():
        if place[:2] != before[name][:2]:
            yield Edit("op", situation.ops[name].name, ("grid_loc",), place[:2])


def _donor_edits(situation: Situation, op: Op, cycles_before: float) -> Iterator[tuple[Op, tuple[Edit, ...]]]:
    """Yield the ops of the same chip that can do with fewer cores and still stay below `cycles_before`, the present
    cycles of `op`, each with the edits for it; first the one that takes the fewest cycles then."""
    donors: list[tuple[float, str, Op, tuple[Edit, ...]]] = []
    for other in situation.ops.values():
        if other.name == op.name or other.blocking.cells < 2 or other.target_device != op.target_device:
            continue
        fewest = _fewest_cores(situation, other, _SPARE * cycles_before)
        if fewest is not None:
            donors.append((fewest[0], other.name, other, fewest[1]))
    for _, _, other, edits in sorted(donors, key=lambda donor: donor[:2]):
        yield other, edits


def _fewest_cores(situation: Situation, op: Op, limit: float) -> tuple[float, tuple[Edit, ...]] | None:
    """Return (cycles, edits) for the smallest grid, of fewer cores than now, on which an op takes less than `limit`
    cycles and fits into L1; None if there is none."""
    merges = _merges(op) if can_be_cut(situation, op) else _merged_columns_without_queues(situation, op)
    fewest: tuple[float, tuple[Edit, ...]] | None = None
    for merge in merges:
        edits = _fit_into_l1(situation, op.name, merge)
        if not edits:
            continue
        cycles_after = situation.cycles(apply_edits(situation.variant.netlist, edits).ops[op.name])
        if cycles_after is None or cycles_after >= limit:
            continue
        if fewest is None or _new_core_count(edits) < _new_core_count(fewest[1]):
            fewest = cycles_after, (*edits, *_queue_edits(situation, op, edits))
    return fewest


def _fit_into_l1(situation: Situation, name: str, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Return the edits, with an output buffer of one macroblock if L1 is too small otherwise; () if it is too small
    even then."""
    arch = situation.variant.netlist.arch
    for smaller in (edits, (*edits, Edit("op", name, ("buf_size_mb",), 1))):
        op = apply_edits(situation.variant.netlist, smaller).ops[name]
        if l1_bytes(op, arch.alignment) <= arch.l1_bytes - L1_RESERVED:
            return smaller
    return ()


def _merged_columns_without_queues(situation: Situation, op: Op) -> Iterator[tuple[Edit, ...]]:
    """Return an iterator of edits that give an identity matmul fewer columns of cores; an empty one if it feeds queues,
    whose buffers would have to follow."""
    if _queues_of(situation, op):
        return iter(())
    return merged_columns(op)


def _merges(op: Op) -> Iterator[tuple[Edit, ...]]:
    """Yield edits that give an op each smaller grid that divides its present one, for the same tensor, with larger
    mblocks."""
    blocking = op.blocking
    for r in range(1, blocking.grid_size[0] + 1):
        for c in range(1, blocking.grid_size[1] + 1):
            if blocking.grid_size[0] % r == 0 and blocking.grid_size[1] % c == 0 and r * c < blocking.cells:
                m = blocking.mblock[0] * blocking.grid_size[0] // r
                n = blocking.mblock[1] * blocking.grid_size[1] // c
                yield _block_edits(op, (r, c), (m, n), blocking.ublock)


MOVE: Final = Move(
    "cores", "grid_size, grid_loc, mblock, ublock",
    "an op that sets the pace and is cut by its blocks alone, where cores are free or can be made so",
    lossy=False, proposals=_propose_cores,
)  # fmt: skip


def _propose_rows(situation: Situation) -> Iterator[Proposal]:
    """Propose more rows of cores, perhaps with fewer columns, for an identity matmul that limits the epoch and whose
    sparse tiles and encoding the host fills, as the host must encode them for the new rows."""
    op = situation.op
    cycles_before = situation.op_cycles
    if op is None or cycles_before is None or not _is_plain_identity(op):
        return
    queues = _encoding_queues(situation, op)
    if queues is None:
        return
    candidates: list[tuple[float, int, tuple[Edit, ...]]] = []
    for edits in _row_cuts(situation, op):
        grid = new_grid(edits)
        cycles_after = situation.cycles(apply_edits(situation.variant.netlist, edits).ops[op.name])
        if cycles_after is not None and cycles_after < cycles_before:
            queue_edits = _row_queue_edits(situation, queues, grid[0])
            candidates.append((cycles_after, grid[0] * grid[1], (*edits, *queue_edits)))
    for cycles_after, count, edits in sorted(candidates, key=lambda candidate: candidate[:2]):
        room = make_room(situation, op, edits, cycles_before)
        if room is None:
            continue
        others, words = room
        rows = new_grid(edits)[0]
        sentence = f"{op.name} on {plural(count, 'core')}, {plural(rows, 'row')}, instead of {op.blocking.cells}{words}"
        yield Proposal(
            "rows",
            op.name,
            sentence,
            merge_edits((*edits, *others)),
            gain=(cycles_before - cycles_after) / max(count - op.blocking.cells, 1),
            host=f"encodes {' and '.join(queue.name for queue in queues)} for {plural(rows, 'row')} of cores",
        )


def _is_plain_identity(op: Op) -> bool:
    """Return whether an op is an identity matmul on a rectangle of worker cores that is not transposed."""
    return op.attributes.identity and len(op.grid_loc) == 2 and not op.grid_transpose


def _row_cuts(situation: Situation, op: Op) -> Iterator[tuple[Edit, ...]]:
    """Yield the edits that cut an identity matmul into more rows of cores; also with fewer columns, to stay within the
    cores there are."""
    for columns in ((), *merged_columns(op)):
        base = apply_edits(situation.variant.netlist, columns).ops[op.name]
        rows = base.blocking.grid_size[0]
        mblock = base.blocking.mblock
        for times in range(2, mblock[0] + 1):
            if mblock[0] % times or rows * times > _MOST:
                continue
            row_edits = (
                Edit("op", op.name, ("grid_size",), (rows * times, base.blocking.grid_size[1])),
                Edit("op", op.name, ("mblock",), (mblock[0] // times, mblock[1])),
            )
            yield merge_edits((*columns, *row_edits))


def _encoding_queues(situation: Situation, op: Op) -> tuple[Queue, Queue] | None:
    """Return the queues of the sparse tiles and of their encoding, if the host fills them for this op alone, they may
    be moved, and they have as many rows of buffers as the op has rows of cores; else None."""
    netlist = situation.variant.netlist
    if len(op.inputs) == 3:
        queues_read = [netlist.queues.get(op.inputs[operand]) for operand in (0, 2)]
    else:
        queues_read = []
    readers = list(chain.from_iterable(other.inputs for other in netlist.ops.values()))
    queues = [
        queue
        for queue in queues_read
        if queue is not None
        and queue.host_fed
        and readers.count(queue.name) == 1
        and may_move(situation.variant, queue)
        and queue.blocking.grid_size[0] == op.blocking.grid_size[0]
    ]
    if len(queues) == 2:
        return (queues[0], queues[1])
    return None


def _row_queue_edits(situation: Situation, queues: tuple[Queue, Queue], rows: int) -> Iterator[Edit]:
    """Yield edits that give the queues as many rows of buffers as the op has rows of cores. Each buffer stays as large
    as before, since one row may need all of it."""
    count = situation.evaluator.chip.dram_channels
    room = Channels(situation.variant, queues[0].target_device, count)
    for queue in queues:
        columns = queue.blocking.grid_size[1]
        buffers = list(queue.buffers)
        while len(buffers) < rows * columns:
            buffers.append(room.place(queue, len(buffers) % count))
        yield Edit("queue", queue.name, ("grid_size",), (rows, columns))
        yield Edit("queue", queue.name, ("dram",), tuple(buffers))


MORE_ROWS: Final = Move(
    "rows", "grid_size, mblock of an identity matmul and its queues",
    "an identity matmul that sets the pace, whose sparse tiles and encoding the host fills",
    lossy=False, proposals=_propose_rows,
)  # fmt: skip

SPLITTING: Final = (MOVE.name, MORE_ROWS.name)
"""The moves that give an op more cores."""
