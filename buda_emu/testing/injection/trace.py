"""A clean run as a graph of values, and the propagation of one changed value.

Each entry of a queue that was there before, each result of an op for one input, and each entry that it was stored in is
a node. Nodes are numbered in the order in which the machine made them, so what depends on a node has a higher number.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from buda_emu.emulator.memory.channel import Fifo, Ram
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.emulator.runtime.graph.schedule import Chunk
from buda_emu.emulator.runtime.graph.steps import Convert, Plan, Push, Read, Run, Same
from buda_emu.support.errors import UnsupportedError
from buda_emu.support.records import dataclass
from buda_emu.testing.injection.values import Arithmetic, Value

if TYPE_CHECKING:  # what only precision "device" needs is loaded for a fault inside an op
    from buda_emu.testing.injection.inside_op import WatchedUnits

Spoil = Callable[[Value], Value]
"""What a fault makes of a value: another one, or the same."""
Guard = Callable[["Node", Value], Value]
"""What a protection makes of an op's result: another one, or the same."""


@dataclass(slots=True)
class Node:
    """One value. `step`: what made it, None for an entry that was there. `inputs`: nodes that it is made of, operands
    in order; a gradient op has its sum so far as the last. `queue`: of an entry; `df`: the format that it is in."""

    number: int
    step: "Run | Convert | Push | Joined | None"
    inputs: tuple[int, ...]
    value: Value
    df: str
    epoch: int
    """Executes of graphs before it."""
    queue: str = ""
    slot: int = -1
    sums: bool = False
    """The last of `inputs` is what a gradient op adds its result to."""
    readers: list[int] = field(default_factory=list[int])
    last_epoch: int = -1
    """When it was last read."""


@dataclass(frozen=True, slots=True)
class Joined:
    """An entry of a ram that lies where other views of the same memory wrote (NETLIST 1.10): `parts` are its z-slices
    in order, each an input and a slice of that, of `tiles` tiles."""

    parts: tuple[tuple[int, int], ...]
    tiles: int


