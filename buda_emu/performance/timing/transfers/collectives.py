"""Cycles of collectives: what chips in a line or ring do together over Ethernet (docs/timing/transfers.md#collectives).

Each hop carries pieces of the array both ways, along the shortest ways. The fullest link, or the cores that feed it,
set the pace; starting takes time for the collective and for each other chip. An all_reduce is a reduce_scatter and then
an all_gather. The parameters of a chip (`CollectiveCost`) are fitted to silicon by
`python -m benchmarks.scorecard fit metal.md`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Final, Literal, get_args

from buda_emu.performance.timing.transfers.rates import speed
from buda_emu.performance.timing.transfers.transactions import device_of
from buda_emu.performance.timing.uncertainty import Interval, Part, interval_of
from buda_emu.spec.devices import Device
from buda_emu.support.errors import HostError, UnsupportedError

CollectiveKind = Literal["all_gather", "reduce_scatter", "all_reduce", "all_to_all"]
Layout = Literal["line", "ring"]
COLLECTIVES: Final[tuple[CollectiveKind, ...]] = get_args(CollectiveKind)
LAYOUTS: Final[tuple[Layout, ...]] = get_args(Layout)
DATA: Final = "collective_cost.json"
SMALL: Final = 1 << 20
"""Bytes of an array below which errors are a family of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """A collective of chips in a line or ring; each chip takes part alike.

    `size` is the whole array in bytes: what each chip has after an all_gather, and before any other kind. `links` are
    the Ethernet links of each hop, by default all between two neighbours.
    """

    kind: CollectiveKind
    chips: int
    size: int
    layout: Layout = "line"
    links: int | None = None

    def __post_init__(self) -> None:
        """Raise HostError for what is no collective."""
        if self.kind not in COLLECTIVES:
            raise HostError(f"collective: kind {self.kind!r} is not one of {', '.join(COLLECTIVES)}")
        if self.layout not in LAYOUTS:
            raise HostError(f"collective: layout {self.layout!r} is not one of {', '.join(LAYOUTS)}")
        if self.size < 1 or self.chips < 1:
            raise HostError(f"collective: {self.size} bytes on {self.chips} chips; both must be at least 1")
        if self.layout == "ring" and self.chips == 2:
            raise HostError("collective: a ring has at least 3 chips; 2 chips are a line, with more links")
        if self.links is not None and self.links < 1:
            raise HostError(f"collective: {self.links} links; there must be at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveCost:
    """The costs of collectives on one chip, in cycles unless stated otherwise."""

    start_gather: float  # before the first piece is on its way
    start_reduce: float
    start_exchange: float
    step: float  # for each other chip, whose piece is awaited and taken
    inside: float  # for each chip inside of a line, which adds sums that come from both sides
    link: float  # share of the epoch model's rate of a link that payload reaches
    ring: float  # share of that in a ring, in which every chip passes pieces on both ways
    reduce: float  # share of that for sums, which each chip on the way adds to
    gather_core: float  # bytes a cycle of the core that feeds a link: of an all_gather
    exchange_core: float  # and of an all_to_all


def collective_cycles(collective: Collective, chip: Device | str = "wormhole_b0") -> float:
    """Return the cycles of a collective from its start on all chips until the last one is done.

    `chip` is a device, or the name of an architecture or board. Raises UnsupportedError for a chip without Ethernet
    links, and HostError for more links than its Ethernet cores have.
    """
    chip = device_of(chip)
    check_links(collective, chip)
    if collective.chips == 1:
        return 0.0
    return cycles_of(collective, collective_cost(chip.name), chip)


def collective_interval(collective: Collective, chip: Device | str = "wormhole_b0") -> Interval:
    """Return where `collective_cycles` lie on silicon with a probability of 90 %. Raises the same errors."""
    chip = device_of(chip)
    family = f"{chip.name} {error_topic(collective)}"
    return interval_of([Part("collective", family, collective_cycles(collective, chip))])


def error_topic(collective: Collective) -> str:
    """Return the topic that, with the chip's name, names the family whose error a collective has
    (`timing.uncertainty`)."""
    if collective.size < SMALL:
        return "collectives, small"
    return "collectives"


def check_links(collective: Collective, chip: Device) -> None:
    """Raise UnsupportedError for several chips without links, and HostError where a collective is to use more links
    than its chips have."""
    if collective.chips == 1:
        return
    if not chip.neighbour_links:
        raise UnsupportedError(f"collective: {chip.title} has no Ethernet links to other chips")
    neighbours = min(collective.chips - 1, 2)
    links_available = len(chip.eth_cores) // neighbours
    if collective.links is not None and collective.links > links_available:
        message = f"collective: {collective.links} links of each hop; {chip.title} has at most {links_available}"
        raise HostError(f"{message} to each of {neighbours} neighbours")


@cache
def _costs() -> Mapping[str, CollectiveCost]:
    """Return the fitted parameters of all chips."""
    text = (files("buda_emu.performance.timing") / "data" / DATA).read_text(encoding="utf-8")
    return {name: CollectiveCost(**entry["cost"]) for name, entry in json.loads(text)["chips"].items()}


def collective_cost(name: str) -> CollectiveCost:
    """Return the fitted parameters of a chip by its name. Raises UnsupportedError for one that was not measured."""
    costs = _costs()
    if name not in costs:
        raise UnsupportedError(f"collective: collectives were measured on {', '.join(costs)}, not on {name}")
    return costs[name]


def cycles_of(collective: Collective, cost: CollectiveCost, chip: Device) -> float:
    """Return the cycles of a collective of several chips by these costs; for the fit, which tries costs. Nothing is
    checked."""
    if collective.kind == "all_reduce":
        sums = replace(collective, kind="reduce_scatter")
        gather = replace(collective, kind="all_gather")
        return cycles_of(sums, cost, chip) + cycles_of(gather, cost, chip)
    links = collective.links or chip.neighbour_links
    size = collective.size / links
    rate = speed(chip, {}).rates().ethernet / chip.neighbour_links * cost.link
    if collective.layout == "ring":
        rate *= cost.ring
    steps = (collective.chips - 1) * cost.step
    match collective.kind:
        case "all_gather":
            core = core_share(collective) * size / cost.gather_core
            return cost.start_gather + steps + max(link_share(collective) * size / rate, core)
        case "all_to_all":
            core = core_share(collective) * size / cost.exchange_core
            return cost.start_exchange + steps + max(link_share(collective) * size / rate, core)
        case "reduce_scatter":
            if collective.layout == "line":
                steps += (collective.chips - 2) * cost.inside
            return cost.start_reduce + steps + link_share(collective) * size / (rate * cost.reduce)


def link_share(collective: Collective) -> float:
    """Return the share of the array (0 to 1 or more) that the fullest hop carries in one direction, in one pass; not
    for an all_reduce, which has two."""
    chips = collective.chips
    ring = collective.layout == "ring"
    if collective.kind == "all_to_all":
        if ring:  # of two ways of the same length all take the same one
            return sum(range(1, chips // 2 + 1)) / chips
        return (chips // 2) * ((chips + 1) // 2) / chips
    if ring:
        return (chips - 1) / chips / 2
    return (chips - 1) / chips


def core_share(collective: Collective) -> float:
    """Return the share of the array that the cores of the busiest chip handle for the links of one direction: the
    pieces of its own that it sends there, and one that it copies into its own result."""
    if collective.kind == "all_gather":
        return 2 / collective.chips
    if collective.layout == "ring":
        return (collective.chips // 2 + 1) / collective.chips
    return 1.0
