"""The count that net2pipe keeps of every core while it lays pipes over links, and what cores have left."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from buda_emu.netlist.model import Queue
from buda_emu.performance.routing.pipes.buffers import Buffers
from buda_emu.performance.routing.pipes.core_use import (
    DRAM_INPUTS,
    DRAM_OUTPUTS,
    EXTRA_STREAMS,
    MULTICASTS,
    CoreUse,
    Counter,
)
from buda_emu.performance.routing.pipes.epoch import Epoch
from buda_emu.performance.routing.pipes.ethernet import L1_BYTES, Core, arrived_bytes, gathered_bytes, sends_from
from buda_emu.performance.routing.pipes.granularity import Cut, base_of
from buda_emu.performance.routing.pipes.make_pipes import Draft
from buda_emu.performance.routing.pipes.model import Buffer
from buda_emu.performance.routing.pipes.ops.general import is_ethernet, shares_output
from buda_emu.spec.devices import device
from buda_emu.spec.formats import tile_bytes

TRANSFERS: Final = 7
"""Streams of an Ethernet core that transfer between chips."""
RELAYS: Final = 31
"""Relays of a core, at most."""
TILE_HEADERS: Final = 32 << 10
"""Bytes for each size of tiles on a core but the first."""
GATHER_STREAMS: Final = 3


@dataclass(frozen=True, slots=True)
class PipeNeeds:
    """What a pipe asks of the core that carries it out. `spread`: streams that its gather takes; `held`: bytes of its
    inputs beside buffers."""

    from_dram: bool = False
    to_dram: bool = False
    gathers: bool = False
    multicasts: bool = False
    spread: int = 0
    held: int = 0


@dataclass(slots=True)
class CoreBudget:
    """One core: `use` as pipes count it, bytes of L1, sizes of tiles, relays, all buffers, transfers between chips."""

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
        """Of L1."""
        return self.most_bytes - self.bytes

    def takes(self, asked: PipeNeeds, wide: int, relay: int = -1) -> bool:
        """Whether a pipe can be carried out here, beside its relay of so many bytes, if there is one."""
        use = self.use
        spread = 1 if asked.spread > 1 and use.busy_pipes >= wide else asked.spread
        held = asked.held if asked.gathers or relay >= 0 else 0
        return (
            use.dram_outputs + asked.to_dram <= DRAM_OUTPUTS
            and use.dram_inputs + asked.from_dram <= DRAM_INPUTS
            and self.bytes + held + max(relay, 0) <= self.most_bytes
            and (not asked.multicasts or (use.multicasts < MULTICASTS and use.extra < EXTRA_STREAMS))
            and use.extra + spread + (relay >= 0) <= EXTRA_STREAMS
        )

    def takes_relay(self, tile_bytes: int, multicasts: int, outputs: int, inputs: int, stored: int) -> bool:
        """Whether a relay of one tile has room. `multicasts`: of the pipes that read it, of which there are `outputs`;
        `inputs`, `stored`: whether it is filled from DRAM, and how many pipes bring it there."""
        use = self.use
        fits = use.multicasts + multicasts <= MULTICASTS and use.extra + multicasts <= EXTRA_STREAMS
        return (
            self.bytes + tile_bytes + self._headers(tile_bytes) <= self.most_bytes
            and self.relays < RELAYS
            and (not multicasts or fits)
            and (not inputs or use.dram_inputs < DRAM_INPUTS)
            and use.dram_outputs + stored <= DRAM_OUTPUTS
            and use.extra + max(1, outputs) <= EXTRA_STREAMS
        )

    def takes_transfer(self, tile_bytes: int, *, from_dram: bool, to_dram: bool) -> bool:
        """Whether one more relay can send or receive here, of an Ethernet core."""
        return self.takes_relay(tile_bytes, 0, 1, from_dram, to_dram) and self.can_transfer()

    def can_transfer(self) -> bool:
        """Whether a stream for it is left."""
        return self.transfers + self.use.multicasts < TRANSFERS

    def can_read(self, from_dram: bool) -> bool:
        """Whether one more pipe may read from DRAM, if it does."""
        return not from_dram or self.use.dram_inputs < DRAM_INPUTS

    def can_write(self, to_dram: bool) -> bool:
        """Whether one more may write there."""
        return self.use.dram_outputs + to_dram <= DRAM_OUTPUTS

    def put(self, tile_bytes: int, tiles: int = 1) -> int:
        """A relay; its number on the core."""
        self.bytes += tiles * tile_bytes + self._headers(tile_bytes)
        self.sizes.add(tile_bytes)
        self.relays += 1
        self.buffers += 1
        return self.relays - 1

    def _headers(self, tile_bytes: int) -> int:
        return TILE_HEADERS if self.sizes and tile_bytes not in self.sizes else 0


def worth(budgets: Collection[tuple[Core, CoreBudget]]) -> Core | None:
    """Where a relay goes that nothing else binds: to a core without op whose extra streams are all free, else to one
    without op, else to any. `budgets`: of those that take it, in order."""
    idle = [core for core, budget in budgets if not budget.has_op]
    free = [core for core, budget in budgets if not budget.has_op and budget.use.extra <= 0]
    return next(iter((*free, *idle, *(core for core, _ in budgets))), None)


WORKER_BYTES: Final = 1499136 - (204 << 10)
"""Of L1 for data buffers, of a worker core of wormhole_b0."""
HELD_TILES: Final = 4
"""Of each input of a gather, and of a multicast."""
READ_BYTES: Final = 64 << 10
"""What is held of a queue that a relay reads in pieces; twice that where it is no more than `MOST_DOUBLED`."""
MOST_DOUBLED: Final = 100 << 10


class Account:
    """`budgets` by core; `readers`: the pipes that read each buffer; `filled`: the one that fills it."""

    def __init__(
        self, epoch: Epoch, buffers: Buffers, cuts: Mapping[str, Cut], counter: Counter, drafts: Iterable[Draft]
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
        self._queues: dict[int, Queue] = {one.id: one.queue for one in buffers.queues.made if one.core is None}
        self._buffers()
        for draft in drafts:
            self.connect(draft)
            if not draft.link:
                for core in self.cores_of(draft):
                    self.budget(core).bytes += self.held(draft)

    def budget(self, core: Core) -> CoreBudget:
        """What a core has."""
        found = self.budgets.get(core)
        if found is None:
            worker = core.channel < 0
            use = self.counter.at((core.chip, *core.place)) if worker else CoreUse()
            found = self.budgets[core] = CoreBudget(WORKER_BYTES if worker else L1_BYTES, use)
            if worker:
                found.sizes = set(self._tile_sizes)
                found.bytes = max(0, len(self._tile_sizes) - 1) * TILE_HEADERS
        return found

    def workers(self, chip: int) -> Iterator[tuple[Core, CoreBudget]]:
        """All worker cores of a chip, row by row."""
        for row in range(self.grid[0]):
            for column in range(self.grid[1]):
                core = Core(chip, row, column)
                yield core, self.budget(core)

    # Buffers

    def _buffers(self) -> None:
        """Those of ops and of prologues."""
        ops = self.buffers.ops
        made = self.buffers.ops.made
        own = self.epoch.ops.values()
        sizes = {
            size
            for op in own
            for size in (
                *(tile_bytes(df, 32, 32, self.epoch.netlist.arch.alignment, True) for df in op.in_df),
                tile_bytes(op.intermed_df, 32, 32, self.epoch.netlist.arch.alignment, True),
                tile_bytes(op.out_df, 32, 32, self.epoch.netlist.arch.alignment, not op.untilize_output),
            )
        }
        self._tile_sizes = sizes if len(sizes) > 1 else set[int]()
        results = dict[Core, list[int]]()
        arrived = dict[Core, list[int]]()
        for id, buffer in made.items():
            core = self._placed(id, Core(buffer.chip, buffer.row, buffer.column, buffer.ethernet_chan))
            budget = self.budget(core)
            budget.buffers += 1
            budget.has_op |= buffer.buffer_type == "unpacker"
            size = buffer.size_tiles * max(1, buffer.replicate) * buffer.tile_size
            if core.channel >= 0:
                arrived.setdefault(core, []).extend([size] if buffer.buffer_type == "unpacker" else ())
            elif buffer.buffer_type == "unpacker":
                budget.bytes += size
            else:
                results.setdefault(core, []).append(size)
        for core, sizes in arrived.items():
            self.budget(core).bytes += arrived_bytes(sizes)
        for op in own:
            if is_ethernet(op):
                self._relays_of(op.name)
                continue
            for id in ops.outputs[op.name]:
                core = self._placed(id, Core(op.target_device, *self.buffers.core[id]))
                held = results.get(core, [0])
                self.budget(core).bytes += max(held) if shares_output(op) else sum(held)
        for (name, reader), ids in self.buffers.queues.forks.items():
            if reader in self.epoch.ops and not self.buffers.edges[reader].as_read.get(name, False):
                tiles, size = self.buffers.queues.slot(self.epoch.netlist.queues[name])
                for id in ids:
                    core = self._placed(id, Core(self.epoch.ops[reader].target_device, *self.buffers.core[id]))
                    self.budget(core).bytes += tiles * size
        for one in self.buffers.queues.made:
            self.chips.setdefault(one.id, one.queue.target_device)

    def _relays_of(self, name: str) -> None:
        op = self.epoch.ops[name]
        for cell, id in enumerate(self.buffers.ops.relays[name]):
            end = sends_from(self.epoch, op, cell)
            budget = self.budget(self._placed(id, Core(end.chip, end.row, end.column, end.channel)))
            self.tiles[id] = self.buffers.ops.operands[name][0].tile_size
            budget.bytes += self.tiles[id]
            budget.relays += 1
            budget.buffers += 1

    def _placed(self, id: int, core: Core) -> Core:
        self.cores[id], self.chips[id] = core, core.chip
        return core

    def add_relay(self, id: int, chip: int, tile_bytes: int) -> None:
        """A relay of a chip, on no core yet."""
        self.chips[id], self.tiles[id] = chip, tile_bytes

    def place_relay(self, id: int, core: Core, tiles: int) -> int:
        """Put a relay on a core; its number there."""
        self._placed(id, core)
        number = self.budget(core).put(self.tiles[id], tiles)
        if core.channel < 0:
            self.budget(core).use.extra += len(self.readers.get(id, ()))
        return number

    def queue_of(self, id: int) -> Queue | None:
        """The queue of a buffer in DRAM that is read or written while the epoch runs."""
        return self._queues.get(base_of(id))

    # Pipes

    def connect(self, draft: Draft) -> None:
        """A pipe that comes: who reads what."""
        for id in draft.inputs:
            self.readers.setdefault(base_of(id), set()).add(draft.id)
        self._transfers(draft, 1)

    def disconnect(self, draft: Draft) -> None:
        """A pipe that goes."""
        for turn in range(len(draft.cores)):
            self.carry(draft, turn, -1)
        self._transfers(draft, -1)
        for id in {base_of(one) for one in draft.inputs}:
            self.readers[id].discard(draft.id)

    def carry(self, draft: Draft, turn: int = 0, sign: int = 1) -> None:
        """Count a turn of a pipe on its core; `sign` -1: no longer."""
        core = self.cores_of(draft)[turn]
        asked = self.asked(draft)
        self._count(core, (draft.id, draft.outputs[turn]), asked, len(draft.inputs), sign)

    def _count(
        self, core: Core, segment: tuple[int, tuple[int, ...]], asked: PipeNeeds, inputs: int, sign: int
    ) -> None:
        budget = self.budget(core)
        use = budget.use
        use.dram_inputs += sign * asked.from_dram
        use.dram_outputs += sign * asked.to_dram
        budget.bytes += sign * asked.held
        if asked.gathers or asked.multicasts:
            if sign > 0:
                use.add(segment, inputs, gathers=asked.gathers, multicasts=asked.multicasts, wide=self.counter.wide)
            else:
                use.remove(segment, wide=self.counter.wide)
        if asked.from_dram and (not asked.held if sign > 0 else not asked.gathers):
            use.extra += sign

    def _transfers(self, draft: Draft, sign: int) -> None:
        """The ends of a pipe that crosses, where they are on Ethernet cores."""
        if not self.crosses(draft):
            return
        ends = {base_of(one) for one in (*draft.inputs, *(one for outputs in draft.outputs for one in outputs))}
        for core in {self.cores[id] for id in ends if id in self.cores and self.cores[id].channel >= 0}:
            self.budget(core).transfers += sign

    def crosses(self, draft: Draft) -> bool:
        """Whether a pipe brings tiles to a chip that it takes none from."""
        here = {self.chip_of(id) for id in draft.inputs}
        return any(self.chip_of(id) not in here for outputs in draft.outputs for id in outputs)

    def chip_of(self, id: int) -> int:
        """The chip on which a buffer is."""
        base = base_of(id)
        found = self.chips.get(base)
        return self.buffers.padding.made[base].chip if found is None else found

    def cores_of(self, draft: Draft) -> list[Core]:
        """Where each turn of a pipe is carried out."""
        if draft.link:
            return [self.cores[draft.outputs[0][0]]]
        return [Core(*place, draft.channel) for place in draft.cores]

    def asked(self, draft: Draft) -> PipeNeeds:
        """What a pipe asks of each of its cores."""
        if draft.link:
            return PipeNeeds()
        to_dram = self.queue_of(draft.outputs[0][0]) is not None
        many = len(draft.outputs[0]) > 1
        if draft.from_relay:
            held = HELD_TILES * self.tile_of(draft.inputs[0]) if many else 0
            return PipeNeeds(to_dram=to_dram, multicasts=many, held=held)
        from_dram = self.queue_of(draft.inputs[0]) is not None
        gathers = self.counter.takes_streams(draft)
        spread = draft.scattered and not self.counter.from_one_core(draft)
        return PipeNeeds(
            from_dram=from_dram,
            to_dram=to_dram,
            gathers=gathers,
            multicasts=many or spread,
            spread=min(len({base_of(one) for one in draft.inputs}), GATHER_STREAMS) if gathers else 0,
            held=self.held(draft),
        )

    def held(self, draft: Draft) -> int:
        """Bytes of its inputs that a pipe holds, beside the buffers that it fills."""
        kept = draft.source in self.epoch.prologue
        if len(draft.outputs) > 1 or kept or draft.link:
            return 0
        tile = self.tile_of(draft.inputs[0])
        from_dram = self.queue_of(draft.inputs[0]) is not None
        if from_dram and draft.to_relay:
            piece = self.cuts[draft.source].tiles * tile
            held = piece * max(1, READ_BYTES // piece)
        else:
            places = {self.cores[base_of(one)] for one in draft.inputs if base_of(one) in self.cores}
            alone = len(draft.inputs) == 1 or len(places) == 1
            held = 0 if alone else gathered_bytes(len(draft.inputs), 2, 1, tile, from_dram=False)
        if len(draft.outputs[0]) > 1:
            held += HELD_TILES * tile
        return held * 2 if from_dram and held * 2 <= MOST_DOUBLED else held

    def tile_of(self, id: int) -> int:
        """Bytes of a tile of a buffer."""
        base = base_of(id)
        made: Buffer | None = self.buffers.ops.made.get(base)
        if made is not None:
            return made.tile_size
        queue = self.queue_of(base)
        return self.buffers.queues.slot(queue)[1] if queue is not None else self.tiles[base]
