"""All buffers of an epoch, by what they are."""

from collections.abc import Iterator, Mapping

from buda_emu.routing.pipes.buffers.granularity import Cut
from buda_emu.routing.pipes.buffers.ids import Ids
from buda_emu.routing.pipes.buffers.op_buffers import OpBuffers, Place
from buda_emu.routing.pipes.buffers.padding import PaddingBuffers
from buda_emu.routing.pipes.buffers.queue_buffers import QueueBuffers
from buda_emu.routing.pipes.epoch import Epoch
from buda_emu.routing.pipes.model import Buffer
from buda_emu.routing.pipes.ops.edges import OpEdges


class Buffers:
    """Buffers of queues, ops, and padding, in the order in which net2pipe numbers them."""

    def __init__(self, epoch: Epoch, edges: Mapping[str, OpEdges], cuts: Mapping[str, Cut]) -> None:
        self.epoch, self.cuts, self.edges = epoch, cuts, edges
        self.ids = Ids()
        self.queues = QueueBuffers(epoch, self.ids, edges, cuts)
        self.ops = OpBuffers(epoch, self.ids, edges, cuts)
        self.padding = PaddingBuffers(epoch, self.ids, edges, cuts, self.queues)
        done: set[str] = set()
        for op in epoch.ops.values():
            self.ops.make(op)
            for queue in epoch.queues_of(op):
                if queue.name not in done:
                    done.add(queue.name)
                    self.queues.make(queue)
        self.core: dict[int, Place] = dict(self.ops.core)
        """The core of every buffer in L1."""
        self.core |= {one.id: one.core for one in self.queues.made if one.core is not None}

    def bases(self, reader: str, source: str) -> list[int]:
        """Ids of the buffers of what an op reads, core by core, or buffer by buffer of a queue."""
        if source not in self.epoch.netlist.queues:
            return self.ops.outputs[source]
        return self.queues.forks[source, reader] if source in self.epoch.prologue else self.queues.ids[source]

    def emitted(self, ports: Mapping[int, int]) -> Iterator[Buffer]:
        """All of them; `ports`: DRAM ports of queues' buffers, by id."""
        yield from self.ops.made.values()
        yield from self.queues.emitted(ports)
        yield from self.padding.made.values()
