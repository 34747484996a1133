"""Cores, epochs and addresses: first fit in order (FRONTEND 5)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from buda_emu.compiler.lower.tiles import State, TileGraph, TileOp, Use
from buda_emu.compiler.place.blocks import Blocks, choose_blocks
from buda_emu.compiler.target import Target
from buda_emu.errors import UnsupportedError
from buda_emu.spec.formats import tile_bytes

DRAM_BASE = 0x10000000
"""Safely above what the backend keeps (NETLIST V153)."""
HOST_WINDOW = 0x20000000


@dataclass(frozen=True, slots=True)
class Placed:
    """An op with its division and its place."""

    op: TileOp
    blocks: Blocks
    epoch: int
    at: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of the netlist. `input`: an op, or HOST; `role`: input, output, constant, state, fork or between
    (epochs). `blocks` as those of an op; `addresses` one [channel, address] for each of the grid, a host address
    alone."""

    name: str
    input: str
    role: str
    blocks: Blocks
    df: str
    type: str
    entries: int
    loc: str
    addresses: tuple[tuple[int, int], ...]
    layout: str = "tilized"
    alias: str = ""


@dataclass(slots=True)
class Placement:
    """A placed graph. `reads`: which queue an op reads for each of its operands' sources, by (epoch, source)."""

    target: Target
    tiles: TileGraph
    ops: dict[str, Placed] = field(default_factory=dict[str, Placed])
    queues: dict[str, Queue] = field(default_factory=dict[str, Queue])
    between: dict[str, str] = field(default_factory=dict[str, str])
    epochs: int = 0

    @property
    def programs(self) -> dict[str, list[int]]:
        """The epochs of each program, in order."""
        found: dict[str, list[int]] = {}
        for placed in self.ops.values():
            epochs = found.setdefault(placed.op.program, [])
            if placed.epoch not in epochs:
                epochs.append(placed.epoch)
        return found

    def read_by(self, epoch: int) -> list[str]:
        """Names of the queues that the ops of an epoch read."""
        mine = [placed for placed in self.ops.values() if placed.epoch == epoch]
        names = dict.fromkeys(self.source(use.source, epoch) for placed in mine for use in placed.op.uses)
        return [name for name in names if name in self.queues]

    def source(self, name: str, epoch: int) -> str:
        """What an op of an epoch reads for a tensor: the op itself in its own epoch, the queue between in another."""
        placed = self.ops.get(name)
        return name if placed is None or placed.epoch == epoch else self.between[name]


def place(tiles: TileGraph, target: Target, *, entries: int = 2) -> Placement:
    """Blocks, cores, epochs, queues and addresses of a graph."""
    found = Placement(target, tiles)
    rows, columns = target.arch.grid
    room = Room(rows, columns)
    epoch, program = 0, ""
    for op in tiles.ops.values():
        if op.program != program:  # programs share no epoch (FRONTEND 5)
            if program:
                epoch, room = epoch + 1, Room(rows, columns)
            program = op.program
        blocks = choose_blocks(target, op)
        if op.attrs.get("identity") and blocks.grid[1] > 1:
            # Every column of cores has the same tiles and words (OPS 6.2).
            for number in (0, 2):
                op.uses[number] = Use(op.uses[number].source, (("broadcast", "c", blocks.grid[1]),))
        at = room.take(blocks.grid)
        if at is None:
            epoch, room = epoch + 1, Room(rows, columns)
            at = room.take(blocks.grid)
            if at is None:
                raise UnsupportedError(f"{op.name}: {blocks.grid} cores, {target.arch.name} has {rows}x{columns}")
        found.ops[op.name] = Placed(op, blocks, epoch, at)
    found.epochs = epoch + 1
    _queues(found, entries)
    return found


class Room:
    """The cores of one epoch."""

    def __init__(self, rows: int, columns: int) -> None:
        self._free = [[True] * columns for _ in range(rows)]

    def take(self, grid: tuple[int, int]) -> tuple[int, int] | None:
        """The first free rectangle, row by row."""
        height, width = grid
        rows, columns = len(self._free), len(self._free[0])
        for r in range(rows - height + 1):
            for c in range(columns - width + 1):
                if all(all(row[c : c + width]) for row in self._free[r : r + height]):
                    for row in self._free[r : r + height]:
                        row[c : c + width] = [False] * width
                    return r, c
        return None


