"""Arguments of `buda-emu check`."""

import argparse
from collections.abc import Iterable, Iterator

from buda_emu.app.cli.findings import add_rule_options
from buda_emu.app.cli.shared_arguments import FORMATS, add_arch, add_cluster, add_frontend, add_group, add_shared
from buda_emu.app.documents.kinds import KINDS, NETLIST, Kind, kinds
from buda_emu.emulator.options import Cache

EXAMPLE = "buda-emu check net.yaml model.tti --strict"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `check`: those that its use as a hook shares, and the baseline."""
    add_options(parser, None)
    add_shared(parser, "--baseline")


def add_options(parser: argparse.ArgumentParser, only: Kind | None) -> None:
    """Add the options of a check of one kind of document; with None, those of all kinds, and the fixes and the
    cache."""
    if only is None:
        subject = "netlists, device images (.tti), ...: recognised by their content"
        stdin = "; -: a netlist from standard input"
    else:
        subject = f"{only.words}s"
        stdin = ""
    parser.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help=f"{subject}; for a folder, all of these in it and in the folders below it{stdin}",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format", choices=(*FORMATS, "concise"), default="text", help="how findings are printed; concise: a line each"
    )
    form.add_argument("--json", action="store_const", const="json", dest="format", help="as --format json")
    parser.add_argument(
        "--statistics", action="store_true", help="instead of the findings a line for each rule with their number"
    )
    add_rule_options(parser)
    if only is None:
        _add_arch(parser)
    if only is None or only.archs:
        parser.add_argument("--strict", action="store_true", help="rules of the device are errors, not warnings")
    if only is None or only.name == "schedule":
        add_frontend(parser, required=False)
    if only is None or only.name == "package":
        parser.add_argument(
            "--runtime", type=int, metavar="N", help="judge packages as a driver of this version does (14)"
        )
    if only is None:
        _add_fixes(parser)
        add_cluster(parser, "; with --strict")
        add_shared(parser, "--only-documents")
        add_group(parser, Cache)


def _add_arch(parser: argparse.ArgumentParser) -> None:
    """Add --arch, whose help and choices name the architectures of all kinds of documents."""
    suffix = "".join(f"; of {kind.words}s: {', '.join(kind.archs)}" for kind in _kinds_with_archs(KINDS))
    add_arch(parser, others=_other_archs, help_suffix=suffix)


def _add_fixes(parser: argparse.ArgumentParser) -> None:
    """Add the options that fix netlists."""
    group = parser.add_argument_group("netlists: apply fixes that a finding states exactly to the file")
    group.add_argument("--fix", action="store_true", help="make the safe fixes, then check again")
    group.add_argument(
        "--unsafe-fixes", action="store_true", help="with --fix or --diff: also the others; review the result"
    )
    group.add_argument(
        "--diff", action="store_true", help="print what --fix would change, write nothing; exit code 1 if anything"
    )


def _other_archs() -> Iterator[str]:
    """Yield the architectures of documents other than netlists, including kinds that other packages declare."""
    for kind in _kinds_with_archs(kinds()):
        yield from kind.archs


def _kinds_with_archs(among: Iterable[Kind]) -> list[Kind]:
    """Return the kinds of documents that are for other architectures than netlists."""
    return [kind for kind in among if kind.archs and kind.archs != NETLIST.archs]
