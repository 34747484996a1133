"""The resources of each core that net2pipe counts while it lays pipes over links, and those that are left."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from buda_emu.netlist.model import Queue
from buda_emu.performance.routing.pipes.buffers import Buffers
from buda_emu.performance.routing.pipes.core_use import (
    DRAM_INPUTS,
    DRAM_OUTPUTS,
    MULTICASTS,
    CoreUse,
    Counter,
)
from buda_emu.performance.routing.pipes.epoch import Epoch
from buda_emu.performance.routing.pipes.ethernet import L1_BYTES, Core, arrived_bytes, gathered_bytes, sends_from
from buda_emu.performance.routing.pipes.granularity import Granularity, base_of
from buda_emu.performance.routing.pipes.make_pipes import Draft
from buda_emu.performance.routing.pipes.model import Buffer
from buda_emu.performance.routing.pipes.ops.general import is_ethernet, shares_output
from buda_emu.spec.archs import EXTRA_STREAMS, GATHER_STREAMS
from buda_emu.spec.devices import device
from buda_emu.spec.formats import tile_bytes

TRANSFERS: Final = 7
"""The most streams of an Ethernet core that transfer between chips."""
RELAYS: Final = 31
"""The most relays of a core."""
TILE_HEADERS: Final = 32 << 10
"""Bytes of headers that each size of tiles on a core takes, except for the first size."""


@dataclass(frozen=True, slots=True)
class PipeNeeds:
    """The needs of a pipe on the core that carries it out. `spread` is the number of streams among which its gather is
    spread; `held` is the bytes of its inputs that it holds beside the buffers that it fills."""

    from_dram: bool = False
    to_dram: bool = False
    gathers: bool = False
    multicasts: bool = False
    spread: int = 0
    held: int = 0


@dataclass(slots=True)
class CoreBudget:
    """The resources of one core that are taken: `use` as pipes count it, `bytes` of L1 of at most `most_bytes`, the
    `sizes` of its tiles in bytes, and the numbers of relays, of all buffers, and of transfers between chips."""

    most_bytes: int
    use: CoreUse = field(default_factory=CoreUse)
    bytes: int = 0
    sizes: set[int] = field(default_factory=set[int])
    relays: int = 0
    buffers: int = 0
    transfers: int = 0
    has_op: bool = False

    @property
    def free_bytes(self) -> int:
        """Return the free bytes of L1."""
        return self.most_bytes - self.bytes

    def takes(self, needs: PipeNeeds, wide: int, relay: int = -1) -> bool:
        """Return whether a pipe with these needs fits on this core. `wide` is how many of a core's pipes may spread
        their gathers over several streams; `relay` is the bytes of a relay that the pipe needs besides, -1 for none."""
        use = self.use
        spread = needs.spread
        if spread > 1 and use.busy_pipes >= wide:
            spread = 1
        held_bytes = 0
        if needs.gathers or relay >= 0:
            held_bytes = needs.held
        if needs.multicasts and (use.multicasts >= MULTICASTS or use.extra >= len(EXTRA_STREAMS)):
            return False
        return (
            use.dram_outputs + needs.to_dram <= DRAM_OUTPUTS
            and use.dram_inputs + needs.from_dram <= DRAM_INPUTS
            and self.bytes + held_bytes + max(relay, 0) <= self.most_bytes
            and use.extra + spread + (relay >= 0) <= len(EXTRA_STREAMS)
        )

    def takes_relay(self, tile_bytes: int, multicasts: int, outputs: int, inputs: int, stored: int) -> bool:
        """Return whether there is room for a relay of one tile of this size. `outputs` pipes read it, of which
        `multicasts` multicast and `stored` write to DRAM; `inputs` is 1 if it is filled from DRAM, else 0."""
        use = self.use
        fits = use.multicasts + multicasts <= MULTICASTS and use.extra + multicasts <= len(EXTRA_STREAMS)
        return (
            self.bytes + tile_bytes + self._added_headers(tile_bytes) <= self.most_bytes
            and self.relays < RELAYS
            and (not multicasts or fits)
            and (not inputs or use.dram_inputs < DRAM_INPUTS)
            and use.dram_outputs + stored <= DRAM_OUTPUTS
            and use.extra + max(1, outputs) <= len(EXTRA_STREAMS)
        )

    def takes_transfer(self, tile_bytes: int, *, from_dram: bool, to_dram: bool) -> bool:
        """Return whether one more relay of one tile can send or receive between chips on this Ethernet core.
        `from_dram` and `to_dram` tell whether the relay is filled from DRAM, or emptied into it."""
        return self.takes_relay(tile_bytes, 0, 1, from_dram, to_dram) and self.can_transfer()

    def can_transfer(self) -> bool:
        """Return whether a stream for a transfer between chips is left."""
        return self.transfers + self.use.multicasts < TRANSFERS

    def can_read(self, from_dram: bool) -> bool:
        """Return whether one more pipe may read from DRAM; True if it does not."""
        return not from_dram or self.use.dram_inputs < DRAM_INPUTS

    def can_write(self, to_dram: bool) -> bool:
        """Return whether one more pipe may write to DRAM; True if it does not and the core is within its limit."""
        return self.use.dram_outputs + to_dram <= DRAM_OUTPUTS

    def put(self, tile_bytes: int, tiles: int = 1) -> int:
        """Take the room of a relay of `tiles` tiles, whether there is enough or not, and return its number on the core,
        from 0."""
        self.bytes += tiles * tile_bytes + self._added_headers(tile_bytes)
        self.sizes.add(tile_bytes)
        self.relays += 1
        self.buffers += 1
        return self.relays - 1

    def _added_headers(self, tile_bytes: int) -> int:
        """Return the bytes of tile headers that tiles of this size add to a core: 0 for a size that it has already, and
        for its first."""
        if self.sizes and tile_bytes not in self.sizes:
            return TILE_HEADERS
        return 0


def choose_core(budgets: Collection[tuple[Core, CoreBudget]]) -> Core | None:
    """Return the core for a relay that may stand anywhere, of those in `budgets`, which have room for it: the first
    without an op whose extra streams are all free, else the first without an op, else the first; None if there are
    none."""
    idle = [core for core, budget in budgets if not budget.has_op]
    free = [core for core, budget in budgets if not budget.has_op and budget.use.extra <= 0]
    return next(iter((*free, *idle, *(core for core, _ in budgets))), None)


WORKER_BYTES: Final = 1499136 - (204 << 10)
"""Bytes of L1 for data buffers, on a worker core of wormhole_b0."""
HELD_TILES: Final = 4
"""Tiles that a multicast holds on its core."""
READ_BYTES: Final = 64 << 10
"""The most bytes of a queue that a pipe into a relay holds, in whole pieces, unless a single piece is larger."""
MOST_DOUBLED: Final = 100 << 10
"""The most bytes that a pipe from DRAM holds if it holds everything twice; where that would be more, it does not."""


class Account:
    """The budgets of all cores, and the connections of buffers and pipes, while pipes are laid over links. `readers`
    has the ids of the pipes that read each buffer."""

    def __init__(
        self, epoch: Epoch, buffers: Buffers, cuts: Mapping[str, Granularity], counter: Counter, drafts: Iterable[Draft]
    ) -> None:
        self.epoch = epoch
        self.buffers = buffers
        self.cuts = cuts
        self.counter = counter
        self.grid = device(epoch.netlist.arch_name).grid
        self.budgets: dict[Core, CoreBudget] = {}
        self.cores: dict[int, Core] = {}
        """The core of each buffer in L1 that is on a known one."""
        self.chips: dict[int, int] = {}
        self.readers: dict[int, set[int]] = {}
        self.tiles: dict[int, int] = {}
        """Bytes of a tile of each relay."""
        self._queues: dict[int, Queue] = {
            queue_buffer.id: queue_buffer.queue for queue_buffer in buffers.queues.made if queue_buffer.core is None
        }
        self._count_buffers()
        for draft in drafts:
            self.connect(draft)
            if not draft.link:
                for core in self.cores_of(draft):
                    self.budget(core).bytes += self.held_bytes(draft)

    def budget(self, core: Core) -> CoreBudget:
        """Return the budget of a core. It is made at the first call; a worker core's begins with the streams and DRAM
        accesses that the counter has counted there."""
        budget = self.budgets.get(core)
        if budget is None:
            worker = core.channel < 0
            if worker:
                use = self.counter.at((core.chip, *core.place))
            else:
                use = CoreUse()
            budget = self.budgets[core] = CoreBudget(WORKER_BYTES if worker else L1_BYTES, use)
            if worker:
                budget.sizes = set(self._tile_sizes)
                budget.bytes = max(0, len(self._tile_sizes) - 1) * TILE_HEADERS
        return budget

    def workers(self, chip: int) -> Iterator[tuple[Core, CoreBudget]]:
        """Yield all worker cores of a chip, row by row."""
        for row in range(self.grid[0]):
            for column in range(self.grid[1]):
                core = Core(chip, row, column)
                yield core, self.budget(core)

    # Buffers

    def _count_buffers(self) -> None:
        """Count the buffers of ops and of prologues on their cores, and note the chip of every queue's buffer."""
        self._tile_sizes = self._sizes_of_tiles()
        results = self._count_op_buffers()
        for op in self.epoch.ops.values():
            if is_ethernet(op):
                self._count_copy_relays(op.name)
                continue
            for id in self.buffers.ops.outputs[op.name]:
                core = self._set_core(id, Core(op.target_device, *self.buffers.core[id]))
                buffer_sizes = results.get(core, [0])
                self.budget(core).bytes += max(buffer_sizes) if shares_output(op) else sum(buffer_sizes)
        for (name, reader), ids in self.buffers.queues.forks.items():
            if reader in self.epoch.ops and not self.buffers.edges[reader].as_read.get(name, False):
                tiles, size = self.buffers.queues.slot(self.epoch.netlist.queues[name])
                for id in ids:
                    core = self._set_core(id, Core(self.epoch.ops[reader].target_device, *self.buffers.core[id]))
                    self.budget(core).bytes += tiles * size
        for queue_buffer in self.buffers.queues.made:
            self.chips.setdefault(queue_buffer.id, queue_buffer.queue.target_device)

    def _sizes_of_tiles(self) -> set[int]:
        """Return the different sizes of tiles in the epoch, in bytes; an empty set if there is only one, which needs no
        further headers."""
        alignment = self.epoch.netlist.arch.alignment
        sizes: set[int] = set()
        for op in self.epoch.ops.values():
            sizes.update(tile_bytes(df, 32, 32, alignment, True) for df in op.in_df)
            sizes.add(tile_bytes(op.intermed_df, 32, 32, alignment, True))
            sizes.add(tile_bytes(op.out_df, 32, 32, alignment, not op.untilize_output))
        if len(sizes) > 1:
            return sizes
        return set()

    def _count_op_buffers(self) -> dict[Core, list[int]]:
        """Count the buffers of ops on their cores: operands with their bytes, results not yet; return the bytes of each
        result and intermediate buffer by worker core. Copies that arrive on an Ethernet core count with
        `arrived_bytes`."""
        results = dict[Core, list[int]]()
        arrived = dict[Core, list[int]]()
        for id, buffer in self.buffers.ops.made.items():
            core = self._set_core(id, Core(buffer.chip, buffer.row, buffer.column, buffer.ethernet_chan))
            budget = self.budget(core)
            is_operand = buffer.buffer_type == "unpacker"
            budget.buffers += 1
            budget.has_op |= is_operand
            size = buffer.size_tiles * max(1, buffer.replicate) * buffer.tile_size
            if core.channel >= 0:
                arrived.setdefault(core, []).extend([size] if is_operand else ())
            elif is_operand:
                budget.bytes += size
            else:
                results.setdefault(core, []).append(size)
        for core, sizes in arrived.items():
            self.budget(core).bytes += arrived_bytes(sizes)
        return results

    def _count_copy_relays(self, name: str) -> None:
        """Count the relays of the copy between chips `name` on the Ethernet cores that send it."""
        op = self.epoch.ops[name]
        for cell, id in enumerate(self.buffers.ops.relays[name]):
            end = sends_from(self.epoch, op, cell)
            budget = self.budget(self._set_core(id, Core(end.chip, end.row, end.column, end.channel)))
            self.tiles[id] = self.buffers.ops.operands[name][0].tile_size
            budget.bytes += self.tiles[id]
            budget.relays += 1
            budget.buffers += 1

    def _set_core(self, id: int, core: Core) -> Core:
        """Note the core, and so the chip, of a buffer, and return the core."""
        self.cores[id] = core
        self.chips[id] = core.chip
        return core

    def add_relay(self, id: int, chip: int, tile_bytes: int) -> None:
        """Note the chip and the bytes of a tile of a relay that is on no core yet."""
        self.chips[id] = chip
        self.tiles[id] = tile_bytes

    def place_relay(self, id: int, core: Core, tiles: int) -> int:
        """Put a relay of some tiles on a core, and return its number there. On a worker core each of its readers takes
        an extra stream."""
        self._set_core(id, core)
        number = self.budget(core).put(self.tiles[id], tiles)
        if core.channel < 0:
            self.budget(core).use.extra += len(self.readers.get(id, ()))
        return number

    def queue_of(self, id: int) -> Queue | None:
        """Return the queue of a buffer in DRAM that is read or written while the epoch runs, else None."""
        return self._queues.get(base_of(id))

    # Pipes

    def connect(self, draft: Draft) -> None:
        """Add a pipe to the readers of its inputs, and count its transfer between chips, if it is one."""
        for id in draft.inputs:
            self.readers.setdefault(base_of(id), set()).add(draft.id)
        self._count_transfers(draft, 1)

    def disconnect(self, draft: Draft) -> None:
        """Undo `connect` of a pipe, and `carry` of each of its turns."""
        for turn in range(len(draft.cores)):
            self.carry(draft, turn, -1)
        self._count_transfers(draft, -1)
        for id in {base_of(buffer_id) for buffer_id in draft.inputs}:
            self.readers[id].discard(draft.id)

    def carry(self, draft: Draft, turn: int = 0, sign: int = 1) -> None:
        """Count the needs of one turn of a pipe on its core, or, with `sign` -1, take them from the count. A turn is
        one set of outputs of those that the pipe serves one after the other."""
        core = self.cores_of(draft)[turn]
        needs = self.needs_of(draft)
        self._count_needs(core, (draft.id, draft.outputs[turn]), needs, len(draft.inputs), sign)

    def _count_needs(
        self, core: Core, segment: tuple[int, tuple[int, ...]], needs: PipeNeeds, inputs: int, sign: int
    ) -> None:
        """Count, or with `sign` -1 take back, the needs of a turn of a pipe on a core. `segment` is (the pipe's id, the
        turn's outputs); `inputs` is the number of the pipe's inputs."""
        budget = self.budget(core)
        use = budget.use
        use.dram_inputs += sign * needs.from_dram
        use.dram_outputs += sign * needs.to_dram
        budget.bytes += sign * needs.held
        if needs.gathers or needs.multicasts:
            if sign > 0:
                use.add(segment, inputs, gathers=needs.gathers, multicasts=needs.multicasts, wide=self.counter.wide)
            else:
                use.remove(segment, wide=self.counter.wide)
        if needs.from_dram and (not needs.held if sign > 0 else not needs.gathers):
            use.extra += sign

    def _count_transfers(self, draft: Draft, sign: int) -> None:
        """Count, or with `sign` -1 take back, the transfers of a pipe between chips at its ends on Ethernet cores;
        nothing for a pipe within a chip."""
        if not self.crosses(draft):
            return
        ends = {base_of(buffer_id) for buffer_id in chain(draft.inputs, *draft.outputs)}
        for core in {self.cores[id] for id in ends if id in self.cores and self.cores[id].channel >= 0}:
            self.budget(core).transfers += sign

    def crosses(self, draft: Draft) -> bool:
        """Return whether a pipe sends tiles to a chip on which none of its inputs lie."""
        source_chips = {self.chip_of(id) for id in draft.inputs}
        return any(self.chip_of(id) not in source_chips for id in chain.from_iterable(draft.outputs))

    def chip_of(self, id: int) -> int:
        """Return the chip of a buffer, given its id or that of a piece. Raises KeyError for an unknown one."""
        base = base_of(id)
        chip = self.chips.get(base)
        if chip is None:
            return self.buffers.padding.made[base].chip
        return chip

    def cores_of(self, draft: Draft) -> list[Core]:
        """Return the core that carries out each turn of a pipe."""
        if draft.link:
            return [self.cores[draft.outputs[0][0]]]
        return [Core(*place, draft.channel) for place in draft.cores]

    def needs_of(self, draft: Draft) -> PipeNeeds:
        """Return the needs of a pipe on each of its cores; none for a pipe that is a transfer over a link."""
        if draft.link:
            return PipeNeeds()
        to_dram = self.queue_of(draft.outputs[0][0]) is not None
        is_multicast = len(draft.outputs[0]) > 1
        if draft.from_relay:
            if is_multicast:
                held_bytes = HELD_TILES * self.tile_of(draft.inputs[0])
            else:
                held_bytes = 0
            return PipeNeeds(to_dram=to_dram, multicasts=is_multicast, held=held_bytes)
        from_dram = self.queue_of(draft.inputs[0]) is not None
        gathers = self.counter.takes_streams(draft)
        spread = draft.scattered and not self.counter.from_one_core(draft)
        return PipeNeeds(
            from_dram=from_dram,
            to_dram=to_dram,
            gathers=gathers,
            multicasts=is_multicast or spread,
            spread=min(len({base_of(buffer_id) for buffer_id in draft.inputs}), GATHER_STREAMS) if gathers else 0,
            held=self.held_bytes(draft),
        )

    def held_bytes(self, draft: Draft) -> int:
        """Return the bytes of L1 that a pipe holds of its inputs on its core, beside the buffers that it fills; 0 for a
        pipe of several turns, from a prologue, or over a link."""
        in_prologue = draft.source in self.epoch.prologue
        if len(draft.outputs) > 1 or in_prologue or draft.link:
            return 0
        tile = self.tile_of(draft.inputs[0])
        from_dram = self.queue_of(draft.inputs[0]) is not None
        if from_dram and draft.to_relay:
            piece = self.cuts[draft.source].tiles * tile
            total = piece * max(1, READ_BYTES // piece)
        elif self._reads_one_core(draft):
            total = 0
        else:
            total = gathered_bytes(len(draft.inputs), 2, 1, tile, from_dram=False)
        if len(draft.outputs[0]) > 1:
            total += HELD_TILES * tile
        if from_dram and total * 2 <= MOST_DOUBLED:
            return total * 2
        return total

    def _reads_one_core(self, draft: Draft) -> bool:
        """Return whether a pipe has a single input, or those of its inputs that lie in L1 lie on one core."""
        places = {self.cores[base_of(buffer_id)] for buffer_id in draft.inputs if base_of(buffer_id) in self.cores}
        return len(draft.inputs) == 1 or len(places) == 1

    def tile_of(self, id: int) -> int:
        """Return the bytes of a tile of a buffer (of an op, of a queue in DRAM, or of a relay), given its id or that of
        a piece. Raises KeyError for an unknown one."""
        base = base_of(id)
        buffer: Buffer | None = self.buffers.ops.made.get(base)
        if buffer is not None:
            return buffer.tile_size
        queue = self.queue_of(base)
        if queue is not None:
            return self.buffers.queues.slot(queue)[1]
        return self.tiles[base]
