"""Text -> netlist and findings: read, expand, derive, check against the rules. A cached netlist needs none of this."""

from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.checker.steps import Steps, finished
from buda_emu.netlist.derived.expand import expand
from buda_emu.netlist.derived.fields import derive_graphs, derive_programs, derive_queues
from buda_emu.netlist.derived.temporal import temporal_graphs
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.nodes import Mapping
from buda_emu.netlist.reader import Document, read_document
from buda_emu.netlist.reader.context import Kept
from buda_emu.netlist.rules.verify import verifying
from buda_emu.netlist.template import template_findings
from buda_emu.netlist.yaml_reader import UnreadableError, read_tree


def check_text(
    text: str, path: str, arch: str | None, strict: bool, asked: set[str] | None = None
) -> tuple[Netlist | None, Mapping | None, list[Diagnostic]]:
    """The netlist, None where it could not be made; the tree that it was read from; and what was found, in no order.
    `asked`: gets the rules that are asked of something."""
    try:
        root = read_tree(text)
    except UnreadableError as error:
        return None, None, template_findings(text, path, None) or [error.diagnostic(path)]
    placeholders = template_findings(text, path, root)
    if placeholders:
        return None, root, placeholders
    netlist, findings = finished(checking(root, path, arch, strict, asked=asked))
    return netlist, root, findings


def checking(
    root: Mapping, path: str, arch: str | None, strict: bool, kept: Kept | None = None, asked: set[str] | None = None
) -> Steps[tuple[Netlist | None, list[Diagnostic]]]:
    """The same of a tree that was read, in steps: the netlist, None where it could not be made, and what was found.
    `kept`: from an earlier version whose nodes are those of this one where nothing changed."""
    document = read_document(root, path, arch, kept)
    findings = document.diagnostics
    if not document.readable or not document.arch_name:
        return None, findings
    try:
        netlist = build(document)
    except UnreadableError as error:
        return None, [*findings, error.diagnostic(path)]
    read = {item.rule for item in findings}
    yield
    more = yield from verifying(netlist, strict=strict, skip=broken_names(netlist), read=read, asked=asked)
    findings = [*findings, *more]
    if "test-config" in netlist.sections:
        from buda_emu.netlist.testing import config as harness_config  # only where it is needed: check is quick

        findings += harness_config.findings(path, netlist.sections, strict=strict)
    if "performance-check" in netlist.sections:
        from buda_emu.netlist.testing import performance_check

        findings += performance_check.findings(path, netlist.sections, strict=strict)
    return netlist, findings


def build(document: Document) -> Netlist:
    """Expand and derive, in place: nothing is held twice (docs/netlists/check.md, bounds). Raises UnreadableError when
    the expansion is larger than any machine."""
    expand(document)
    document.queues = queues = derive_queues(document.queues, document.graphs)
    document.graphs = derive_graphs(document.graphs, queues)
    return Netlist(
        path=document.path,
        arch_name=document.arch_name,
        archs=document.archs,
        queues=queues,
        graphs=document.graphs,
        fused_ops=document.fused_ops,
        programs=derive_programs(document.programs, queues),
        program_order=tuple(document.program_order),
        temporal_graphs=temporal_graphs(document.graphs, document.programs.values(), queues, document.arch_name),
        sections=document.sections,
    )


def broken_names(netlist: Netlist) -> frozenset[str]:
    """Names of the objects in which reading found an error: nothing more is said about them."""
    graphs = netlist.graphs.values()
    objects = (
        *netlist.queues.items(),
        *netlist.graphs.items(),
        *netlist.fused_ops.items(),
        *netlist.programs.items(),
        *((op.name, op) for graph in graphs for op in graph.ops),
    )
    return frozenset(name for name, item in objects if item.broken)
