"""`buda-emu graph`: draw a netlist, ops on the core grid of each chip and epoch."""

import argparse

from buda_emu.app.cli.arguments.graph import FORMATS
from buda_emu.app.cli.findings import print_findings
from buda_emu.app.cli.output import complain, require_writable, say, write_printable
from buda_emu.emulator.image.opened import netlist_of
from buda_emu.netlist.model import Netlist
from buda_emu.performance.routing.epochs import route_netlist
from buda_emu.report.pictures.dot import dot
from buda_emu.report.pictures.grid_svg import Uses, grid_svg, uses_by_core
from buda_emu.spec.boards import read_cluster
from buda_emu.support.errors import HostError

_NOT_DRAWN = ("png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff", "pdf", "ps", "eps")


def main(args: argparse.Namespace) -> int:
    """Draw the netlist. Exit code 0; failures are raised."""
    form = _picture_format(args)
    netlist = netlist_of(args.file, args.arch)
    print_findings(netlist.diagnostics, args.file)
    _require_existing(args.epoch, [temporal.id for temporal in netlist.temporal_graphs], "epoch")
    _require_existing(args.chip, sorted({graph.target_device for graph in netlist.graphs.values()}), "chip")
    if args.output is not None:
        require_writable("-o", args.output)
    draw = dot if form == "dot" else grid_svg
    streams = None
    if args.streams:
        streams = _route_streams(netlist, args.epoch, args.cluster)
    picture = draw(netlist, epochs=args.epoch, chips=args.chip, streams=streams)
    if args.output is None:
        say(picture.rstrip("\n"))
    else:
        write_printable(args.output, picture)
    return 0


def _picture_format(args: argparse.Namespace) -> str:
    """Return --format, else the suffix of the output file, "" without one. Raises HostError for the suffix of a format
    that is not drawn."""
    if args.format is not None:
        return args.format
    if args.output is None:
        return ""
    suffix = args.output.suffix.removeprefix(".").lower()
    if suffix in _NOT_DRAWN:
        suffixes = " or ".join(f".{name}" for name in FORMATS)
        raise HostError(f"graph: {args.output}: pictures end in {suffixes}, not .{suffix}; or give --format")
    return suffix


def _route_streams(netlist: Netlist, numbers: list[int] | None, cluster: str | None) -> Uses:
    """Route the netlist and return the use of streams and L1 of each core, in the epochs `numbers` (None: all).
    Refusals are printed to standard error. `cluster` is the path of the chips' description."""
    description = None
    if cluster is not None:
        description = read_cluster(cluster)
    epochs = list(route_netlist(netlist, cluster=description))
    if numbers is not None:
        epochs = [epoch for epoch in epochs if epoch.number in numbers]
    for epoch in epochs:
        for refusal in epoch.routed.refusals:
            complain(f"buda-emu graph: epoch {epoch.number} cannot be routed: {refusal.message}")
    return uses_by_core(epochs)


def _require_existing(requested: list[int] | None, available: list[int], kind: str) -> None:
    """Raise HostError for a requested epoch or chip (`kind`) that is not among the available ones."""
    for number in requested or ():
        if number not in available:
            numbers = ", ".join(map(str, available))
            raise HostError(f"there is no {kind} {number}; those of the netlist: {numbers}")
