"""Checks a netlist against the chip's routing: makes its pipes and streams, and reports refusals as findings of the
netlist's rules (V081, V084, V160, V320 to V364, V366 to V368)."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from buda_emu.netlist import load
from buda_emu.netlist.ignores import apply_ignores
from buda_emu.netlist.load import NetlistResult, has_ignores
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.nodes import Mark
from buda_emu.netlist.rules import RULES
from buda_emu.netlist.rules.context import item_mark
from buda_emu.netlist.sourced import Sourced
from buda_emu.netlist.yaml_reader import StrPath, UnreadableError, decode, read_bytes, split_lines
from buda_emu.performance.routing.pipes.build import Built, build
from buda_emu.performance.routing.pipes.core_use import find_warnings
from buda_emu.performance.routing.pipes.epoch import Epoch, epochs
from buda_emu.performance.routing.pipes.model import Refusal
from buda_emu.performance.routing.streams import model as streams
from buda_emu.performance.routing.streams.route import route
from buda_emu.spec.boards import Cluster
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.render import with_source_lines
from buda_emu.support.errors import UnsupportedError
from buda_emu.support.garbage import no_collections

ARCHS: Final = ("grayskull", "wormhole_b0")
"""Architectures whose pipes and streams are made."""
NOT_JUDGED: Final = (
    "whether its edges can be pipes, and what streams take of each core (L1, extra and multicast streams, phases, "
    "inputs and outputs of kernels) and of links between chips, is not judged"
)
"""What a check leaves open for another architecture."""

UNSUPPORTED_RULE: Final = "V359"
"""The rule of what no pipes are made for."""
RECOMMENDED: Final = ("V357", "V358", "V360")
"""Rules of what net2pipe takes, but recommends less of."""

_STREAM_RULES: Final = {
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
    """Check a file as `netlist.check` does with `strict`, and its pipes and streams, too; what is wrong becomes
    findings. Never raises for the contents of the file."""
    result = load.check(path, arch, strict=True, cache=cache)
    if result.netlist is None:
        return result
    try:
        return with_routes(result, decode(read_bytes(path)), cluster)
    except UnreadableError as error:
        return NetlistResult(None, (error.diagnostic(str(path)),))


def check_bytes(data: bytes, path: str, arch: str | None = None, *, cluster: Cluster | None = None) -> NetlistResult:
    """Check the bytes of a file as `check` does; `path` is the name in findings."""
    try:
        return check_text(decode(data), path, arch, cluster=cluster)
    except UnreadableError as error:
        return NetlistResult(None, (error.diagnostic(path),))


def check_text(
    text: str, path: str = "<text>", arch: str | None = None, *, cluster: Cluster | None = None
) -> NetlistResult:
    """Check the text of a netlist as `check` does a file; `path` is the name in findings."""
    return with_routes(load.check_text(text, path, arch, strict=True), text, cluster)


def with_routes(result: NetlistResult, text: str, cluster: Cluster | None = None) -> NetlistResult:
    """Return the result of a check of `text` with the findings of pipes and streams added; a result without netlist
    stays as it is. `cluster` describes the links between the chips. Findings that a comment of the text ignores are
    left out; an error among the others takes the netlist out of the result."""
    netlist = result.netlist
    if netlist is None:
        return result
    lines = split_lines(text)
    with no_collections():  # over all epochs: after each it would go through all that was made for it
        route_findings = list(findings(netlist, cluster))
    if route_findings and has_ignores(text):
        route_findings = apply_ignores(route_findings, lines, netlist.path)
    route_findings = with_source_lines(dict.fromkeys(route_findings), lines)
    every = tuple(
        sorted((*result.diagnostics, *route_findings), key=lambda finding: (finding.line, finding.column, finding.rule))
    )
    refused = any(finding.severity == "error" for finding in route_findings)
    return NetlistResult(None if refused else replace(netlist, diagnostics=every), every)


def findings(netlist: Netlist, cluster: Cluster | None = None) -> Iterator[Diagnostic]:
    """Yield the refusals of a netlist's pipes and streams, epoch by epoch, one finding for each op and rule, and
    warnings of what exceeds recommendations. An epoch, or an architecture, that no pipes are made for yields a finding
    of V359."""
    if netlist.arch_name not in ARCHS:
        statement = f"no pipes are made for {netlist.arch_name}: {NOT_JUDGED}"
        yield _diagnostic(netlist, UNSUPPORTED_RULE, statement, netlist_mark(netlist))
        return
    for epoch in epochs(netlist, cluster):
        try:
            yield from _epoch_findings(netlist, epoch)
        except UnsupportedError as error:
            first_graph = netlist.graphs[epoch.graphs[0]]
            yield _diagnostic(netlist, UNSUPPORTED_RULE, f"graph {first_graph.name}: {error}", first_graph.at())


def netlist_mark(netlist: Netlist) -> Mark:
    """Return where findings about the netlist as a whole are shown: at its first graph, else at the begin of the
    file."""
    first = next(iter(netlist.graphs.values()), None)
    if first is not None:
        return first.at()
    return Mark(1, 1, 2)


def _epoch_findings(netlist: Netlist, epoch: Epoch) -> Iterator[Diagnostic]:
    """Yield the findings of one epoch: for each rule and op only that of the core that exceeds its limit most, with the
    number of the others. Raises UnsupportedError if no pipes can be made for the epoch."""
    built = build(epoch)
    refusals: list[Refusal] = built.refusals
    if built.graph is not None:
        refusals = [*_stream_refusals(built, route(built.graph, netlist.arch_name)), *find_warnings(epoch, built.edges)]
    for refusal, other_count in _worst(refusals):
        entity = netlist.queues.get(refusal.op) or epoch.ops.get(refusal.op)
        if refusal.op in netlist.queues:
            kind = "queue"
        else:
            kind = "op"
        if refusal.op:
            statement = f"{kind} {refusal.op}: {refusal.what}"
        else:
            statement = f"graph {epoch.graphs[0]}: {refusal.what}"
        if other_count:
            suffix = f", and so for {other_count} more of its cores"
        else:
            suffix = ""
        yield _diagnostic(
            netlist,
            refusal.rule,
            statement + suffix,
            _refusal_mark(entity or netlist.graphs[epoch.graphs[0]], refusal),
            refusal.hint,
        )


def _stream_refusals(built: Built, routed: streams.Routed) -> list[Refusal]:
    """Return the refusals of streams as refusals of pipes: each with its netlist rule and the op that has operands on
    the refused core, "" if none has."""
    assert built.graph is not None
    operands = (refusal for refusal in built.graph.buffers if refusal.buffer_type == "unpacker")
    ops = {
        streams.Place(refusal.chip, refusal.row, refusal.column, refusal.ethernet_chan >= 0): refusal.op
        for refusal in operands
    }
    refusals: list[Refusal] = []
    for refusal in routed.refusals:
        if refusal.place is not None:
            core = (refusal.place.row, refusal.place.column)
        else:
            core = None
        refusals.append(
            Refusal(
                rule=_STREAM_RULES[refusal.what],
                what=refusal.message,
                op=ops.get(refusal.place, "") if refusal.place is not None else "",
                core=core,
                used=refusal.number if refusal.number is not None else -1,
                limit=refusal.limit if refusal.limit is not None else -1,
            )
        )
    return refusals


def _worst(refusals: Iterable[Refusal]) -> Iterator[tuple[Refusal, int]]:
    """Yield for each rule and op the refusal with the greatest use of what it exceeds, and how many other refusals
    these have."""
    groups: dict[tuple[str, str], list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault((refusal.rule, refusal.op), []).append(refusal)
    for group in groups.values():
        yield max(group, key=lambda refusal: refusal.used), len(group) - 1


def _refusal_mark(entity: Sourced, refusal: Refusal) -> Mark:
    """Return the place of a refusal in the file: the TMs of the refused input if it has any, else its name; without an
    input, the op, queue or graph itself."""
    if refusal.input < 0:
        return entity.at()
    tms = entity.at(f"input_{refusal.input}_tms", "")
    if tms != entity.at():
        return tms
    return item_mark(entity, "inputs", refusal.input)


def _diagnostic(netlist: Netlist, rule: str, message: str, mark: Mark, hint: str = "") -> Diagnostic:
    """Return a finding about the netlist, with the severity that its rule has under `--strict`."""
    return Diagnostic.at(mark, netlist.path, rule, RULES[rule].at(strict=True), message, hint)
