"""From an epoch of a netlist to its pipe graph, as the vendor's net2pipe makes it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from buda_emu.performance.routing.pipes.buffers import Buffers
from buda_emu.performance.routing.pipes.chip_rules import refused, unreachable
from buda_emu.performance.routing.pipes.core_budget import Account
from buda_emu.performance.routing.pipes.core_use import ChipCore, CoreUse, Counter, over_limits
from buda_emu.performance.routing.pipes.edge import EdgeMap
from buda_emu.performance.routing.pipes.epoch import Epoch
from buda_emu.performance.routing.pipes.ethernet import Hop
from buda_emu.performance.routing.pipes.granularity import Cut, op_cut, queue_cut
from buda_emu.performance.routing.pipes.hops import Hops
from buda_emu.performance.routing.pipes.links import Links
from buda_emu.performance.routing.pipes.make_pipes import PipeMaker, relays
from buda_emu.performance.routing.pipes.model import PipeGraph
from buda_emu.performance.routing.pipes.nocs import Nocs, with_readers
from buda_emu.performance.routing.pipes.ops.edges import OpEdges, op_edges, queue_edge
from buda_emu.performance.routing.pipes.ops.general import is_drainer
from buda_emu.performance.routing.pipes.refusal import Refusal, RefusedError
from buda_emu.performance.routing.pipes.source_map import within_bounds
from buda_emu.support.garbage import no_collections

MOST_TILES: Final = 1 << 23
"""Of all edges of an epoch: ten times what the largest public netlist has."""


@dataclass(slots=True)
class Built:
    """An epoch with its graph, or with what refuses it."""

    epoch: Epoch
    graph: PipeGraph | None
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    use: Mapping[ChipCore, CoreUse] = field(default_factory=dict[ChipCore, CoreUse])
    """What the pipes take of each worker core."""
    edges: Mapping[str, OpEdges] = field(default_factory=dict[str, OpEdges])
    """Those of each op, where there is a graph."""


@dataclass(slots=True)
class Plan:
    """What the buffers and pipes of an epoch follow from: edges of ops and of queues, pieces of what is read."""

    edges: dict[str, OpEdges] = field(default_factory=dict[str, OpEdges])
    queue_edges: dict[str, EdgeMap] = field(default_factory=dict[str, EdgeMap])
    cuts: dict[str, Cut] = field(default_factory=dict[str, Cut])


def build(epoch: Epoch) -> Built:
    """The pipe graph of an epoch, or its refusals. UnsupportedError where tiles go from chip to chip, and for too many
    tiles."""
    with no_collections():
        return _build(epoch)


def _build(epoch: Epoch) -> Built:
    refusals = [*badly_executed(epoch), *refused(epoch)]
    if refusals:
        return Built(epoch, None, refusals)
    plan = plan_of(epoch, refusals)
    if refusals:
        return Built(epoch, None, refusals)
    try:
        return _built(epoch, plan)
    except RefusedError as error:
        return Built(epoch, None, [error.refusal()])


def plan_of(epoch: Epoch, refusals: list[Refusal]) -> Plan:
    """Edges and pieces; what is refused is added to `refusals`, and its edges are left out."""
    plan = Plan()
    tiles, count = 0, epoch.input_count
    for op in epoch.ops.values():
        if not epoch.readers.get(op.name) and not is_drainer(op):
            what = "nothing reads its result"
            refusals.append(
                Refusal(rule="V336", what=what, hint="add a queue that it feeds, or leave it out", op=op.name)
            )
        try:
            edges = plan.edges[op.name] = op_edges(epoch.inputs(op), count, epoch.prologue)
            tiles += sum(edge.tiles for edge in edges.maps)
        except RefusedError as error:
            refusals.append(error.refusal(op.name))
        for queue in epoch.fed.get(op.name, ()):
            try:
                edge = plan.queue_edges[queue.name] = queue_edge(queue, op, count)
                tiles += edge.tiles
            except RefusedError as error:
                refusals.append(error.refusal(queue.name))
        within_bounds(tiles, MOST_TILES)
    if not refusals:
        _cut(epoch, plan, refusals)
    return plan


def badly_executed(epoch: Epoch) -> Iterator[Refusal]:
    """What net2pipe refuses of the names of graphs and of how programs execute them."""
    for graph in epoch.graphs:
        if len(graph) < 2:
            yield Refusal(rule="V346", what=f"{graph} is a name of one character", hint="give the graph a longer name")
    if epoch.skipped:
        what = f"the earlier graph {epoch.skipped[0]} is never executed"
        yield Refusal(rule="V347", what=what, hint="execute it, put it after the others, or leave it out")
    for graph, queue in epoch.unsteady.items():
        what = f"{graph} is executed with different prologue or epilogue of {queue}"
        yield Refusal(rule="V348", what=what, hint="use a second graph")


def _cut(epoch: Epoch, plan: Plan, refusals: list[Refusal]) -> None:
    for op in epoch.ops.values():
        try:
            plan.cuts[op.name] = op_cut(epoch, op, plan.edges, plan.queue_edges)
            for queue in epoch.queues_of(op):
                if queue.name not in plan.cuts:
                    plan.cuts[queue.name] = queue_cut(epoch, queue, plan.edges)
        except RefusedError as error:
            refusals.append(error.refusal(op.name))


def _built(epoch: Epoch, plan: Plan) -> Built:
    queues = epoch.netlist.queues
    buffers = Buffers(epoch, plan.edges, plan.cuts)
    pipes = PipeMaker(epoch, plan.edges, plan.queue_edges, plan.cuts, buffers)
    pipes.make()
    apart = list(unreachable(epoch, pipes.made))
    if apart:
        return Built(epoch, None, apart)
    counter = Counter(epoch, buffers, pipes)
    use = counter.counted()
    refusals = list(over_limits(use, buffers))
    if refusals:
        return Built(epoch, None, refusals, use)
    hops: dict[int, Hop] = {}
    if epoch.links is not None:
        hops = _over_links(epoch.links, Account(epoch, buffers, plan.cuts, counter, pipes.made), pipes)
    nocs = Nocs(epoch, buffers, pipes)
    sizes = [
        0
        if one.link or one.from_relay or one.reader in queues or not (cut := plan.cuts[one.source]).scattered
        else cut.tiles
        for one in pipes.made
    ]
    found = with_readers(epoch, pipes.made, nocs.routed(), sizes)
    made = (*buffers.emitted(nocs.ports), *relays(epoch, buffers, pipes, hops))
    graph = PipeGraph(epoch.graphs[0], made, tuple(found))
    return Built(epoch, graph, [], use, plan.edges)


def _over_links(links: Links, account: Account, pipes: PipeMaker) -> dict[int, Hop]:
    """Lay what crosses chips over links: `pipes` has what became of them; the relays."""
    hops = Hops(links, account, pipes.made)
    hops.lay()
    pipes.made = list(hops.drafts.values())
    for id, hop in hops.made.items():
        account.buffers.core[id] = hop.at.place
        if hop.at.channel >= 0:
            account.buffers.ops.channel[id] = hop.at.channel
    return hops.made
