"""Places a training so that its stored activations fit the chip's memory, or the limit that the caller sets."""

from dataclasses import dataclass, replace
from math import prod

from buda_emu.checker.text import plural
from buda_emu.compiler.compilation import Compilation
from buda_emu.compiler.graph.graph import Graph
from buda_emu.compiler.place.memory import MemoryFullError, buffer_bytes
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.train.recompute import Crossing
from buda_emu.errors import HostError

MIB = 1 << 20
LEAST = 1 / 64
"""Share of what is stored at most; below, all that can be is computed again."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What lies in DRAM between forward and backward pass: `bytes` of all microbatches in these `queues`; `again`:
    values of the forward pass that the backward pass computes itself."""

    bytes: int
    queues: tuple[str, ...]
    again: tuple[str, ...]

    def __str__(self) -> str:
        """A line, and one of what is computed again."""
        text = f"stored for the backward pass: {self.bytes / MIB:.2f} MiB in {plural(len(self.queues), 'queue')}"
        return f"{text}\ncomputed again: {', '.join(self.again) or 'nothing'}"


def fitted(
    compilation: Compilation, graph: Graph, entries: int, mib: float | None
) -> tuple[tuple[Graph, Placement, str], Stored]:
    """A placed training that computes as little again as memory allows: what is stored is measured in the queues of the
    placement, and less is stored until it fits. `mib` of DRAM may be taken, None: what the chip has. Raises
    UnsupportedError, HostError where it cannot."""
    if mib is not None and mib < 0:
        raise HostError(f"compile: activations_mib={mib}")
    graph = compilation.prepared(graph)
    crossing = Crossing(graph)
    share, done = float(mib != 0), ("",)  # where nothing may be stored, all is computed again that can be
    while True:
        again = crossing.within(int(crossing.most() * share))
        last = share == 0
        share = share / 2 if share > LEAST else 0.0
        if again == done and not last:
            continue
        done = again
        made = crossing.applied(again)
        for effort in dict.fromkeys(("low", compilation.objective.effort)):  # what does not fit is not searched
            try:
                found = replace(compilation, objective=replace(compilation.objective, effort=effort)).lowered(
                    made, entries=entries
                )
            except MemoryFullError:
                if last:
                    raise
                break
            queues = between_programs(found[1])
            size = sum(queues.values())
            if mib is not None and size > mib * MIB:
                if last:
                    raise HostError(f"compile: activations_mib={mib}: at least {size / MIB:.2f} MiB have to be stored")
                break
            if effort == compilation.objective.effort:
                return found, Stored(size, tuple(queues), again)


def between_programs(found: Placement) -> dict[str, int]:
    """Bytes of each queue that one program writes and another reads."""
    readers: dict[str, set[str]] = {}
    for placed in found.ops.values():
        for use in placed.op.uses:
            readers.setdefault(use.source, set()).add(placed.op.program)
    queues: dict[str, int] = {}
    for tensor, name in found.between.items():
        if readers.get(tensor, set()) - {found.ops[tensor].op.program}:
            queue = found.queues[name]
            queues[name] = buffer_bytes(found.target, queue) * prod(queue.blocks.grid)
    return queues
