"""Makes the pipe graph of an epoch, as the vendor's net2pipe does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from buda_emu.netlist.model import Op, Queue
from buda_emu.performance.routing.pipes.buffers import Buffers
from buda_emu.performance.routing.pipes.core_budget import Account
from buda_emu.performance.routing.pipes.core_use import ChipCore, CoreUse, Counter, over_limits
from buda_emu.performance.routing.pipes.edge import EdgeMap
from buda_emu.performance.routing.pipes.epoch import Epoch
from buda_emu.performance.routing.pipes.ethernet import (
    Hop,
    chip_of_result,
    chips,
    is_after,
    is_remote,
    missing_channels,
    off_links,
    over_pcie,
    unsupported_by_ethernet,
)
from buda_emu.performance.routing.pipes.granularity import Granularity, op_cut, queue_cut
from buda_emu.performance.routing.pipes.hops import Hops
from buda_emu.performance.routing.pipes.links import Links
from buda_emu.performance.routing.pipes.make_pipes import Draft, PipeMaker, relays
from buda_emu.performance.routing.pipes.model import PipeGraph, Refusal, RefusedError
from buda_emu.performance.routing.pipes.nocs import Nocs, finish_pipes
from buda_emu.performance.routing.pipes.ops.edges import OpEdges, op_edges, queue_edge
from buda_emu.performance.routing.pipes.ops.general import is_drainer, is_ethernet
from buda_emu.performance.routing.pipes.source_map import within_bounds
from buda_emu.support.errors import UnsupportedError
from buda_emu.support.garbage import no_collections

_NOWHERE: Final = -1
"""The chip to which a copy without dest_device goes: none."""
_LOCAL: Final = "keep it on the chip of the op"


def find_refusals(epoch: Epoch) -> Iterator[Refusal]:
    """Yield the refusals of net2pipe for an epoch that follow from its ops and queues alone, before pipes are made.
    Raises UnsupportedError for a copy between chips, or an op that reads a result of another chip, where pipes cannot
    be made because no cluster description is given."""
    if nowhere := [*_off_cluster(epoch)] or [*_unlinked_chips(epoch)]:
        yield from nowhere
        return
    yield from _refuse_missing_channels(epoch)
    yield from _refuse_missing_cores(epoch)
    if over_pcie(epoch.netlist):
        yield from _refuse_broken_ring(epoch)
    yield from _refuse_unread_operands(epoch)
    for op in epoch.ops.values():
        if is_ethernet(op):
            misplaced = [*_without_ethernet(epoch, op)]
            yield from misplaced
            if misplaced:
                continue
            yield from _copy_refusals(epoch, op)
        for index in range(len(op.inputs)):
            yield from _input_refusals(epoch, op, index)
        yield from _output_refusals(epoch, op)


def _without_ethernet(epoch: Epoch, op: Op) -> Iterator[Refusal]:
    """Yield the refusal of a copy on a chip without Ethernet cores, or without a destination."""
    if not epoch.netlist.arch.eth_cores:
        message = f"{epoch.netlist.arch.name} has no Ethernet cores"
        yield Refusal(rule="V159", what=message, hint="read the op on the other chip", op=op.name)
    elif op.attributes.dest_device == _NOWHERE:
        message = "dest_device is missing: it goes to no chip"
        yield Refusal(rule="V366", what=message, hint="name the chip that it goes to", op=op.name)


def _input_refusals(epoch: Epoch, op: Op, index: int) -> Iterator[Refusal]:
    """Yield the refusals of input `index` if its source is not there, or on a chip from which the op cannot read it.
    Raises UnsupportedError for an op's result on another chip if no cluster description is given."""
    netlist = epoch.netlist
    name = op.inputs[index]
    if name not in netlist.queues and name not in epoch.ops:
        message = f"{name} is an op of a graph that is not executed together with this one"
        yield Refusal(rule="V126", what=message, hint="execute both", op=op.name, input=index)
        return
    source = epoch.source(name)
    if isinstance(source, Op):
        if chip_of_result(source) in (op.target_device, _NOWHERE):
            return
        if not over_pcie(netlist) and epoch.links is None:
            raise UnsupportedError(
                f"op {op.name} reads {name} from another chip: no pipes are made of that without a cluster "
                "description, which is not given"
            )
    elif not is_remote(source, op):
        return
    elif name in epoch.prologue:
        message = f"a prologue would load {name} from chip {source.target_device}"
        yield Refusal(rule="V161", what=message, hint=_LOCAL, op=op.name, input=index)
    location = f"{name} is on chip {source.target_device}"
    yield from _check_reach(epoch, op, source.target_device, location, index)
    yield from _small_tiles(epoch, source, op.name, location, index)


