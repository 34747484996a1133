"""A clean run as a graph of values, and the propagation of one changed value.

Each entry of a queue that was there before, each result of an op for one input, and each entry that a result was
stored in is a node. Nodes are numbered in the order in which the machine made them, so that a node that depends on
another has the higher number.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from heapq import heappop, heappush
from itertools import chain
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
"""The change of a value by a fault; it may return the same value."""
Guard = Callable[["Node", Value], Value]
"""The change of an op's result by a protection; it may return the same value."""


@dataclass(slots=True)
class Node:
    """One value of a recorded run. `step` made it, None for an entry that was there before; `inputs` are the nodes that
    it was made from, operands in order; a gradient op has its previous sum as the last. `queue` and `slot` say where it
    is stored, "" and -1 where it is not; `df` is the format that it is in."""

    number: int
    step: "Run | Convert | Push | Joined | None"
    inputs: tuple[int, ...]
    value: Value
    df: str
    epoch: int
    """Number of executes of graphs before it."""
    queue: str = ""
    slot: int = -1
    sums: bool = False
    """True where the last of `inputs` is the sum that a gradient op adds its result to."""
    readers: list[int] = field(default_factory=list[int])
    last_epoch: int = -1
    """The epoch in which it was last read."""


@dataclass(frozen=True, slots=True)
class Joined:
    """A step that joins an entry of a ram from parts that other views of the same memory wrote (NETLIST 1.10). `parts`
    are its z-slices in order, each an input and a slice of that input, of `tiles` tiles."""

    parts: tuple[tuple[int, int], ...]
    tiles: int


