"""Checks a netlist against the chip's routing: its pipes and streams are made, and refusals are reported as findings of
the netlist's rules (V081, V084, V160, V320 to V364, V366 to V368).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from buda_emu.netlist import load
from buda_emu.netlist.ignores import drop_ignored
from buda_emu.netlist.load import NetlistResult, has_ignores
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.nodes import Mark
from buda_emu.netlist.rules import RULES
from buda_emu.netlist.rules.context import item_mark
from buda_emu.netlist.sourced import Sourced
from buda_emu.netlist.yaml_reader import StrPath, UnreadableError, decode, read_bytes, split_lines
from buda_emu.performance.routing.pipes.build import Built, build
from buda_emu.performance.routing.pipes.core_use import warned
from buda_emu.performance.routing.pipes.epoch import Epoch, epochs
from buda_emu.performance.routing.pipes.refusal import Refusal
from buda_emu.performance.routing.streams import model as streams
from buda_emu.performance.routing.streams.route import route
from buda_emu.spec.boards import Cluster
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.render import with_source_lines
from buda_emu.support.errors import UnsupportedError
from buda_emu.support.garbage import no_collections

ARCHS: Final = ("grayskull", "wormhole_b0")
"""Architectures whose pipes and streams are made."""

NOT_JUDGED: Final = "V359"
"""The rule of what no pipes are made for."""
RECOMMENDED: Final = ("V357", "V358", "V360")
"""Rules of what net2pipe takes, but recommends less of."""

_OF_STREAMS: Final = {
    "readers_of_a_queue": "V350",
    "ncrisc_readers": "V342",
    "ncrisc_writers": "V343",
    "kernel_inputs": "V351",
    "kernel_outputs": "V351",
    "extra_streams": "V340",
    "multicast_streams": "V344",
    "ethernet_streams": "V352",
    "operand_stream": "V353",
    "phases": "V354",
    "l1": "V355",
    "pipe_graph": "V356",
}
"""The rule of each thing that streams are refused for."""


def check(
    path: StrPath, arch: str | None = None, *, cache: bool = True, cluster: Cluster | None = None
) -> NetlistResult:
    """`netlist.check` with `strict`, and the netlist's pipes and streams, too; never raises for what is in the file."""
    result = load.check(path, arch, strict=True, cache=cache)
    if result.netlist is None:
        return result
    try:
        return with_routes(result, decode(read_bytes(path)), cluster)
    except UnreadableError as error:
        return NetlistResult(None, (error.diagnostic(str(path)),))


def check_bytes(data: bytes, path: str, arch: str | None = None, *, cluster: Cluster | None = None) -> NetlistResult:
    """The same for what a file holds; `path` is the name that findings give."""
    try:
        return check_text(decode(data), path, arch, cluster=cluster)
    except UnreadableError as error:
        return NetlistResult(None, (error.diagnostic(path),))


def check_text(
    text: str, path: str = "<text>", arch: str | None = None, *, cluster: Cluster | None = None
) -> NetlistResult:
    """The same for a text."""
    return with_routes(load.check_text(text, path, arch, strict=True), text, cluster)


def with_routes(result: NetlistResult, text: str, cluster: Cluster | None = None) -> NetlistResult:
    """What a netlist was found to be, and what its pipes and streams add. `cluster`: the links between its chips."""
    netlist = result.netlist
    if netlist is None:
        return result
    lines = split_lines(text)
    with no_collections():  # over all epochs: after each it would go through all that was made for it
        found = list(findings(netlist, cluster))
    if found and has_ignores(text):
        found = drop_ignored(found, lines, netlist.path)
    found = with_source_lines(dict.fromkeys(found), lines)
    every = tuple(sorted((*result.diagnostics, *found), key=lambda one: (one.line, one.column, one.rule)))
    refused = any(one.severity == "error" for one in found)
    return NetlistResult(None if refused else replace(netlist, diagnostics=every), every)


def findings(netlist: Netlist, cluster: Cluster | None = None) -> Iterator[Diagnostic]:
    """What refuses the pipes and streams of a netlist, epoch by epoch; one finding for each op and rule."""
    if netlist.arch_name not in ARCHS:
        yield _diagnostic(netlist, NOT_JUDGED, f"no pipes are made for {netlist.arch_name}", netlist_mark(netlist))
        return
    for epoch in epochs(netlist, cluster):
        try:
            yield from _of_epoch(netlist, epoch)
        except UnsupportedError as error:
            where = netlist.graphs[epoch.graphs[0]]
            yield _diagnostic(netlist, NOT_JUDGED, f"graph {where.name}: {error}", where.at())


def netlist_mark(netlist: Netlist) -> Mark:
    """The place of what is said of the netlist as a whole: its first graph."""
    first = next(iter(netlist.graphs.values()), None)
    return first.at() if first is not None else Mark(1, 1, 2)


def _of_epoch(netlist: Netlist, epoch: Epoch) -> Iterator[Diagnostic]:
    built = build(epoch)
    refusals: list[Refusal] = built.refusals
    if built.graph is not None:
        refusals = [*_stream_refusals(built, route(built.graph, netlist.arch_name)), *warned(epoch, built.edges)]
    for one, others in _worst(refusals):
        item = netlist.queues.get(one.op) or epoch.ops.get(one.op)
        kind = "queue" if one.op in netlist.queues else "op"
        said = f"{kind} {one.op}: {one.what}" if one.op else f"graph {epoch.graphs[0]}: {one.what}"
        more = f", and so for {others} more of its cores" if others else ""
        yield _diagnostic(netlist, one.rule, said + more, _mark(item or netlist.graphs[epoch.graphs[0]], one), one.hint)


def _stream_refusals(built: Built, routed: streams.Routed) -> list[Refusal]:
    assert built.graph is not None
    operands = (one for one in built.graph.buffers if one.buffer_type == "unpacker")
    ops = {streams.Place(one.chip, one.row, one.column, one.ethernet_chan >= 0): one.op for one in operands}
    found: list[Refusal] = []
    for one in routed.refusals:
        core = (one.place.row, one.place.column) if one.place is not None else None
        found.append(
            Refusal(
                rule=_OF_STREAMS[one.what],
                what=one.message,
                op=ops.get(one.place, "") if one.place is not None else "",
                core=core,
                used=one.number if one.number is not None else -1,
                limit=one.limit if one.limit is not None else -1,
            )
        )
    return found


def _worst(refusals: Iterable[Refusal]) -> Iterator[tuple[Refusal, int]]:
    """For each rule and op the refusal that is furthest beyond its limit, and how many others there are."""
    groups: dict[tuple[str, str], list[Refusal]] = {}
    for one in refusals:
        groups.setdefault((one.rule, one.op), []).append(one)
    for group in groups.values():
        yield max(group, key=lambda one: one.used), len(group) - 1


def _mark(item: Sourced, refusal: Refusal) -> Mark:
    if refusal.input < 0:
        return item.at()
    tms = item.at(f"input_{refusal.input}_tms", "")
    return tms if tms != item.at() else item_mark(item, "inputs", refusal.input)


def _diagnostic(netlist: Netlist, rule: str, message: str, mark: Mark, hint: str = "") -> Diagnostic:
    return Diagnostic.at(mark, netlist.path, rule, RULES[rule].at(strict=True), message, hint)