def _output_refusals(epoch: Epoch, op: Op) -> Iterator[Refusal]:
    """Yield the refusals of the queues that an op feeds if they are on chips to which it cannot write."""
    for queue in epoch.fed.get(op.name, ()):
        if queue.loc != "host" and queue.target_device != chip_of_result(op):
            location = f"{queue.name} is on chip {queue.target_device}"
            if not over_pcie(epoch.netlist) and epoch.links is None:
                yield Refusal(rule="V338", what=f"{location}, to which nothing writes", hint=_LOCAL, op=op.name)
            yield from _check_reach(epoch, op, queue.target_device, location)
            yield from _small_tiles(epoch, op, op.name, location)


def _copy_refusals(epoch: Epoch, op: Op) -> Iterator[Refusal]:
    """Yield the refusals of a copy between chips. Raises UnsupportedError if no pipes are made of it, because no
    channels are known."""
    if message := off_links(epoch, op):
        yield Refusal(rule="V363", what=message, hint="name both ends of one link", op=op.name)
    elif message := unsupported_by_ethernet(epoch, op):
        yield Refusal(rule="V368", what=message, hint="let another op do that before or after it", op=op.name)
    elif why := missing_channels(epoch, op):
        raise UnsupportedError(f"op {op.name}: no pipes are made of this {op.type}: {why}")


def _small_tiles(epoch: Epoch, source: Queue | Op, op: str, location: str, index: int = -1) -> Iterator[Refusal]:
    """Yield a refusal if data that crosses chips over a cluster's links has tiles other than 32 by 32. `location` says
    where the data is; `index` is the op's input, -1 for its result."""
    if epoch.links is not None and source.blocking.tile_dim != (32, 32):
        message = f"{location}, and relays have tiles of 32 by 32 only"
        yield Refusal(rule="V368", what=message, hint=_LOCAL, op=op, input=index)


def _off_cluster(epoch: Epoch) -> Iterator[Refusal]:
    """Yield refusals of queues and graphs on chips that the cluster does not have; none without a cluster."""
    if epoch.links is None:
        return
    cluster_chips = epoch.links.cluster.places
    queues = epoch.netlist.queues
    graphs = epoch.netlist.graphs
    entries = [("queue", queue.name, queue.target_device) for queue in queues.values()]
    entries += [("graph", graph.name, graph.target_device) for graph in graphs.values()]
    for kind, name, chip in entries:
        if chip not in cluster_chips:
            message = f"{kind} {name} is on chip {chip}, the cluster has chips {', '.join(map(str, cluster_chips))}"
            yield Refusal(rule="V160", what=message, op=name if kind == "queue" else "")


def _unlinked_chips(epoch: Epoch) -> Iterator[Refusal]:
    """Yield refusals of chips of an epoch of several chips that no link of the cluster reaches."""
    chips = {epoch.netlist.graphs[graph].target_device for graph in epoch.graphs}
    if epoch.links is None or len(chips) < 2:
        return
    for chip in sorted(chips - epoch.links.ends.keys()):
        message = f"chip {chip} runs a graph of it, and no link of the cluster leads there"
        yield Refusal(rule="V367", what=message, hint="run the graph in its own epoch")


def _refuse_unread_operands(epoch: Epoch) -> Iterator[Refusal]:
    """Yield refusals of operands that no kernel reads."""
    for op in epoch.ops.values():
        fused = epoch.fused_use_of(op)
        for index in range(len(op.inputs)):
            if fused is not None:
                unread = f"input{index}" not in fused.readers
            else:
                unread = index > 0 and _reads_one_operand(op)
            if unread:
                message = f"input {index}, {op.inputs[index]}, is read by nothing of the op"
                yield Refusal(rule="V361", what=message, hint="leave it out", op=op.name, input=index)


def _reads_one_operand(op: Op) -> bool:
    """Return whether the op reads only its first operand: a reduce, or flat data without an index (a tilizer)."""
    return op.has("reduces") or (op.has("reads flat data") and not op.has("row-wise index"))


def _refuse_missing_channels(epoch: Epoch) -> Iterator[Refusal]:
    """Yield refusals of queues in DRAM channels that the chip does not have (NETLIST 2.1), of which `check` without
    `--strict` only warns."""
    arch = epoch.netlist.arch
    queues = {queue.name: queue for queue in chain.from_iterable(map(epoch.queues_of, epoch.ops.values()))}
    for queue in queues.values():
        if queue.loc == "dram":
            wrong_channels = [
                buffer.channel for buffer in queue.buffers if not 0 <= buffer.channel < arch.dram_channels
            ]
        else:
            wrong_channels = []
        if wrong_channels:
            message = f"DRAM channel {wrong_channels[0]}, {arch.name} has channels 0 to {arch.dram_channels - 1}"
            yield Refusal(rule="V151", what=message, hint="use one of these channels", op=queue.name)


