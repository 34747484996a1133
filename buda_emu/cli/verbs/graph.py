"""`buda-emu graph`: a picture of a netlist, ops on the core grid of each chip and epoch."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from buda_emu.cli.arguments import add_arch, add_cluster
from buda_emu.cli.findings import tell_findings
from buda_emu.cli.output import complain, say, write_text
from buda_emu.errors import HostError
from buda_emu.image.opened import netlist_of
from buda_emu.report.pictures.core_use import uses_by_core

if TYPE_CHECKING:
    from buda_emu.netlist.model import Netlist
    from buda_emu.report.pictures.core_use import Uses

EXAMPLE = "buda-emu graph netlists/attention.yaml -o attention.svg"
_FORMATS = ("svg", "dot")
_NOT_DRAWN = ("png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff", "pdf", "ps", "eps")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("file", metavar="FILE", help="netlist, or device image (.tti)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to write; default: standard output")
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        help="svg: a picture for browsers; dot: for graphviz; default: as FILE ends, else svg",
    )
    parser.add_argument("--epoch", type=int, action="append", metavar="N", help="only this epoch, repeatable")
    parser.add_argument("--chip", type=int, action="append", metavar="N", help="only this chip, repeatable")
    parser.add_argument(
        "--streams", action="store_true", help="write on each core what it takes of its streams and its L1"
    )
    add_arch(parser)
    add_cluster(parser, "; with --streams")


def main(args: argparse.Namespace) -> int:
    """Draw. Exit code 0; failures are raised."""
    suffix = args.output.suffix.removeprefix(".").lower() if args.output is not None else ""
    if args.format is None and suffix in _NOT_DRAWN:
        known = " or ".join(f".{name}" for name in _FORMATS)
        raise HostError(f"graph: {args.output}: pictures end in {known}, not .{suffix}; or give --format")
    netlist = netlist_of(args.file, args.arch)
    tell_findings(netlist.diagnostics, args.file)
    _check(args.epoch, [temporal.id for temporal in netlist.temporal_graphs], "epoch")
    _check(args.chip, sorted({graph.target_device for graph in netlist.graphs.values()}), "chip")
    if (args.format or (suffix if suffix in _FORMATS else "svg")) == "dot":
        from buda_emu.report.pictures.dot import dot as draw
    else:
        from buda_emu.report.pictures.grid_svg import grid_svg as draw
    streams = _streams(netlist, args.epoch, args.cluster) if args.streams else None
    picture = draw(netlist, epochs=args.epoch, chips=args.chip, streams=streams)
    if args.output is None:
        say(picture.rstrip("\n"))
    else:
        write_text(args.output, picture)
    return 0


def _streams(netlist: "Netlist", asked: list[int] | None, cluster: str | None) -> "Uses":
    """Of the epochs that are drawn; what refuses them is told on standard error."""
    from buda_emu.routing.epochs import route_netlist
    from buda_emu.spec.cluster import read_cluster

    known = read_cluster(cluster) if cluster is not None else None
    epochs = [epoch for epoch in route_netlist(netlist, cluster=known) if asked is None or epoch.number in asked]
    for epoch in epochs:
        for refusal in epoch.routed.refusals:
            complain(f"buda-emu graph: epoch {epoch.number} cannot be routed: {refusal.message}")
    return uses_by_core(epochs)


def _check(asked: list[int] | None, known: list[int], what: str) -> None:
    for item in asked or ():
        if item not in known:
            raise HostError(f"there is no {what} {item}; the netlist has {', '.join(map(str, known))}")
