"""`buda-emu route`: the streams that a netlist takes on each core, as the vendor's router allocates them."""

import argparse

from buda_emu.app.cli.findings import tell_findings
from buda_emu.app.cli.output import say, write_text
from buda_emu.emulator.image.opened import netlist_of
from buda_emu.netlist.rules import BOOK
from buda_emu.performance.routing.epochs import RoutedEpoch, route_netlist
from buda_emu.performance.routing.streams.document import as_yaml
from buda_emu.report.terminal.text import table
from buda_emu.spec.archs import EXTRA_STREAMS
from buda_emu.spec.boards import read_cluster
from buda_emu.support.checker.text import one_line
from buda_emu.support.errors import Exit
from buda_emu.support.garbage import no_collections

_BEFORE = ("N", "X")
"""Stages of rules that the device's compiler holds, or that end programs, before there are pipes."""
HEADERS = ("epoch", "graphs", "cores", "streams", "extra streams", "L1 bytes", "routed")


def main(args: argparse.Namespace) -> int:
    """Route every epoch. Exit code 0, or 2 where one is refused, or the netlist before; failures are raised."""
    cluster = read_cluster(args.cluster) if args.cluster is not None else None
    netlist = netlist_of(args.file, args.arch)
    tell_findings(netlist.diagnostics, args.file)
    with no_collections():
        epochs = list(route_netlist(netlist, phases=args.output is not None, cluster=cluster))
    if args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
        for epoch in epochs:
            text = as_yaml(epoch.routed, ", ".join(epoch.graphs), netlist.arch_name)
            write_text(args.output / f"epoch_{epoch.number}.yaml", text)
    say(table(HEADERS, map(_row, epochs), right=(0, 2, 3, 4, 5), prose=(1,)))
    refusals = [(epoch.number, refusal) for epoch in epochs for refusal in epoch.routed.refusals]
    for number, refusal in refusals:
        say(one_line(f"epoch {number}: {refusal.what}: {refusal.message}"))
    known = {refusal.what for _, refusal in refusals}
    before = [one for one in netlist.diagnostics if BOOK.rules[one.rule].stage in _BEFORE and one.rule not in known]
    for one in before:
        say(one_line(f"{one.where}: {one.rule}: {one.message}"))
    return Exit.REFUSED if refusals or before else Exit.OK


def _row(epoch: RoutedEpoch) -> tuple[str, ...]:
    """Extra streams and L1 are those of the core that needs most."""
    cores = epoch.routed.cores
    extra = max((core.extra_streams for core in cores), default=0)
    most = max(cores, key=lambda core: core.l1_bytes / core.available_bytes, default=None)
    l1 = "-" if most is None else f"{most.l1_bytes:,} of {most.available_bytes:,}"
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
