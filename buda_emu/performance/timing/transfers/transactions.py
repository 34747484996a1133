"""Cycles of transactions that cores issue over a NoC by themselves: reads, writes and multicasts between cores or with
DRAM (docs/timing/transfers.md).

A transaction passes the issuing core, a port out of the NoC's source, links along x and y, and a port into its
destination. Of one core, the slowest of these sets the pace; several cores also wait for one another, at the fullest
link of each axis and the fullest port of each direction. The parameters of a chip (`NocCost`) are fitted to silicon by
`python -m benchmarks.scorecard fit`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from math import ceil, hypot
from typing import Final, Literal, get_args

from buda_emu.performance.timing.transfers.noc import Link, route
from buda_emu.performance.timing.uncertainty import Interval, Part, interval_of
from buda_emu.spec.boards import BOARDS
from buda_emu.spec.devices import Core, Device, device
from buda_emu.support.errors import HostError, UnsupportedError

Kind = Literal["read", "write", "multicast", "linked multicast"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
DATA: Final = "transfer_cost.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transactions:
    """Transactions that some cores issue at the same time over one NoC, each core `count` of them, of `size` bytes.

    Cores are places x, y of the NoC. `partners` holds for each core those that it reads from or writes to. A core turns
    to the next partner after its share of `count`; with `interleaved` after each transaction. A multicast goes from
    each core to all of its partners, which fill a rectangle. Without `noc`, reads use NoC 1 and all else NoC 0, as
    the firmware does. `stateful` transactions reuse the command of the one before.
    """

    kind: Kind
    cores: tuple[Core, ...]
    partners: tuple[tuple[Core, ...], ...]
    size: int
    count: int = 1
    noc: Literal[0, 1] | None = None
    stateful: bool = False
    interleaved: bool = False

    def __post_init__(self) -> None:
        """Raise HostError for what is no set of transactions."""
        if self.kind not in KINDS:
            raise HostError(f"transactions: kind {self.kind!r} is not one of {', '.join(KINDS)}")
        if self.size < 1 or self.count < 1:
            raise HostError(f"transactions: {self.count} of {self.size} bytes; both must be at least 1")
        if not self.cores or len(self.cores) != len(self.partners) or not all(self.partners):
            raise HostError("transactions: each core needs at least one partner, and there must be a core")
        if self.noc not in (None, 0, 1):
            raise HostError(f"transactions: NoC {self.noc}; there are 0 and 1")

    @property
    def ring(self) -> int:
        """Return the number of the NoC that is used, 0 or 1."""
        if self.noc is None:
            return int(self.kind == "read")
        return self.noc


@dataclass(frozen=True, slots=True, kw_only=True)
class NocCost:
    """The costs of transactions on one chip, in cycles unless stated otherwise."""

    start_read: float  # of the first transaction, beside what it spends on the NoC
    start_write: float
    flit_read: float  # of each flit of a packet
    flit_write: float
    flit_multicast: float
    packet: float  # between two packets
    issue_read: float  # for the core to issue one
    issue_write: float
    issue_multicast: float
    issue_dram_read: float
    issue_dram_write: float
    stateful_read: float  # saved of that if the command is reused
    stateful_write: float
    partner: float  # for the core to turn to another partner
    reserve_hop: float  # to reserve a multicast's way, for each hop to its farthest receiver
    acknowledgement: float  # of one receiver of a multicast, at the sender's port
    turn: float  # share of all multicasts over one line of cores that the median core waits for
    linked_turn: float  # the same of linked ones; those of a core run all at once
    linked_reserve: float  # times that a core asks for its way in vain while others hold it
    dram_read: float  # latency of DRAM
    dram_write: float
    bank_read: float  # bytes in a cycle of a DRAM core
    bank_write: float
    bank_transaction: float  # of a DRAM core between two transactions
    crowd_read: float  # waits at the links of each axis, in terms of their load, if all begin with the same partner
    crowd_write: float
    crowd_port: float  # the same at the ports of the sources
    crowd_reads: float  # share of the cores that one partner serves in turn while all read from it
    crowd_free: float  # cores that may read from one partner before they queue
    drift: float  # transactions with one partner after which half of them have drifted apart
    spread: float  # waits of reads from different partners, wherever it is not fullest, in terms of others' load
    merge: float  # waits of writes to different partners before the fullest place, in terms of others' load there
    together: float  # for each core that starts at the same time as others with DRAM


@dataclass(frozen=True, slots=True)
class Traffic:
    """Geometry of transactions, and the load of the fullest link and port of each sort if each core issues one."""

    wraps: tuple[bool, bool]  # whether the way to the last partner and back goes around the ring of x, of y
    source: float
    x: float
    y: float
    target: float
    bank: float
    reach: int  # hops of a multicast to its farthest receiver
    dram: bool
    crowded: bool  # whether several cores have the same partners in the same order
    includes_sender: bool


def transfer_cycles(transactions: Transactions, chip: Device | str = "wormhole_b0") -> float:
    """Return the cycles from the issue of the first transaction to the last acknowledgement, for the median core.

    `chip` is a device, or the name of an architecture or board. Raises HostError for a place outside of its NoC, and
    UnsupportedError for a chip whose NoC nobody has measured.
    """
    chip = device_of(chip)
    cost = noc_cost(chip.name)
    return cycles_of(transactions, traffic_of(transactions, chip), cost, chip)


def transfer_interval(transactions: Transactions, chip: Device | str = "wormhole_b0") -> Interval:
    """Return where `transfer_cycles` lie on silicon with a probability of 90 %. Raises the same errors."""
    chip = device_of(chip)
    family = f"{chip.name} {error_topic(transactions, chip)}"
    return interval_of([Part("transfer", family, transfer_cycles(transactions, chip))])


def device_of(chip: Device | str) -> Device:
    """Return the device of an architecture or board. Raises HostError for a name that is neither."""
    if not isinstance(chip, str):
        return chip
    if chip in BOARDS:
        return BOARDS[chip].chip
    return device(chip)


def error_topic(transactions: Transactions, chip: Device) -> str:
    """Return the topic that, with the chip's name, names the family whose error transactions have
    (`timing.uncertainty`)."""
    several = len(transactions.cores) > 1
    cores = ("a core", "several cores")[several]
    if is_with_dram(transactions, chip):
        topic = f"transactions of {cores} with DRAM"
    elif transactions.kind.endswith("multicast"):
        topic = f"multicasts of {cores}"
    elif several:
        topic = f"{transactions.kind}s of several cores"
    elif len(transactions.partners[0]) > 1:
        topic = "transactions of a core with several"
    else:
        topic = "transactions of a core with another"
    if transactions.size < SMALL:
        topic += ", small"
    return topic


SMALL: Final = 512
"""Bytes of a transaction below which errors are a family of their own."""


@cache
def _costs() -> Mapping[str, NocCost]:
    """Return the fitted parameters of all chips."""
    text = (files("buda_emu.performance.timing") / "data" / DATA).read_text(encoding="utf-8")
    return {name: NocCost(**entry["cost"]) for name, entry in json.loads(text)["chips"].items()}


def noc_cost(name: str) -> NocCost:
    """Return the fitted parameters of a chip by its name. Raises UnsupportedError for one that was not measured."""
    costs = _costs()
    if name not in costs:
        raise UnsupportedError(f"transfer_cycles: transactions were measured on {', '.join(costs)}, not on {name}")
    return costs[name]


def traffic_of(transactions: Transactions, chip: Device) -> Traffic:
    """Return the load that the transactions put on the NoC. Raises HostError for a place outside of it."""
    columns, rows = chip.noc_grid
    places = {*transactions.cores}.union(*transactions.partners)
    for x, y in sorted(places):
        if not (0 <= x < columns and 0 <= y < rows):
            raise HostError(f"transactions: {x}-{y} is outside of the NoC of {chip.name}, {columns} x {rows}")
    banks = frozenset(chain.from_iterable(chip.dram_cores))
    if transactions.kind in ("read", "write"):
        return _unicast_traffic(
            transactions.cores,
            transactions.partners,
            reads=transactions.kind == "read",
            interleaved=transactions.interleaved,
            noc=transactions.ring,
            grid=chip.noc_grid,
            banks=banks,
        )
    return _multicast_traffic(transactions.cores, transactions.partners, transactions.ring, chip.noc_grid)


def is_with_dram(transactions: Transactions, chip: Device) -> bool:
    """Return whether a partner of transactions is a DRAM core."""
    banks = frozenset(chain.from_iterable(chip.dram_cores))
    return not banks.isdisjoint(chain.from_iterable(transactions.partners))


@lru_cache(256)
def _unicast_traffic(
    cores: tuple[Core, ...],
    partners: tuple[tuple[Core, ...], ...],
    *,
    reads: bool,
    interleaved: bool,
    noc: int,
    grid: tuple[int, int],
    banks: frozenset[Core],
) -> Traffic:
    """Return the load of the NoC if each core issues one read or write, in equal shares to its partners. `banks` has
    the cores of DRAM. Cached."""
    links: dict[Link, float] = {}
    sources: dict[Core, float] = {}
    targets: dict[Core, float] = {}
    bank_loads: dict[Core, float] = {}
    for core, others in zip(cores, partners, strict=True):
        share = 1 / len(others)
        for other in others:
            start, end = (other, core) if reads else (core, other)
            sources[start] = sources.get(start, 0.0) + share
            targets[end] = targets.get(end, 0.0) + share
            if other in banks:
                bank_loads[other] = bank_loads.get(other, 0.0) + share
            for link in route(0, noc, start, end, grid):
                links[link] = links.get(link, 0.0) + share
    first = cores[0]
    last = partners[0][-1]
    same_order = len(cores) > 1 and len(set(partners)) == 1
    return Traffic(
        wraps=(first[0] != last[0], first[1] != last[1]),
        source=max(sources.values()),
        x=_fullest(links, ("left", "right")),
        y=_fullest(links, ("up", "down")),
        target=max(targets.values()),
        bank=max(bank_loads.values(), default=0.0),
        reach=0,
        dram=bool(bank_loads),
        crowded=same_order and not interleaved,
        includes_sender=False,
    )


def _fullest(links: Mapping[Link, float], directions: tuple[str, str]) -> float:
    """Return the greatest load of links in these directions."""
    return max((load for link, load in links.items() if link.way in directions), default=0.0)


@lru_cache(256)
def _multicast_traffic(
    cores: tuple[Core, ...], partners: tuple[tuple[Core, ...], ...], noc: int, grid: tuple[int, int]
) -> Traffic:
    """Return the traffic if each core issues one multicast to its partners, as the core in the middle of the list sees
    it. Its `target` counts the multicasts to the same receivers, as these wait for one another. Cached."""
    middle = len(cores) // 2
    core = cores[middle]
    receivers = partners[middle]
    return Traffic(
        wraps=(any(x != core[0] for x, _ in receivers), any(y != core[1] for _, y in receivers)),
        source=1.0,
        x=0.0,
        y=0.0,
        target=sum(others == receivers for others in partners),
        bank=0.0,
        reach=_reach(core, receivers, noc, grid),
        dram=False,
        crowded=len(cores) > 1,
        includes_sender=core in receivers,
    )


def _reach(core: Core, receivers: Iterable[Core], noc: int, grid: tuple[int, int]) -> int:
    """Return the hops from a core to the last receiver along x and to the last along y, added up, in the direction of
    the NoC."""
    hops: list[int] = []
    for axis in (0, 1):
        step = -1 if noc else 1
        distances = [(step * (place[axis] - core[axis])) % grid[axis] for place in receivers]
        hops.append(max(distances))
    return sum(hops)


def cycles_of(transactions: Transactions, traffic: Traffic, cost: NocCost, chip: Device) -> float:
    """Return the cycles of transactions whose traffic is known, by these costs; for the fit, which tries costs."""
    if transactions.kind in ("read", "write"):
        return _unicast_cycles(transactions, traffic, cost, chip)
    return _multicast_cycles(transactions, traffic, cost, chip)


def _wire_cycles(size: int, flit: float, cost: NocCost, chip: Device) -> float:
    """Return the cycles of one transaction of `size` bytes at a port or link: its flits and the header flit of each of
    its packets. `flit` is the cycles of a flit."""
    packets = ceil(size / chip.noc_packet_bytes)
    flits = ceil(size / chip.noc_bytes_per_clock) + packets
    return flits * flit + packets * cost.packet


def _round_trip(traffic: Traffic, chip: Device) -> int:
    """Return the cycles that the hops of a transaction and of its answer take: both go the same way around, so together
    they make whole rings."""
    columns, rows = chip.noc_grid
    hop = chip.noc_latency[1]
    return hop * (columns * traffic.wraps[0] + rows * traffic.wraps[1])


def _issue_cycles(transactions: Transactions, traffic: Traffic, cost: NocCost) -> float:
    """Return the cycles in which a core issues all of its transactions."""
    reads = transactions.kind == "read"
    if traffic.dram:
        single = cost.issue_dram_read if reads else cost.issue_dram_write
    else:
        single = cost.issue_read if reads else cost.issue_write
    if transactions.stateful:
        single -= cost.stateful_read if reads else cost.stateful_write
    partners = len(transactions.partners[0])
    changes_of_partner = transactions.count if transactions.interleaved else min(partners, transactions.count)
    if partners == 1:
        changes_of_partner = 0
    return transactions.count * single + changes_of_partner * cost.partner


def _unicast_cycles(transactions: Transactions, traffic: Traffic, cost: NocCost, chip: Device) -> float:
    """Return the cycles of reads or writes: what their first one waits for, and the slowest of all that they use."""
    reads = transactions.kind == "read"
    count = transactions.count
    wire = _wire_cycles(transactions.size, cost.flit_read if reads else cost.flit_write, cost, chip)
    start = (cost.start_read if reads else cost.start_write) + _round_trip(traffic, chip)
    issue = _issue_cycles(transactions, traffic, cost)
    load = _waiting_load(transactions, traffic, cost) * wire
    if traffic.dram:
        start += cost.dram_read if reads else cost.dram_write
        rate = cost.bank_read if reads else cost.bank_write
        bank = transactions.size / rate + cost.bank_transaction
        load = max(load, traffic.bank * bank)
    if len(transactions.cores) == 1:
        return start + max(issue + wire, count * load)
    if traffic.dram:
        return start + hypot(len(transactions.cores) * cost.together, max(issue, count * load))
    return start + hypot(issue, count * load)


def _waiting_load(transactions: Transactions, traffic: Traffic, cost: NocCost) -> float:
    """Return how many transactions' wire cycles pass until every core has done one of its own: 1 for a core alone, more
    where several meet."""
    reads = transactions.kind == "read"
    stages = (traffic.source, traffic.x, traffic.y, traffic.target)
    if not traffic.crowded:
        fullest = max(stages)
        if not reads:
            return fullest + cost.merge * (fullest - 1)
        waits = sum(max(stage - 1, 0.0) for stage in stages) - max(fullest - 1, 0.0)
        return fullest + cost.spread * waits
    crowd = cost.crowd_read if reads else cost.crowd_write
    load = traffic.target + crowd * (traffic.x + traffic.y) + cost.crowd_port * traffic.source
    if not reads:
        return load
    of_one_partner = transactions.count / len(transactions.partners[0])
    queued = max(len(transactions.cores) - cost.crowd_free, 0.0)
    in_turn = cost.crowd_reads * queued / (1 + of_one_partner / cost.drift)
    return max(load, in_turn)


def _multicast_cycles(transactions: Transactions, traffic: Traffic, cost: NocCost, chip: Device) -> float:
    """Return the cycles of multicasts. Each packet reserves the way to all receivers before it goes, and a linked one
    leaves it reserved for the next."""
    receivers = len(transactions.partners[0])
    wire = _wire_cycles(transactions.size, cost.flit_multicast, cost, chip)
    reserve = cost.reserve_hop * traffic.reach * ceil(transactions.size / chip.noc_packet_bytes)
    answers = cost.acknowledgement * receivers + (wire if traffic.includes_sender else 0.0)
    if transactions.kind == "multicast":
        interval = max(cost.issue_multicast, wire + reserve)
    else:
        interval = max(cost.issue_multicast, wire, answers)
    busy = reserve + wire + (transactions.count - 1) * interval
    if traffic.crowded and transactions.kind == "multicast":
        busy *= max(cost.turn * traffic.target, 1.0)
    elif traffic.crowded:
        busy = (busy + cost.linked_reserve * reserve) * max(cost.linked_turn * traffic.target, 1.0)
    return cost.start_write + _round_trip(traffic, chip) + busy