def _refuse_missing_cores(epoch: Epoch) -> Iterator[Refusal]:
    """Yield refusals of ops that reach beyond the chip's worker cores (NETLIST 2.1), of which `check` without
    `--strict` only warns."""
    arch = epoch.netlist.arch
    for op in epoch.ops.values():
        if is_ethernet(op):
            continue
        ends = [first + size for first, size in zip(op.grid_loc, op.cores, strict=True)]
        if min(op.grid_loc) < 0 or any(end > size for end, size in zip(ends, arch.grid, strict=True)):
            message = f"is on cores up to {[end - 1 for end in ends]}, the last one of {arch.name} is"
            yield Refusal(rule="V150", what=f"{message} {[size - 1 for size in arch.grid]}", op=op.name)


def _refuse_broken_ring(epoch: Epoch) -> Iterator[Refusal]:
    """Yield refusals of an epoch whose chips reach each other over PCIe, in a ring by their numbers: if numbers are
    left out, and if the epoch has no ops."""
    used = chips(epoch.netlist)
    if used[-1] - used[0] >= len(used):
        message = f"chips {', '.join(map(str, used))} form no ring, some between them are left out"
        yield Refusal(rule="V337", what=message, hint="use chips whose numbers follow each other")
    if not epoch.ops:
        yield Refusal(rule="V345", what="an epoch without ops", hint="leave out its graphs")


def unreachable(epoch: Epoch, drafts: Sequence[Draft]) -> Iterator[Refusal]:
    """Yield refusals of pipes (`drafts`) that read a queue on another chip over Ethernet and gather or multicast, where
    no cluster is given: then a pipe can only transfer whole buffers of DRAM, each to one core."""
    if over_pcie(epoch.netlist) or epoch.links is not None:
        return
    for draft in drafts:
        queue = epoch.netlist.queues.get(draft.source)
        op = epoch.ops.get(draft.reader)
        if queue is None or op is None or not is_remote(queue, op):
            continue
        if len(draft.inputs) > 1 or len(draft.outputs) > 1 or len(draft.outputs[0]) > 1:
            message = f"{queue.name} is on chip {queue.target_device}, from which pipes neither gather nor multicast"
            hint = "cut it as the op is cut, without TMs"
            yield Refusal(rule="V338", what=message, hint=hint, op=op.name, input=draft.operand)


def _check_reach(epoch: Epoch, op: Op, chip: int, location: str, index: int = -1) -> Iterator[Refusal]:
    """Yield a refusal if an op cannot reach `chip`: over PCIe if it is no neighbour in the ring, over Ethernet without
    a cluster if it runs no graph of the epoch. `location` is the message's words for what lies there; `index` is the
    op's input, -1 for its result."""
    netlist = epoch.netlist
    if over_pcie(netlist):
        if is_after(netlist, op.target_device, chip) is None:
            message = f"{location}, chip {op.target_device} reaches its neighbours in the ring only"
            yield Refusal(
                rule="V337", what=message, hint="copy it over the chips between them", op=op.name, input=index
            )
    elif epoch.links is None and chip not in {netlist.graphs[graph].target_device for graph in epoch.graphs}:
        message = f"{location}, which runs no graph in this epoch"
        yield Refusal(rule="V339", what=message, hint="add a graph without ops on that chip", op=op.name, input=index)


MOST_TILES: Final = 1 << 23
"""The most tiles of all edges of an epoch: ten times as many as the largest public netlist has."""


@dataclass(slots=True)
class Built:
    """An epoch with its pipe graph, or with its refusals; `graph` is None then."""

    epoch: Epoch
    graph: PipeGraph | None
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    use: Mapping[ChipCore, CoreUse] = field(default_factory=dict[ChipCore, CoreUse])
    """What the pipes take of each worker core."""
    edges: Mapping[str, OpEdges] = field(default_factory=dict[str, OpEdges])
    """Those of each op, where there is a graph."""


@dataclass(slots=True)
class Plan:
    """The input of buffers and pipes: the edges (tile mappings) of ops and of queues, and into which pieces every
    source is cut."""

    edges: dict[str, OpEdges] = field(default_factory=dict[str, OpEdges])
    queue_edges: dict[str, EdgeMap] = field(default_factory=dict[str, EdgeMap])
    cuts: dict[str, Granularity] = field(default_factory=dict[str, Granularity])


def build(epoch: Epoch) -> Built:
    """Return the pipe graph of an epoch, or the refusals of the first check that fails. Raises UnsupportedError for
    tiles that go from chip to chip on an unknown way, and for too many tiles."""
    with no_collections():
        return _run_steps(epoch)


