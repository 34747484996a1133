"""Routing of a netlist's epochs, from pipes to streams."""

from collections.abc import Container, Iterator

from buda_emu.netlist.model import Netlist
from buda_emu.performance.routing.pipes.build import build
from buda_emu.performance.routing.pipes.epoch import Epoch, epochs
from buda_emu.performance.routing.pipes.model import PipeGraph
from buda_emu.performance.routing.pipes.model import Refusal as RefusedPipes
from buda_emu.performance.routing.streams.model import Place, Refusal, Routed
from buda_emu.performance.routing.streams.route import require_arch, route
from buda_emu.spec.boards import Cluster
from buda_emu.support.errors import UnsupportedError
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class RoutedEpoch:
    """The routing of one temporal epoch. `pipes` is None if the epoch cannot be turned into pipes; `routed` then has
    the refusals."""

    number: int
    graphs: tuple[str, ...]
    pipes: PipeGraph | None
    routed: Routed


def route_netlist(netlist: Netlist, *, phases: bool = False, cluster: Cluster | None = None) -> Iterator[RoutedEpoch]:
    """Yield the routing of each epoch that programs execute. With `phases` the phases of streams are counted. `cluster`
    describes the links between chips of wormhole_b0.

    Raises UnsupportedError for architectures other than grayskull and wormhole_b0, and, without a cluster, for data
    that crosses chips over Ethernet other than through copies with channels.
    """
    for epoch in epochs(netlist, cluster):
        yield _route_epoch(epoch, phases)


def route_epochs(netlist: Netlist, numbers: Container[int]) -> dict[int, RoutedEpoch | str]:
    """Return, for each of these epochs by number, its routing, or the reason (text) why it cannot be routed. Epochs
    that no program executes are missing. Chips are taken to have no links."""
    routed_epochs: dict[int, RoutedEpoch | str] = {}
    for epoch in epochs(netlist):
        if epoch.number in numbers:
            try:
                routed_epochs[epoch.number] = _route_epoch(epoch, phases=False)
            except UnsupportedError as error:
                routed_epochs[epoch.number] = str(error)
    return routed_epochs


def _route_epoch(epoch: Epoch, phases: bool) -> RoutedEpoch:
    """Make the pipes of an epoch, and route them unless a pipe is refused; the refusals of pipes, or else those of
    streams, are part of the result. `phases`: also the phases of streams. Raises UnsupportedError for architectures
    without pipes, and for data that crosses chips in an unknown way."""
    arch = require_arch(epoch.netlist.arch_name)
    built = build(epoch)
    refused = tuple(map(_convert_refusal, built.refusals))
    if built.graph is None or refused:
        routed = Routed((), refused)
    else:
        routed = route(built.graph, arch, phases=phases)
    return RoutedEpoch(epoch.number, epoch.graphs, built.graph, routed)


def _convert_refusal(refused: RefusedPipes) -> Refusal:
    """Return a refusal of pipes as one of streams, so that results have one kind: its rule becomes `what`, and its core
    counts as one of chip 0."""
    if refused.op:
        prefix = f"{refused.op}: "
    else:
        prefix = ""
    if refused.core is None:
        place = None
    else:
        place = Place(0, *refused.core)
    number, limit = (refused.used, refused.limit) if refused.limit >= 0 else (None, None)
    return Refusal(what=refused.rule, message=f"{prefix}{refused.what}", place=place, number=number, limit=limit)
