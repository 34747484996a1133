"""What cores have left for relays and for the pipes to them, as net2pipe keeps count while it lays pipes over links."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from buda_emu.routing.pipes.between_chips.hop import Core
from buda_emu.routing.pipes.rules.core_use import DRAM_INPUTS, DRAM_OUTPUTS, EXTRA_STREAMS, MULTICASTS, CoreUse

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