def _run_steps(epoch: Epoch) -> Built:
    """Do the work of `build`: stop at the first of its steps that yields refusals."""
    refusals = [*execution_refusals(epoch), *find_refusals(epoch)]
    if refusals:
        return Built(epoch, None, refusals)
    plan = plan_of(epoch, refusals)
    if refusals:
        return Built(epoch, None, refusals)
    try:
        return _make_graph(epoch, plan)
    except RefusedError as error:
        return Built(epoch, None, [error.refusal()])


def plan_of(epoch: Epoch, refusals: list[Refusal]) -> Plan:
    """Return the edges of an epoch's ops and queues, and the pieces of every source. Refusals are added to `refusals`;
    the plan then lacks the edges of refused ops and all pieces. Raises UnsupportedError for too many tiles."""
    plan = Plan()
    tiles = 0
    count = epoch.input_count
    for op in epoch.ops.values():
        if not epoch.readers.get(op.name) and not is_drainer(op):
            message = "nothing reads its result"
            refusals.append(
                Refusal(rule="V336", what=message, hint="add a queue that it feeds, or leave it out", op=op.name)
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
        _cut_sources(epoch, plan, refusals)
    return plan


def execution_refusals(epoch: Epoch) -> Iterator[Refusal]:
    """Yield the refusals of net2pipe for the names of graphs and for how programs execute them."""
    for graph in epoch.graphs:
        if len(graph) < 2:
            yield Refusal(rule="V346", what=f"{graph} is a name of one character", hint="give the graph a longer name")
    if epoch.skipped:
        message = f"the earlier graph {epoch.skipped[0]} is never executed"
        yield Refusal(rule="V347", what=message, hint="execute it, put it after the others, or leave it out")
    for graph, queue in epoch.unsteady.items():
        message = f"{graph} is executed with different prologue or epilogue of {queue}"
        yield Refusal(rule="V348", what=message, hint="use a second graph")


def _cut_sources(epoch: Epoch, plan: Plan, refusals: list[Refusal]) -> None:
    """Set `cuts` of the plan: the pieces of every op's result and of every queue. Refusals are added to `refusals`."""
    for op in epoch.ops.values():
        try:
            plan.cuts[op.name] = op_cut(epoch, op, plan.edges, plan.queue_edges)
            for queue in epoch.queues_of(op):
                if queue.name not in plan.cuts:
                    plan.cuts[queue.name] = queue_cut(epoch, queue, plan.edges)
        except RefusedError as error:
            refusals.append(error.refusal(op.name))


def _make_graph(epoch: Epoch, plan: Plan) -> Built:
    """Make the buffers and pipes of a plan, count what they take of each core, route them over links and NoCs, and
    return the graph, or the refusals. Raises RefusedError for pipes that cannot be made."""
    queues = epoch.netlist.queues
    buffers = Buffers(epoch, plan.edges, plan.cuts)
    pipes = PipeMaker(epoch=epoch, edges=plan.edges, queue_edges=plan.queue_edges, cuts=plan.cuts, buffers=buffers)
    pipes.make()
    crossing_refusals = list(unreachable(epoch, pipes.made))
    if crossing_refusals:
        return Built(epoch, None, crossing_refusals)
    counter = Counter(epoch, buffers, pipes)
    use = counter.count_use()
    refusals = list(over_limits(use, buffers))
    if refusals:
        return Built(epoch, None, refusals, use)
    hops: dict[int, Hop] = {}
    if epoch.links is not None:
        hops = _route_over_links(
            epoch.links,
            Account(epoch=epoch, buffers=buffers, cuts=plan.cuts, counter=counter, drafts=pipes.made),
            pipes,
        )
    nocs = Nocs(epoch, buffers, pipes)
    sizes = [
        0
        if draft.link or draft.from_relay or draft.reader in queues or not (cut := plan.cuts[draft.source]).scattered
        else cut.tiles
        for draft in pipes.made
    ]
    routed_pipes = finish_pipes(epoch, pipes.made, nocs.route_pipes(), sizes)
    all_buffers = (*buffers.emit(nocs.ports), *relays(epoch, buffers, pipes, hops))
    graph = PipeGraph(epoch.graphs[0], all_buffers, tuple(routed_pipes))
    return Built(epoch=epoch, graph=graph, refusals=[], use=use, edges=plan.edges)


def _route_over_links(links: Links, account: Account, pipes: PipeMaker) -> dict[int, Hop]:
    """Route the pipes that cross chips over links: replace `pipes.made` by the resulting pipes, note the cores of the
    new relays in the account's buffers, and return the relays by their ids. Raises RefusedError if there is no way or
    no room."""
    hops = Hops(links, account, pipes.made)
    hops.lay()
    pipes.made = list(hops.drafts.values())
    for id, hop in hops.made.items():
        account.buffers.core[id] = hop.at.place
        if hop.at.channel >= 0:
            account.buffers.ops.channel[id] = hop.at.channel
    return hops.made
