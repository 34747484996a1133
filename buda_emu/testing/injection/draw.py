"""Faults of a campaign at random, and the values of the recorded run that a fault names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from random import Random
from typing import Final

from buda_emu.emulator.inputs.feed import seed_of
from buda_emu.emulator.runtime.graph.steps import Run
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.formats import FORMATS, is_block
from buda_emu.support.checker.suggest import hint_in_parentheses
from buda_emu.support.errors import HostError
from buda_emu.testing.injection.corrupt import OTHER_FORMAT
from buda_emu.testing.injection.fault import INSIDE, KINDS, PLACES, Fault, Kind, bit_at, bits_of_tile, exponent_bits
from buda_emu.testing.injection.machines import POINTERS
from buda_emu.testing.injection.sites import Site, Sites, Strata, Stratum, Weighted, name_of
from buda_emu.testing.injection.timing_faults import FACTORS, LINKS
from buda_emu.testing.injection.trace import Node
from buda_emu.testing.injection.values import OnDevice

OF_RUN: Final = ("lost", "added")
"""Changes of an entry that change how many a queue holds: they need a run of their own."""
TIMED: Final[frozenset[Kind]] = frozenset(("clock", "link"))
"""Kinds of faults that change times and no values."""


class Draw:
    """A source of faults of a recorded run. `kinds` are drawn equally often, but for `left_out`, which have nothing to
    hit; `burst` is the number of bits of a flip, neighbours unless `scatter`; `by` names the parts of the sites, or
    the kinds, that get equally many faults in turn."""

    def __init__(
        self, sites: Sites, kinds: Sequence[Kind], burst: int = 1, by: Strata = "", *, scatter: bool = False
    ) -> None:
        if by not in ("", "kind") and not set(kinds) <= {"flip", "burst"}:
            raise HostError(f"by {by} bits are divided: kinds flip and burst, not {', '.join(kinds)}")
        self.sites = sites
        self._burst = burst
        self._by = by
        self._scatter = scatter
        self._trace = sites.trace
        self._in_memory: dict[str, Weighted] = {}
        self.strata = sites.strata(by)
        self._kinds: list[Kind] = [kind for kind in kinds if self._draw_kind(kind, 0, Random(0)) is not None]
        self.left_out: list[Kind] = [kind for kind in kinds if kind not in self._kinds]

    @property
    def shares(self) -> dict[str, float]:
        """The share of all sites that each stratum has, by name; empty without strata."""
        if not self._by:
            return {}
        if self._by == "kind":
            return {kind: 1 / len(self._kinds) for kind in self._kinds}
        return {part.name: part.share for part in self.strata}

    def fault(self, number: int, seed: int) -> Fault:
        """Draw fault `number` of a campaign, the same for the same arguments, and return it with its nodes. Raises
        HostError where nothing can be hit."""
        if not self._kinds:
            scope = ""
            if self.sites.only:
                scope = f" in {self.sites.only}"
            raise HostError(f"kind {', '.join(self.left_out)}: there is nothing{scope} that such a fault can hit")
        random = Random(seed_of(seed, number))
        index = random.randrange(len(self._kinds))
        if self._by == "kind":
            index = number % len(self._kinds)
        kind = self._kinds[index]
        fault = self._draw_kind(kind, number, random)
        assert fault is not None
        if self._by == "kind":
            fault = replace(fault, stratum=kind)
        return self.resolve(fault)

    def _draw_kind(self, kind: Kind, number: int, random: Random) -> Fault | None:
        """Draw fault `number` of a kind; None if faults of the kind can hit nothing in this run."""
        make: Mapping[Kind, Callable[[], Fault | None]] = {
            "flip": lambda: self._draw_flip(number, random),
            "burst": lambda: self._draw_burst(number, random),
            "stuck": lambda: self._draw_stuck_bit(number, random),
            "core": lambda: self._draw_dead_core(number, random),
            "packet": lambda: self._draw_packet(number, random),
            "entry": lambda: self._draw_entry_fault(number, random),
            "pointer": lambda: self._draw_pointer_flip(number, random),
            "format": lambda: self._draw_format_fault(number, random),
            "clock": lambda: self._draw_slow_clock(number, random),
            "link": lambda: self._draw_slow_link(number, random),
        }
        return make[kind]()

    # ------------------------------------------------------------------------------------------------------- bits
    def _stratum(self, number: int) -> Stratum | None:
        """Return the stratum that fault `number` hits; None if that has no sites, or there are no strata."""
        if not self.strata:
            return None
        part = self.strata[number % len(self.strata)]
        if part.sites.total:
            return part
        return None

    def _draw_flip(self, number: int, random: Random) -> Fault | None:
        """Draw a flip of one or several bits of a datum, or of a shared exponent; None if the stratum of fault `number`
        has no sites."""
        part = self._stratum(number)
        if part is None:
            return None
        site = part.sites.draw(random)
        tile = site.first + random.randrange(site.tiles)
        step = -1
        if site.place == "sfpu":
            step = random.randrange(site.steps)
        if part.bit is None:
            datum, bit, exponent = bit_at(site.df, random.randrange(bits_of_tile(site.df)))
        else:
            bit, exponent = part.bit
            datum = random.randrange(64 if exponent else TILE_ELEMENTS)
        if exponent:
            width = exponent_bits(site.df)
        else:
            width = FORMATS[site.df].bits
        bits = tuple(range(bit, min(width, bit + self._burst)))
        if self._scatter:
            others = [other for other in range(width) if other != bit]
            bits = tuple(sorted((bit, *random.sample(others, min(len(others), self._burst - 1)))))
        fault = self._fault_at(number, "flip", site)
        return replace(fault, tile=tile, datum=datum, bits=bits, exponent=exponent, step=step, stratum=part.name)

    def _draw_burst(self, number: int, random: Random) -> Fault | None:
        """Draw a burst, which hits memory; if the stratum of fault `number` has only sites in units, which process one
        datum after the other, draw a flip of one datum instead. None if nothing can be hit."""
        part = self._stratum(number)
        if part is None:
            return None
        outside = self._sites_in_memory(part)
        if outside is None:
            if self._by:
                return self._draw_flip(number, random)
            return None
        site = outside.draw(random)
        fault = self._fault_at(number, "burst", site)
        tile = random.randrange(site.tiles)
        return replace(fault, tile=tile, datum=random.randrange(TILE_ELEMENTS), how="noise", stratum=part.name)

    def _sites_in_memory(self, part: Stratum) -> Weighted | None:
        """Return the sites of a stratum that lie in memory rather than in a unit; None if there are none."""
        if part.name not in self._in_memory:
            sites = [site for site in part.sites.items if site.place not in INSIDE]
            self._in_memory[part.name] = Weighted.of(sites)
        outside = self._in_memory[part.name]
        if outside.items:
            return outside
        return None

    def _draw_packet(self, number: int, random: Random) -> Fault | None:
        """Draw a tile, or part of it, that is lost or comes twice on its way to an op; None where no operand can be
        hit."""
        if not self.sites.places["operand"].items:
            return None
        site = self.sites.places["operand"].draw(random)
        how = ("lost", "part lost", "twice")[random.randrange(3 if site.tiles > 1 else 2)]
        tile = random.randrange(1 if how == "twice" else 0, site.tiles)
        datum = -1
        if how == "part lost":
            datum = random.randrange(TILE_ELEMENTS)
        return replace(self._fault_at(number, "packet", site), tile=tile, datum=datum, how=how)

    # ------------------------------------------------------------------------------------------------------ cores
    def _draw_stuck_bit(self, number: int, random: Random) -> Fault | None:
        """Draw a bit that is stuck in the results of one core; None where no result can be hit."""
        fault = self._draw_core_fault(number, "stuck", random)
        if fault is None:
            return None
        return replace(fault, bits=(random.randrange(FORMATS[fault.df].bits),), how=str(random.randrange(2)))

    def _draw_dead_core(self, number: int, random: Random) -> Fault | None:
        """Draw a core whose results are zeros, old, or noise; None where no result can be hit."""
        fault = self._draw_core_fault(number, "core", random)
        if fault is None:
            return None
        return replace(fault, how=("zero", "stale", "noise")[random.randrange(3)])

    def _draw_core_fault(self, number: int, kind: Kind, random: Random) -> Fault | None:
        """Draw an op's result for one input, and a core of the op's grid, and return a fault of `kind` there; None if
        no result can be hit."""
        if not self.sites.places["l1"].items:
            return None
        site = self.sites.places["l1"].draw(random)
        step = self._trace.nodes[site.node].step
        assert isinstance(step, Run)
        rows, cols = step.op.blocking.grid_size
        return replace(self._fault_at(number, kind, site), core=(random.randrange(rows), random.randrange(cols)))

    # ----------------------------------------------------------------------------------------------------- queues
    def _draw_entry_fault(self, number: int, random: Random) -> Fault | None:
        """Draw an entry of a queue that is lost, added once more, repeated or swapped; None if no queue has such
        entries."""
        pairs = self._entry_pairs
        losable = self._losable_entries
        choices: list[str] = []
        if pairs:
            choices += ["twice", "swapped"]
        if losable:
            choices += ["lost", "added"]
        if not choices:
            return None
        how = choices[random.randrange(len(choices))]
        if how in OF_RUN:
            inputs, queue, place = losable[random.randrange(len(losable))]
            return self._queue_fault(number, "entry", queue, entry=inputs, tile=place, how=how)
        second = pairs[random.randrange(len(pairs))]
        return replace(self._queue_fault(number, "entry", second.queue, entry=self._entry_of(second)), how=how)

    @cached_property
    def _entry_pairs(self) -> list[Node]:
        """Pairs of entries of one shape that follow each other in a queue and of which ops read one at least, each
        given by its second entry."""
        last: dict[str, Node] = {}
        pairs: list[Node] = []
        for node in self.sites.entries:
            before = last.get(node.queue)
            if before is not None and before.value.shape == node.value.shape and (before.readers or node.readers):
                pairs.append(node)
            last[node.queue] = node
        return pairs

    @cached_property
    def _losable_entries(self) -> list[tuple[int, str, int]]:
        """The entries that may be lost when the host or an op pushes them, each as (number of inputs that ran before,
        queue, the entry's place between the queue's pointers)."""
        queues = {node.queue for node in self.sites.entries}
        entries: list[tuple[int, str, int]] = []
        for queue, slots in self._trace.begun.items():
            entries += [(0, queue, place) for place in range(len(slots))]
        entries += [(inputs, queue, occupancy - 1) for inputs, queue, occupancy in self._trace.pushed]
        return [entry for entry in entries if entry[1] in queues]

    def _draw_pointer_flip(self, number: int, random: Random) -> Fault | None:
        """Draw a flip of a bit of a pointer between two inputs; None where there are no queues."""
        queues = sorted({node.queue for node in self.sites.entries})
        if not queues:
            return None
        queue = queues[random.randrange(len(queues))]
        names, reach = self._pointer_names(queue)
        bit = random.randrange(max(1, (reach - 1).bit_length()))
        how = names[random.randrange(len(names))]
        inputs = random.randrange(self._trace.inputs)
        return self._queue_fault(number, "pointer", queue, entry=inputs, bits=(bit,), how=how)

    def _pointer_names(self, queue: str) -> tuple[tuple[str, ...], int]:
        """Return the names of the pointers that a queue or ram has, and the number of values that each pointer can
        have."""
        declared = self._trace.netlist.queues[queue]
        if declared.is_ram:
            return POINTERS[:2], declared.entries
        return POINTERS, 2 * declared.entries

    def _draw_format_fault(self, number: int, random: Random) -> Fault | None:
        """Draw a queue whose bits are read as another format of the same width; None if no queue has a format with such
        another one."""
        queues = sorted({node.queue for node in self.sites.entries if node.df in OTHER_FORMAT})
        if not queues:
            return None
        queue = queues[random.randrange(len(queues))]
        other = OTHER_FORMAT[self._trace.netlist.queues[queue].df]
        return self._queue_fault(number, "format", queue, how=f"read as {other}")

    # ------------------------------------------------------------------------------------------------------- time
    def _draw_slow_clock(self, number: int, random: Random) -> Fault:
        """Draw a slower clock from one execute on."""
        factor = FACTORS[random.randrange(len(FACTORS))]
        return Fault(
            number=number,
            kind="clock",
            place="",
            where="clock",
            op_type="chip",
            df="",
            entry=random.randrange(self._executes),
            how=factor,
        )

    def _draw_slow_link(self, number: int, random: Random) -> Fault:
        """Draw a slower memory, NoC, port or Ethernet link for the whole run."""
        name = LINKS[random.randrange(len(LINKS))]
        return Fault(
            number=number,
            kind="link",
            place="",
            where=name,
            op_type="chip",
            df="",
            how=FACTORS[random.randrange(len(FACTORS))],
        )

    @property
    def _executes(self) -> int:
        """The number of executes of the run, at least 1."""
        return max(1, len(self._trace.epochs))

    # --------------------------------------------------------------------------------------------------- the same
    def _fault_at(self, number: int, kind: Kind, site: Site) -> Fault:
        """Return a fault at a site, without tile, datum and bits, which the caller draws."""
        node = self._trace.nodes[site.node]
        if site.reader is None:
            at = node
        else:
            at = self._trace.nodes[site.reader]
        op_type = "queue"
        if isinstance(at.step, Run):
            op_type = at.step.op.type
        return Fault(
            number=number,
            kind=kind,
            place=site.place,
            where=name_of(at),
            op_type=op_type,
            df=site.df,
            entry=self._entry_of(at),
            tensor=name_of(node),
            operand=site.operand,
        )

    def _queue_fault(
        self,
        number: int,
        kind: Kind,
        queue: str,
        *,
        entry: int = -1,
        tile: int = -1,
        bits: tuple[int, ...] = (),
        how: str = "",
    ) -> Fault:
        """Return a fault in a queue or ram. `entry` is the position of the value that it hits or, for one that needs a
        run of its own, the number of inputs that ran before."""
        df = self._trace.netlist.queues[queue].df
        return Fault(
            number=number,
            kind=kind,
            place="dram",
            where=queue,
            op_type="queue",
            df=df,
            entry=entry,
            tensor=queue,
            tile=tile,
            bits=bits,
            how=how,
        )

    def _entry_of(self, node: Node) -> int:
        """Return the position of a node's value among those that its op or queue gets during the run, from 0."""
        return self.sites.ordinals[node.number]

    def resolve(self, fault: Fault) -> Fault:
        """Find the values of the run that a fault names, and return the fault with them as `nodes` and `reader`. Raises
        HostError for a fault that the run does not have."""
        if fault.kind not in KINDS:
            raise HostError(f"fault {fault.number}: kind {fault.kind!r} is not one of {', '.join(KINDS)}")
        if fault.kind in TIMED:
            return self._check_time_fault(fault)
        numbers = self.sites.numbers.get(fault.where)
        if not numbers:
            hint = hint_in_parentheses(fault.where, self.sites.numbers)
            raise HostError(f"fault {fault.number}: the run has no values of {fault.where!r}{hint}")
        if fault.kind == "pointer" or (fault.kind == "entry" and fault.how in OF_RUN):
            return self._check_of_run(fault)
        if fault.kind == "format":
            return self._with_format(fault, numbers)
        count = len(numbers)
        _require(fault, 0 <= fault.entry < count, f"entry {fault.entry}: the run has {count} values of {fault.where}")
        node = self._trace.nodes[numbers[fault.entry]]
        if fault.kind in ("stuck", "core"):
            _require(fault, isinstance(node.step, Run), f"{fault.where} is not an op")
            return replace(self._complete(fault, node), nodes=tuple(numbers[fault.entry :]))
        if fault.kind == "entry":
            _require(fault, fault.entry > 0, "entry 0 has none before it")
            return replace(self._complete(fault, node), nodes=(numbers[fault.entry - 1], node.number))
        return self._with_bits(fault, node)

    def _check_time_fault(self, fault: Fault) -> Fault:
        """Return a fault that changes times unchanged. Raises HostError for a factor, link or execute that does not
        exist."""
        is_clock = fault.kind == "clock"
        _require(fault, fault.how in FACTORS, f"how {fault.how!r} is not one of {', '.join(FACTORS)}")
        _require(fault, is_clock or fault.where in LINKS, f"link {fault.where!r} is not one of {LINKS}")
        _require(fault, not is_clock or 0 <= fault.entry < self._executes, f"execute {fault.entry}")
        return fault

    def _with_format(self, fault: Fault, numbers: Sequence[int]) -> Fault:
        """Return a fault of a queue's format with the nodes that are misread; `numbers` are those of the queue's
        values. Raises HostError for a format without another one of its width."""
        node = self._trace.nodes[numbers[0]]
        _require(fault, node.df in OTHER_FORMAT, f"{node.df} has no other format of its width")
        return replace(self._complete(fault, node), nodes=tuple(numbers))

    def _check_of_run(self, fault: Fault) -> Fault:
        """Return a fault that needs a run of its own unchanged. Raises HostError for a queue, input or pointer that the
        run does not have."""
        netlist = self._trace.netlist
        inputs = self._trace.inputs
        _require(fault, fault.where in netlist.queues, f"{fault.where} is not a queue")
        _require(fault, 0 <= fault.entry <= inputs, f"entry {fault.entry}: {inputs} inputs run")
        if fault.kind == "entry":
            _require(
                fault, not netlist.queues[fault.where].is_ram, f"{fault.where} is a ram: no entry can be {fault.how}"
            )
        else:
            names, _ = self._pointer_names(fault.where)
            _require(fault, fault.how in names, f"pointer {fault.how!r} is not one of {', '.join(names)}")
            _require(fault, bool(fault.bits), "no bit of the pointer is given")
        return fault

    def _complete(self, fault: Fault, node: Node) -> Fault:
        """Return the fault with format, op type and tensor; those that it does not state are taken from the run."""
        op_type = "queue"
        if isinstance(node.step, Run):
            op_type = node.step.op.type
        return replace(
            fault, df=fault.df or node.df, op_type=fault.op_type or op_type, tensor=fault.tensor or name_of(node)
        )

    def _with_bits(self, fault: Fault, node: Node) -> Fault:
        """Return a fault of bits with the node that it changes and, for an operand, the only reader. Raises HostError
        for a place, operand, tile, datum or bit that does not exist."""
        _require(fault, fault.place in PLACES, f"place {fault.place!r} is not one of {', '.join(PLACES)}")
        reader = None
        is_op = isinstance(node.step, Run)
        if fault.place == "operand":
            _require(fault, is_op, f"{fault.where} is not an op")
            _require(fault, 0 <= fault.operand < len(node.inputs), f"{fault.where} has no operand {fault.operand}")
            reader = node.number
            node = self._trace.nodes[node.inputs[fault.operand]]
            step = self._trace.nodes[reader].step
            assert isinstance(step, Run)
            fault = replace(fault, op_type=step.op.type)
        else:
            _require(fault, is_op != (fault.place == "dram"), f"place {fault.place} is not one of {fault.where}")
        fault = replace(self._complete(fault, node), nodes=(node.number,), reader=reader)
        if fault.place not in INSIDE:
            tiles = node.value.shape[1]
            _require(fault, 0 <= fault.tile < tiles, f"tile {fault.tile}: there are {tiles}")
        elif not isinstance(self._trace.arithmetic, OnDevice):
            raise HostError(f"fault {fault.number}: place {fault.place} is one of precision device")
        _check_datum(fault)
        return fault


def _check_datum(fault: Fault) -> None:
    """Raise HostError unless format, datum and bits of a fault exist."""
    _require(fault, fault.df in FORMATS, f"format {fault.df!r} is not known")
    count = TILE_ELEMENTS
    width = FORMATS[fault.df].bits
    if fault.exponent and is_block(fault.df):
        count = 64
        width = exponent_bits(fault.df)
    if fault.kind != "packet" or fault.how == "part lost":
        _require(fault, 0 <= fault.datum < count, f"datum {fault.datum}: there are {count}")
    if fault.kind == "flip":
        _require(fault, bool(fault.bits) and max(fault.bits) < width, f"bits {fault.bits}: there are {width}")


def _require(fault: Fault, holds: bool, problem: str) -> None:
    """Raise HostError with `problem` about a fault unless `holds`."""
    if not holds:
        raise HostError(f"fault {fault.number} ({fault.kind} in {fault.where}): {problem}")
