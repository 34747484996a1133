"""When everything of a schedule happened: what `simulate` gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from buda_emu.gemini.index import Index
    from buda_emu.gemini.time.durations import Rates
    from buda_emu.gemini.time.noc import Link
    from buda_emu.gemini.time.plan import ItemKind, Plan, Step
    from buda_emu.timeline import Schedule, Timing

WaitKind = Literal["load", "weight", "producer", "room"]
WAIT_KINDS: tuple[WaitKind, ...] = ("load", "weight", "producer", "room")


class Span(NamedTuple):
    """From the first cycle to the one after the last."""

    start: int
    end: int


class DramSpan(NamedTuple):
    """An item of the DRAM queue. `transfer_id` and `core` are -1 where an assembler file does not tell them."""

    kind: "ItemKind"
    transfer_id: int
    bytes: int
    core: int
    start: int
    end: int


class NocSpan(NamedTuple):
    """A piece on its way from a core to others."""

    transfer_id: int
    core: int
    cores: tuple[int, ...]
    bytes: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """Times in cycles. `workloads`: by core and workload_id; `dram`: in queue order; `links`: bytes on directed links.

    `instructions` are those of an assembler file. `schedule` and `timing` are the tasks and their times, for reports;
    `kinds` says of each counted object what waiting for it means.
    """

    total: int
    workloads: Mapping[tuple[int, int], Span]
    dram: Sequence[DramSpan]
    noc: Sequence[NocSpan]
    links: "Mapping[Link, int]"
    instructions: Sequence[Span]
    mode: Literal["schedule", "assembler"]
    rates: "Rates"
    schedule: "Schedule" = field(repr=False)
    timing: "Timing" = field(repr=False)
    kinds: tuple[WaitKind, ...] = field(repr=False, default=())
    tasks_of: "Mapping[Step, tuple[int, ...]]" = field(repr=False, default_factory=dict["Step", tuple[int, ...]])
    item_tasks: tuple[int, ...] = field(repr=False, default=())
    send_tasks: tuple[int, ...] = field(repr=False, default=())
    index: "Index | None" = field(repr=False, default=None)
    plan: "Plan | None" = field(repr=False, default=None)