class Trace:
    """Records what a machine does (`Emulator.record`), one input at a time, and recomputes parts of it."""

    def __init__(self, emulator: Emulator, arithmetic: Arithmetic, most_bytes: int) -> None:
        self.nodes: list[Node] = []
        self.epochs: list[tuple[str, ...]] = []
        """Graphs of each execute."""
        self.arithmetic = arithmetic
        self._emulator = emulator
        self._left = most_bytes
        self._at: dict[tuple[str, int], int] = {}
        """By queue and slot, the node that is there."""
        self._sums: dict[str, int] = {}
        """By gradient op that no ram keeps the sum of, the last one."""
        self.inputs = 0
        """How many ran."""
        self.pushed: list[tuple[int, str, int]] = []
        """For each push into a queue: inputs until then with its own, the queue, and how many entries it then holds."""
        self.beyond: set[str] = set()
        """Queues of which entries are read that do not lie between their pointers."""
        self.begun: Mapping[str, tuple[int, ...]] = {}
        self.left: Mapping[str, tuple[int, ...]] = {}
        """By queue the slots between its pointers before and after the run."""

        self.netlist = emulator.netlist
        stores = Counter(id(channel.view.store) for channel in emulator.channels.values())
        self._shared = {name for name, item in emulator.channels.items() if stores[id(item.view.store)] > 1}
        self._slices: dict[tuple[int, int], tuple[int, int]] = {}
        """By store and z-slice of it, of rams with several views, the node that is there and the slice of that."""

    # ------------------------------------------------------------------------------------------------- recording
    def __call__(self, plan: Plan, chunk: Chunk) -> None:
        """A chunk is about to run. Raises UnsupportedError for more inputs than one, and where memory ends."""
        if chunk.inputs != 1:
            raise UnsupportedError("a run is recorded one input at a time (Emulator(inputs_at_once=1))")
        channels = self._emulator.channels
        self.inputs += 1
        self.beyond |= beyond(channels, chunk)
        here: dict[int, int] = {}
        for step in plan.steps:
            match step:
                case Read():
                    here[step.value] = self._entry(step, channels[step.queue], chunk.reads[step.queue][0])
                case Convert():
                    here[step.value] = self._add(step, (here[step.source],), step.format)
                case Run():
                    here[step.value] = self._op(step, plan, chunk, here)
                case Same():
                    pass
        for push in plan.pushes:
            slot = chunk.writes[push.queue][0]
            number = self._add(push, (here[push.value],), self.netlist.queues[push.queue].df)
            channel = channels[push.queue]
            self._lies(number, channel, slot)
            if isinstance(channel, Fifo):
                self.pushed.append((self.inputs, push.queue, channel.ring.occupancy))

    def epoch(self, graphs: tuple[str, ...]) -> None:
        """An execute begins: all nodes from now on are of it."""
        self.epochs.append(graphs)

    def _entry(self, step: Read, channel: Fifo | Ram, slot: int) -> int:
        """The node of an entry: the one that was stored there, or a new one if something else is there now."""
        value = self.arithmetic.read(channel, slot, flat=step.flat)
        shared = step.queue in self._shared
        number = self._joined(channel, slot, value) if shared else self._at.get((step.queue, slot))
        if number is None or not self._is(number, value):
            number = self._new(
                Node(
                    number=0, step=None, inputs=(), value=value, df=self.netlist.queues[step.queue].df, epoch=self._now
                )
            )
            self._lies(number, channel, slot)
        self.nodes[number].last_epoch = self._now
        return number

    def _lies(self, number: int, channel: Fifo | Ram, slot: int) -> None:
        """A node is what an entry holds from now on."""
        node = self.nodes[number]
        node.queue = channel.name
        node.slot = slot
        self._at[channel.name, slot] = number
        if channel.name in self._shared:
            for place, at in enumerate(sorted(channel.view.slices(slot))):
                self._slices[at] = number, place

    def _joined(self, channel: Fifo | Ram, slot: int, value: Value) -> int | None:
        """The node of an entry that others may have written parts of; None where nobody has written any. Raises
        UnsupportedError where they have other formats."""
        places = sorted(channel.view.slices(slot))
        if not any(at in self._slices for at in places):
            return None
        df = self.netlist.queues[channel.name].df
        unknown = [place for place, at in enumerate(places) if at not in self._slices]
        if unknown:  # what the host has put there
            number = self._new(
                Node(number=0, step=None, inputs=(), value=value, df=df, epoch=self._now, queue=channel.name, slot=slot)
            )
            self._slices |= {places[place]: (number, place) for place in unknown}
        found = [self._slices[at] for at in places]
        if any(self.nodes[number].df != df for number, _ in found):
            raise UnsupportedError(f"ram {channel.name}: views in different formats (NETLIST 1.10) are not recorded")
        numbers = tuple(dict.fromkeys(number for number, _ in found))
        size = value.shape[1] // len(places)
        if found == [(numbers[0], place) for place in range(self.nodes[numbers[0]].value.shape[1] // size)]:
            return numbers[0]
        return self._add(Joined(tuple((numbers.index(number), place) for number, place in found), size), numbers, df)

    def finish(self) -> None:
        """The run is over: what the host finds in rams with several views is what was written last."""
        for queue, slot in [place for place in self._at if place[0] in self._shared]:
            self._at[queue, slot] = self._entry(Read(queue, -1), self._emulator.channels[queue], slot)

    def _is(self, number: int, value: Value) -> bool:
        known = self.nodes[number].value
        return known.shape == value.shape and self.arithmetic.equal(known, value)

    def _op(self, step: Run, plan: Plan, chunk: Chunk, here: Mapping[int, int]) -> int:
        inputs = tuple(here[value] for value in step.inputs)
        sums = step.op.gradient_op
        if sums:
            before = self._sum_before(step, chunk)
            inputs, sums = (inputs, False) if before is None else ((*inputs, before), True)
        df = plan.labels[step.value] if step.device is not None else step.op.out_df
        number = self._add(step, inputs, df, plan.tiles[step.value], sums=sums)
        if step.op.gradient_op:
            self._sums[step.op.name] = number
        return number

    def _sum_before(self, step: Run, chunk: Chunk) -> int | None:
        """What a gradient op adds to: the entry of its ram, else its own last result; None where a sum begins."""
        channels = self._emulator.channels
        fed = [(queue, channels[queue]) for queue in step.fed]
        if any(channel.zero for _, channel in fed):
            return None
        for queue, channel in fed:
            if isinstance(channel, Ram):
                slot = chunk.writes[queue][0]
                return self._entry(Read(queue, -1), channel, slot) if channel.view.label(slot) else None
        return self._sums.get(step.op.name)

    def _add(
        self,
        step: Run | Convert | Push | Joined,
        inputs: tuple[int, ...],
        df: str,
        tiles: int = 0,
        *,
        sums: bool = False,
    ) -> int:
        node = Node(number=0, step=step, inputs=inputs, value=None, df=df, epoch=self._now, sums=sums)
        node.value = self._made(node, [self.nodes[number].value for number in inputs], tiles)
        number = self._new(node)
        for source in dict.fromkeys(inputs):
            self.nodes[source].readers.append(number)
            self.nodes[source].last_epoch = self._now
        return number

    def _new(self, node: Node) -> int:
        node.number = len(self.nodes)
        self._left -= node.value.nbytes
        if self._left < 0:
            raise UnsupportedError(
                "the values of the whole run do not fit the memory limit: give fewer inputs, or a higher --memory-limit"
            )
        self.nodes.append(node)
        return node.number

    @property
    def _now(self) -> int:
        return len(self.epochs) - 1

    def remade(self, number: int, units: "WatchedUnits") -> Value:
        """The clean run's op once more, on these units (precision "device")."""
        node = self.nodes[number]
        return self._made(node, [self.nodes[source].value for source in node.inputs], units=units)

    def _made(self, node: Node, inputs: list[Value], tiles: int = 0, units: "WatchedUnits | None" = None) -> Value:
        match node.step:
            case Run():
                previous = inputs.pop() if node.sums else None
                tiles = tiles or node.value.shape[1]
                return self.arithmetic.run(node.step, inputs, previous, tiles, node.df, units)
            case Convert():
                return self.arithmetic.convert(node.step, inputs[0])
            case Push():
                return self.arithmetic.arranged(node.step, inputs[0])
            case Joined():
                size = node.step.tiles
                parts = [inputs[of][:, place * size : (place + 1) * size] for of, place in node.step.parts]
                return self.arithmetic.joined(parts)
            case None:
                raise AssertionError("an entry that was there is not made")

    # --------------------------------------------------------------------------------------------------- changing
    def outputs(self) -> dict[tuple[str, int], int]:
        """By queue and slot, the nodes that the host reads at the end: queues and rams that ops fill, without queues
        that ops read."""
        netlist = self.netlist
        read = {name for op in netlist.ops.values() for name in op.inputs}
        made = {place: number for place, number in self._at.items() if not netlist.queues[place[0]].host_fed}
        found = {
            (name, slot): number
            for (name, slot), number in made.items()
            if netlist.queues[name].is_ram or name not in read
        }
        return found or made

    def changed(
        self, spoils: Mapping[int, Spoil], seen_by: int | None = None, operand: int = -1, guard: Guard | None = None
    ) -> tuple[dict[int, Value], int]:
        """What becomes of the run where the values of some nodes are spoilt: all nodes that differ, and how many were
        computed. `seen_by`: only this reader sees it, as its operand number `operand`. `guard` is asked for each result
        of an op that may differ. Raises what an op raises."""
        nodes = self.nodes
        arithmetic = self.arithmetic
        differ: dict[int, Value] = {}
        queue = sorted(spoils) if seen_by is None else [seen_by]
        queued = set(queue)
        computed = 0
        while queue:
            node = nodes[heappop(queue)]
            inputs = [differ[source] if source in differ else nodes[source].value for source in node.inputs]
            value = node.value
            if node.number == seen_by:
                (spoil,) = spoils.values()
                inputs[operand] = spoil(inputs[operand])
            if node.number == seen_by or not differ.keys().isdisjoint(node.inputs):
                value = self._made(node, inputs)
                computed += 1
            if seen_by is None and node.number in spoils:
                value = spoils[node.number](value)
            if guard is not None and isinstance(node.step, Run):
                value = guard(node, value)
            if value is node.value or arithmetic.equal(value, node.value):
                continue
            differ[node.number] = value
            for reader in node.readers:
                if reader not in queued:
                    queued.add(reader)
                    heappush(queue, reader)
        return differ, computed


def beyond(channels: Mapping[str, Fifo | Ram], chunk: Chunk) -> set[str]:
    """Queues of which one input, whose pointers have moved, reads an entry that is not between them."""
    found: set[str] = set()
    for queue, slots in chunk.reads.items():
        channel = channels[queue]
        if isinstance(channel, Fifo):
            ring = channel.ring
            popped = channel.global_rdptr_autoinc
            held = {ring.slot(ring.rd - popped + place) for place in range(ring.occupancy + popped)}
            if not held.issuperset(slots):
                found.add(queue)
    return found
