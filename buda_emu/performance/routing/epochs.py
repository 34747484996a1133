"""A netlist's epochs, from pipes to streams."""

from collections.abc import Container, Iterator

from buda_emu.netlist.model import Netlist
from buda_emu.performance.routing.pipes.build import build
from buda_emu.performance.routing.pipes.epoch import Epoch, epochs
from buda_emu.performance.routing.pipes.model import PipeGraph
from buda_emu.performance.routing.pipes.refusal import Refusal as RefusedPipes
from buda_emu.performance.routing.streams.model import Place, Refusal, Routed
from buda_emu.performance.routing.streams.route import require_arch, route
from buda_emu.spec.boards import Cluster
from buda_emu.support.errors import UnsupportedError
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class RoutedEpoch:
    """One temporal epoch: `pipes` is None where its netlist cannot be turned into pipes, and `routed` says why."""

    number: int
    graphs: tuple[str, ...]
    pipes: PipeGraph | None
    routed: Routed


def route_netlist(netlist: Netlist, *, phases: bool = False, cluster: Cluster | None = None) -> Iterator[RoutedEpoch]:
    """Each epoch that programs execute, with its streams' `phases` if they are asked for. `cluster`: the links between
    chips of wormhole_b0.

    UnsupportedError for other architectures than grayskull and wormhole_b0, and, without a cluster, for what goes over
    Ethernet other than through copies with channels.
    """
    for epoch in epochs(netlist, cluster):
        yield _route_epoch(epoch, phases)


def route_epochs(netlist: Netlist, numbers: Container[int]) -> dict[int, RoutedEpoch | str]:
    """Some epochs by their numbers; for one that is not routed, the reason. Programs execute none of the others."""
    routed_epochs: dict[int, RoutedEpoch | str] = {}
    for epoch in epochs(netlist):
        if epoch.number in numbers:
            try:
                routed_epochs[epoch.number] = _route_epoch(epoch, phases=False)
            except UnsupportedError as error:
                routed_epochs[epoch.number] = str(error)
    return routed_epochs


def _route_epoch(epoch: Epoch, phases: bool) -> RoutedEpoch:
    arch = require_arch(epoch.netlist.arch_name)
    built = build(epoch)
    refused = tuple(map(_convert_refusal, built.refusals))
    routed = Routed((), refused) if built.graph is None or refused else route(built.graph, arch, phases=phases)
    return RoutedEpoch(epoch.number, epoch.graphs, built.graph, routed)


def _convert_refusal(refused: RefusedPipes) -> Refusal:
    prefix = f"{refused.op}: " if refused.op else ""
    place = None if refused.core is None else Place(0, *refused.core)
    number, limit = (refused.used, refused.limit) if refused.limit >= 0 else (None, None)
    return Refusal(what=refused.rule, message=f"{prefix}{refused.what}", place=place, number=number, limit=limit)