def input_blocks(
    shape: tuple[int, int, int], grid: tuple[int, int] = (1, 1), ublock: tuple[int, int] = (1, 1)
) -> Blocks:
    """A queue that the host fills."""
    t, r, c = shape
    return Blocks(grid, t, (r // grid[0] // ublock[0], c // grid[1] // ublock[1]), ublock)


def _queues(found: Placement, entries: int) -> None:
    target, tiles = found.target, found.tiles
    memory = Memory(target)
    for queue in tiles.inputs.values():
        df = "RawUInt32" if queue.indices else target.activation_df
        memory.add(
            found, Queue(queue.name, "HOST", "input", input_blocks(queue.shape), df, "queue", entries, "dram", ())
        )
    for item in tiles.constants.values():
        df, layout, blocks = _constant(found, item.name)
        kind = "ram" if item.kind in ("value", "picker") else "queue"
        memory.add(found, Queue(item.name, "HOST", "constant", blocks, df, kind, 1, "dram", (), layout))
    for state in tiles.states.values():
        written = memory.add(found, _state(found, state))
        if state.slots > 1:  # all slots as one entry (NETLIST 1.10)
            blocks = replace(written.blocks, t=written.blocks.t * state.slots)
            whole = replace(written, name=state.queue, input="HOST", blocks=blocks, entries=1, alias=written.name)
            found.queues[whole.name] = whole
    for placed in found.ops.values():
        for use in placed.op.uses:
            producer = found.ops.get(use.source)
            if producer is not None and producer.epoch != placed.epoch and use.source not in found.between:
                name = f"e2e_{use.source}"
                found.between[use.source] = name
                df = target.of(producer.op.precision).activation_df
                memory.add(found, Queue(name, use.source, "between", producer.blocks, df, "queue", entries, "dram", ()))
    for output in tiles.outputs.values():
        placed = found.ops[output.op]
        df, blocks = target.of(placed.op.precision).output_df, placed.blocks
        whole = input_blocks(tiles.ops[output.op].shape, ublock=blocks.ublock)
        memory.add(found, Queue(output.name, output.op, "output", whole, df, "queue", entries, "host", ()))


def _state(found: Placement, state: State) -> Queue:
    """A ram in the blocks of the op that writes it (NETLIST V076); of the host where none does."""
    store = found.tiles.stores.get(state.queue)
    blocks = found.ops[store.op].blocks if store else input_blocks(state.shape)
    source = store.op if store else "HOST"
    return Queue(state.written, source, "state", blocks, found.target.activation_df, "ram", state.slots, "dram", ())


def _constant(found: Placement, name: str) -> tuple[str, str, Blocks]:
    """Format, layout and blocks of a constant's queue, as its first reader has it (FRONTEND 5)."""
    target, item = found.target, found.tiles.constants[name]
    reader = next(placed for placed in found.ops.values() if any(use.source == name for use in placed.op.uses))
    target = target.of(reader.op.precision)
    t, r, c = item.shape
    if item.kind == "words":
        return "RawUInt32", "tilized", input_blocks(item.shape, (reader.blocks.grid[0], 1))
    if item.kind == "table":
        return target.table_df, "flat", Blocks((1, 1), t, (1, 1), (r, c))
    identity = reader.op.attrs.get("identity") and reader.op.uses[0].source == name
    df = target.picker_df if item.kind == "picker" else target.activation_df
    if identity:
        return df, "tilized", input_blocks(item.shape, (reader.blocks.grid[0], 1))
    return df, "tilized", input_blocks(item.shape)


class Memory:
    """Addresses: the DRAM channel with the fewest bytes takes the next buffer; outputs go to the host."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._next = [DRAM_BASE] * target.arch.dram_channels
        self._host = 0

    def add(self, found: Placement, queue: Queue) -> Queue:
        """Give a queue its addresses. Raises UnsupportedError when memory is full."""
        align = self._target.arch.alignment
        blocks = queue.blocks
        tiles = blocks.t * prod(blocks.mblock) * prod(blocks.ublock)
        tilized = queue.layout == "tilized" and queue.role != "output"
        size = tiles * tile_bytes(queue.df, 32, 32, align, header=tilized) * queue.entries + align
        size = -(-size // align) * align
        places: list[tuple[int, int]] = []
        for _ in range(prod(blocks.grid)):
            if queue.loc == "host":
                places.append((0, self._host))
                self._host += size
                if self._host > HOST_WINDOW:
                    raise UnsupportedError(f"compile: outputs of more than {HOST_WINDOW >> 20} MiB")
                continue
            channel = min(range(len(self._next)), key=lambda number: (self._next[number], number))
            if self._next[channel] + size > self._target.arch.dram_channel_bytes:
                raise UnsupportedError(f"compile: {queue.name}: the DRAM of one {self._target.arch.name} is full")
            places.append((channel, self._next[channel]))
            self._next[channel] += size
        made = found.queues[queue.name] = replace(queue, addresses=tuple(places))
        return made


__all__: Sequence[str] = ["Placed", "Placement", "Queue", "Room", "place"]
