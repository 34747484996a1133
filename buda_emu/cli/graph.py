"""`buda-emu graph`: a picture of a netlist, ops on the core grid of each chip and epoch."""

import argparse
from pathlib import Path

from buda_emu.cli.arguments import add_arch
from buda_emu.cli.findings import tell_findings
from buda_emu.cli.output import say, write_text
from buda_emu.errors import HostError

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
    add_arch(parser)


def main(args: argparse.Namespace) -> int:
    """Draw. Exit code 0; failures are raised."""
    from buda_emu.image.opened import netlist_of

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
    picture = draw(netlist, epochs=args.epoch, chips=args.chip)
    if args.output is None:
        say(picture.rstrip("\n"))
    else:
        write_text(args.output, picture)
    return 0


def _check(asked: list[int] | None, known: list[int], what: str) -> None:
    for item in asked or ():
        if item not in known:
            raise HostError(f"there is no {what} {item}; the netlist has {', '.join(map(str, known))}")