class Trace:
    """All values of a machine's run, recorded one input at a time (`Emulator.record`), and what follows if one changes.
    `propagate` computes again only what depends on a change."""

    def __init__(self, emulator: Emulator, arithmetic: Arithmetic, most_bytes: int) -> None:
        self.nodes: list[Node] = []
        self.epochs: list[tuple[str, ...]] = []
        """The graphs of each execute."""
        self.arithmetic = arithmetic
        self._emulator = emulator
        self._left = most_bytes
        self._at: dict[tuple[str, int], int] = {}
        """The node that is in a slot, by queue and slot."""
        self._sums: dict[str, int] = {}
        """The last result of each gradient op; it is the sum where no ram holds one."""
        self.inputs = 0
        """Number of inputs that ran."""
        self.pushed: list[tuple[int, str, int]] = []
        """Each push into a queue: inputs so far with its own, the queue, and the number of entries after the push."""
        self.beyond: set[str] = set()
        """Queues of which entries are read that are not between their pointers."""
        self.begun: Mapping[str, tuple[int, ...]] = {}
        """The slots between the pointers of each queue before the run."""
        self.left: Mapping[str, tuple[int, ...]] = {}
        """The slots between the pointers of each queue after the run."""
        self.netlist = emulator.netlist
        stores = Counter(id(channel.view.store) for channel in emulator.channels.values())
        self._shared = {name for name, channel in emulator.channels.items() if stores[id(channel.view.store)] > 1}
        self._slices: dict[tuple[int, int], tuple[int, int]] = {}
        """The node and its slice in each z-slice of rams with several views, by store and z-slice."""

    # ------------------------------------------------------------------------------------------------- recording
    def __call__(self, plan: Plan, chunk: Chunk) -> None:
        """Record all values of an input that is about to run, by computing them. Raises UnsupportedError for a chunk of
        several inputs, and where the values exceed the memory limit."""
        if chunk.inputs != 1:
            raise UnsupportedError("a run is recorded one input at a time (Emulator(inputs_at_once=1))")
        channels = self._emulator.channels
        self.inputs += 1
        self.beyond |= beyond(channels, chunk)
        numbers: dict[int, int] = {}  # of nodes, by the plan's number of the value
        for step in plan.steps:
            match step:
                case Read():
                    numbers[step.value] = self._node_of_entry(step, channels[step.queue], chunk.reads[step.queue][0])
                case Convert():
                    numbers[step.value] = self._add_computed_node(step, (numbers[step.source],), step.format)
                case Run():
                    numbers[step.value] = self._record_op(step, plan, chunk, numbers)
                case Same():
                    pass
        for push in plan.pushes:
            slot = chunk.writes[push.queue][0]
            number = self._add_computed_node(push, (numbers[push.value],), self.netlist.queues[push.queue].df)
            channel = channels[push.queue]
            self._store_node(number, channel, slot)
            if isinstance(channel, Fifo):
                self.pushed.append((self.inputs, push.queue, channel.ring.occupancy))

    def epoch(self, graphs: tuple[str, ...]) -> None:
        """Begin an execute of `graphs`: nodes that are added from now on belong to it."""
        self.epochs.append(graphs)

    def _node_of_entry(self, step: Read, channel: Fifo | Ram, slot: int) -> int:
        """Return the number of the node that is in a slot. If nothing was recorded there, or the slot has other bits
        (the host wrote it), a node without inputs is added for it."""
        value = self.arithmetic.read(channel, slot, flat=step.flat)
        if step.queue in self._shared:
            number = self._join_views(channel, slot, value)
        else:
            number = self._at.get((step.queue, slot))
        if number is None or not self._has_bits(number, value):
            df = self.netlist.queues[step.queue].df
            number = self._add_node(Node(number=0, step=None, inputs=(), value=value, df=df, epoch=self._present_epoch))
            self._store_node(number, channel, slot)
        self.nodes[number].last_epoch = self._present_epoch
        return number

    def _store_node(self, number: int, channel: Fifo | Ram, slot: int) -> None:
        """Record that a slot holds the node `number` from now on; the node takes its name and place from it."""
        node = self.nodes[number]
        node.queue = channel.name
        node.slot = slot
        self._at[channel.name, slot] = number
        if channel.name in self._shared:
            for place, at in enumerate(sorted(channel.view.slices(slot))):
                self._slices[at] = number, place

    def _join_views(self, channel: Fifo | Ram, slot: int, value: Value) -> int | None:
        """Return the node of a ram's entry of which views of the same memory may have written parts; None where none
        did. Parts of several nodes are joined in a new node. Raises UnsupportedError where parts are in other
        formats."""
        places = sorted(channel.view.slices(slot))
        if not any(at in self._slices for at in places):
            return None
        df = self.netlist.queues[channel.name].df
        unknown = [place for place, at in enumerate(places) if at not in self._slices]
        if unknown:  # the host wrote these
            number = self._add_node(
                Node(
                    number=0,
                    step=None,
                    inputs=(),
                    value=value,
                    df=df,
                    epoch=self._present_epoch,
                    queue=channel.name,
                    slot=slot,
                )
            )
            self._slices |= {places[place]: (number, place) for place in unknown}
        parts = [self._slices[at] for at in places]
        if any(self.nodes[number].df != df for number, _ in parts):
            raise UnsupportedError(f"ram {channel.name}: views in different formats (NETLIST 1.10) are not recorded")
        numbers = tuple(dict.fromkeys(number for number, _ in parts))
        size = value.shape[1] // len(places)
        if parts == [(numbers[0], place) for place in range(self.nodes[numbers[0]].value.shape[1] // size)]:
            return numbers[0]
        return self._add_computed_node(
            Joined(tuple((numbers.index(number), place) for number, place in parts), size), numbers, df
        )

    def finish(self) -> None:
        """End the record after the run: nodes are made for the last entries of rams with several views, as the host
        reads them."""
        for queue, slot in [place for place in self._at if place[0] in self._shared]:
            self._at[queue, slot] = self._node_of_entry(Read(queue, -1), self._emulator.channels[queue], slot)

    def _has_bits(self, number: int, value: Value) -> bool:
        """Return whether the value that was recorded for node `number` has the shape and bits of `value`."""
        recorded = self.nodes[number].value
        return recorded.shape == value.shape and self.arithmetic.equal(recorded, value)

    def _record_op(self, step: Run, plan: Plan, chunk: Chunk, numbers: Mapping[int, int]) -> int:
        """Compute an op's result, add its node, and return the node's number. `numbers` are the nodes of the plan's
        values so far."""
        inputs = tuple(numbers[value] for value in step.inputs)
        before = None
        if step.op.gradient_op:
            before = self._node_of_previous_sum(step, chunk)
        if before is not None:
            inputs = (*inputs, before)
        if step.device is not None:
            df = plan.labels[step.value]
        else:
            df = step.op.out_df
        number = self._add_computed_node(step, inputs, df, plan.tiles[step.value], sums=before is not None)
        if step.op.gradient_op:
            self._sums[step.op.name] = number
        return number

    def _node_of_previous_sum(self, step: Run, chunk: Chunk) -> int | None:
        """Return the node that a gradient op adds its result to: its ram's entry, else its own last result. None where
        a new sum begins."""
        channels = self._emulator.channels
        fed = [(queue, channels[queue]) for queue in step.fed]
        if any(channel.zero for _, channel in fed):
            return None
        for queue, channel in fed:
            if isinstance(channel, Ram):
                slot = chunk.writes[queue][0]
                if not channel.view.label(slot):
                    return None
                return self._node_of_entry(Read(queue, -1), channel, slot)
        return self._sums.get(step.op.name)

    def _add_computed_node(
        self,
        step: Run | Convert | Push | Joined,
        inputs: tuple[int, ...],
        df: str,
        tiles: int = 0,
        *,
        sums: bool = False,
    ) -> int:
        """Compute a value from the nodes `inputs`, add its node, and return the node's number. `tiles` is the size of
        an op's result; `sums` tells whether the last input is the sum that a gradient op adds to."""
        node = Node(number=0, step=step, inputs=inputs, value=None, df=df, epoch=self._present_epoch, sums=sums)
        node.value = self._compute(node, [self.nodes[number].value for number in inputs], tiles)
        number = self._add_node(node)
        for source in dict.fromkeys(inputs):
            self.nodes[source].readers.append(number)
            self.nodes[source].last_epoch = self._present_epoch
        return number

    def _add_node(self, node: Node) -> int:
        """Add a node, give it the next number, and return that. Raises UnsupportedError where its value exceeds the
        memory limit."""
        node.number = len(self.nodes)
        self._left -= node.value.nbytes
        if self._left < 0:
            raise UnsupportedError(
                "the values of the whole run do not fit the memory limit: give fewer inputs, or a higher --memory-limit"
            )
        self.nodes.append(node)
        return node.number

    @property
    def _present_epoch(self) -> int:
        """The number of the execute that runs now, -1 before the first."""
        return len(self.epochs) - 1

    def recompute(self, number: int, units: "WatchedUnits") -> Value:
        """Compute the op of node `number` once more from clean inputs, on `units` (precision "device"), and return the
        result. The trace does not change."""
        node = self.nodes[number]
        return self._compute(node, [self.nodes[source].value for source in node.inputs], units=units)

    def _compute(self, node: Node, inputs: list[Value], tiles: int = 0, units: "WatchedUnits | None" = None) -> Value:
        """Return the value that a node's step makes of `inputs`, its inputs' values (the last is popped if it is a
        sum). `tiles` is the size of an op's result, 0 for that of the node's present value; `units` as for
        `recompute`."""
        match node.step:
            case Run():
                previous = None
                if node.sums:
                    previous = inputs.pop()
                tiles = tiles or node.value.shape[1]
                return self.arithmetic.run(node.step, inputs, previous, tiles, node.df, units)
            case Convert():
                return self.arithmetic.convert(node.step, inputs[0])
            case Push():
                return self.arithmetic.arrange(node.step, inputs[0])
            case Joined():
                size = node.step.tiles
                parts = [inputs[of][:, place * size : (place + 1) * size] for of, place in node.step.parts]
                return self.arithmetic.join(parts)
            case None:
                raise AssertionError("an entry that was there is not made")

    # --------------------------------------------------------------------------------------------------- changing
    def outputs(self) -> dict[tuple[str, int], int]:
        """Return, by queue and slot, the nodes that the host reads after the run: in queues and rams that ops fill,
        without queues that ops read. Where none remains, all that ops fill count."""
        netlist = self.netlist
        read = set(chain.from_iterable(op.inputs for op in netlist.ops.values()))
        filled = {place: number for place, number in self._at.items() if not netlist.queues[place[0]].host_fed}
        outputs: dict[tuple[str, int], int] = {}
        for (name, slot), number in filled.items():
            if netlist.queues[name].is_ram or name not in read:
                outputs[name, slot] = number
        return outputs or filled

    def propagate(
        self, spoils: Mapping[int, Spoil], seen_by: int | None = None, operand: int = -1, guard: Guard | None = None
    ) -> tuple[dict[int, Value], int]:
        """Change the values of some nodes, and compute again what depends on them; the trace itself does not change.
        Returns the new values of nodes that differ by number ({} if none), and the number of nodes that were computed.
        With `seen_by`, the number of a node, only this reader sees the changed value, as its operand number `operand`.
        `guard` is applied to each result of an op that may differ. Raises the errors that an op raises."""
        arithmetic = self.arithmetic
        differ: dict[int, Value] = {}
        if seen_by is None:
            queue = sorted(spoils)
        else:
            queue = [seen_by]
        queued = set(queue)
        computed = 0
        while queue:
            node = self.nodes[heappop(queue)]
            value = node.value
            if node.number == seen_by or not differ.keys().isdisjoint(node.inputs):
                inputs = [differ[source] if source in differ else self.nodes[source].value for source in node.inputs]
                if node.number == seen_by:
                    (spoil,) = spoils.values()
                    inputs[operand] = spoil(inputs[operand])
                value = self._compute(node, inputs)
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
    """Return the queues from which this input reads an entry that is not between the pointers. They have already moved
    for this input."""
    queues: set[str] = set()
    for queue, slots in chunk.reads.items():
        channel = channels[queue]
        if isinstance(channel, Fifo):
            ring = channel.ring
            popped = channel.global_rdptr_autoinc
            between = {ring.slot(ring.rd - popped + place) for place in range(ring.occupancy + popped)}
            if not between.issuperset(slots):
                queues.add(queue)
    return queues
