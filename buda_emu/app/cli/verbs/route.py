"""`buda-emu route`: show the streams that a netlist takes on each core, as the vendor's router allocates them."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from buda_emu.app.cli.findings import print_findings
from buda_emu.app.cli.output import say, write_text
from buda_emu.emulator.image.opened import netlist_of
from buda_emu.netlist.rules import BOOK
from buda_emu.performance.routing.epochs import RoutedEpoch, route_netlist
from buda_emu.performance.routing.streams.model import as_yaml
from buda_emu.report.terminal.text import table
from buda_emu.spec.archs import EXTRA_STREAMS
from buda_emu.spec.boards import read_cluster
from buda_emu.support.checker.text import one_line
from buda_emu.support.errors import Exit
from buda_emu.support.garbage import no_collections
from buda_emu.support.output_places import make_folder

_BEFORE = ("N", "X")
"""Stages of rules that the device's compiler checks, or that end programs, before there are pipes."""
HEADERS = ("epoch", "graphs", "cores", "streams", "extra streams", "L1 bytes", "routed")


def main(args: argparse.Namespace) -> int:
    """Route every epoch. Exit code 0, or 2 if the router refuses an epoch or earlier rules refuse the netlist; other
    failures are raised."""
    cluster = None
    if args.cluster is not None:
        cluster = read_cluster(args.cluster)
    netlist = netlist_of(args.file, args.arch)
    print_findings(netlist.diagnostics, args.file)
    with no_collections():
        epochs = list(route_netlist(netlist, phases=args.output is not None, cluster=cluster))
    if args.output is not None:
        _write_streams(args.output, epochs, netlist.arch_name)
    say(table(HEADERS, map(_epoch_row, epochs), right=(0, 2, 3, 4, 5), prose=(1,)))
    refused_rules: set[str] = set()
    for epoch in epochs:
        for refusal in epoch.routed.refusals:
            refused_rules.add(refusal.what)
            say(one_line(f"epoch {epoch.number}: {refusal.what}: {refusal.message}"))
    earlier_findings = [
        diagnostic
        for diagnostic in netlist.diagnostics
        if BOOK.rules[diagnostic.rule].stage in _BEFORE and diagnostic.rule not in refused_rules
    ]
    for diagnostic in earlier_findings:
        say(one_line(f"{diagnostic.where}: {diagnostic.rule}: {diagnostic.message}"))
    return Exit.REFUSED if refused_rules or earlier_findings else Exit.OK


def _write_streams(folder: Path, epochs: Sequence[RoutedEpoch], arch: str) -> None:
    """Write the streams of each epoch to a YAML file in a folder, which is made if it is missing."""
    make_folder(folder)
    for epoch in epochs:
        text = as_yaml(epoch.routed, ", ".join(epoch.graphs), arch)
        write_text(folder / f"epoch_{epoch.number}.yaml", text)


def _epoch_row(epoch: RoutedEpoch) -> tuple[str, ...]:
    """Return the row of an epoch, under HEADERS. Extra streams and L1 are those of the core that needs most."""
    cores = epoch.routed.cores
    extra = max((core.extra_streams for core in cores), default=0)
    fullest = max(cores, key=lambda core: core.l1_bytes / core.available_bytes, default=None)
    l1 = "-"
    if fullest is not None:
        l1 = f"{fullest.l1_bytes:,} of {fullest.available_bytes:,}"
    streams = sum(len(core.streams) for core in cores)
    verdict = "refused" if epoch.routed.refusals else "yes"
    return (
        str(epoch.number),
        ", ".join(epoch.graphs),
        str(len(cores)),
        f"{streams:,}",
        f"{extra} of {len(EXTRA_STREAMS)}" if cores else "-",
        l1,
        verdict,
    )
