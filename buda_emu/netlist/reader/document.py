"""The whole document: sections in the order in which they stand (NETLIST 1.1)."""

from dataclasses import field

from buda_emu.netlist.fields import SECTIONS
from buda_emu.netlist.model import FusedOp, Graph, Program, Queue
from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.netlist.reader.context import Context, Kept
from buda_emu.netlist.reader.graphs import GraphSection, read_fused_ops, read_graphs
from buda_emu.netlist.reader.programs import read_programs
from buda_emu.netlist.reader.queues import read_queues
from buda_emu.netlist.reader.values import body_of, keyed, kind_of, text_of
from buda_emu.spec.archs import ARCHS, DEFAULT_ARCH
from buda_emu.support.checker.checks import TooManyFindingsError
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.suggest import near, nearest
from buda_emu.support.checker.text import quoted
from buda_emu.support.records import dataclass

NO_ARCH = "V002"


def read_devices(context: Context, node: Node) -> None:
    """Set `context.archs` and `context.arch`; unknown keys are V001, anything wrong with `arch` is V002."""
    context.subject = "devices"
    for key, key_node, value in keyed(context, body_of(context, "the section", node, NO_ARCH)):
        if key != "arch":
            context.report("V001", key_node, f"unknown key {quoted(key)}; the only one is arch", near(key, ("arch",)))
        elif isinstance(value, Sequence):
            _select(context, value)
        else:
            _single(context, value)


def _word(context: Context, node: Node) -> str | None:
    word = text_of(node).lower() if isinstance(node, Scalar) else ""
    if word in ARCHS:
        return word
    hint = near(word, ARCHS) or f"known are {', '.join(name for name, arch in ARCHS.items() if arch.documented)}"
    context.report(NO_ARCH, node, f"unknown architecture {kind_of(node)}", hint)
    return None


def _single(context: Context, node: Node) -> None:
    """One word: the netlist has no choice, a request for another architecture changes nothing."""
    word = _word(context, node)
    if word is None:
        return
    context.arch, context.archs = word, (word,)
    if context.requested_arch not in (None, word):
        message = f"the netlist is for {word} only and is read for it, not for {context.requested_arch}"
        context.report(NO_ARCH, node, message, severity="warning")


def _select(context: Context, node: Sequence) -> None:
    """A list: every word must be known (NETLIST 11.3 C4) and the requested one among them."""
    words = [_word(context, item) for item in node.items]
    known = tuple(word for word in words if word is not None)
    if not node.items:
        context.report(NO_ARCH, node, "the list of architectures is empty")
    if not known or len(known) < len(words):
        return
    context.archs = known
    requested = context.requested_arch
    if requested is None:
        context.arch = DEFAULT_ARCH if DEFAULT_ARCH in known else known[0]
    elif requested in known:
        context.arch = requested
    else:
        context.report(NO_ARCH, node, f"the netlist is not for {requested}", f"it is for {', '.join(known)}")


NOTHING, NO_INPUT = "V011", "V017"


@dataclass(slots=True)
class Document:
    """What was written, before expansion (NETLIST 1.7) and derivation (1.5, 1.8).

    `queue_devices` and `graph_devices` hold the chips of objects whose target_device is a list. `readable` is False
    when a section that the others depend on is missing or no map: nothing can be said about names then.
    """

    path: str
    arch_name: str = ""
    archs: tuple[str, ...] = ()
    queues: dict[str, Queue] = field(default_factory=dict[str, Queue])
    queue_devices: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    graphs: dict[str, Graph] = field(default_factory=dict[str, Graph])
    graph_devices: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    fused_ops: dict[str, FusedOp] = field(default_factory=dict[str, FusedOp])
    programs: dict[str, Program] = field(default_factory=dict[str, Program])
    program_order: list[str] = field(default_factory=list[str])
    sections: dict[str, Node] = field(default_factory=dict[str, Node])
    readable: bool = True
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])


def read_document(root: Mapping, path: str, arch: str | None, kept: Kept | None = None) -> Document:
    """Read every section. `arch` selects one of `devices.arch`; see `reader.devices`."""
    context = Context(path, arch, kept)
    document = Document(path, diagnostics=context.diagnostics)
    try:
        _read_sections(root, context, document)
    except TooManyFindingsError as error:
        document.readable = False
        document.diagnostics.append(error.last)
    document.arch_name, document.archs = context.arch, context.archs
    return document


def _read_sections(root: Mapping, context: Context, document: Document) -> None:
    graphs = GraphSection(document.graphs, document.graph_devices)
    early: set[str] = set()  # names that were not queues when the graphs that use them were read
    for name, _, node in keyed(context, root):
        if name == "devices":
            read_devices(context, node)
        elif name == "queues":
            read_queues(context, node, document.queues, document.queue_devices)
            document.readable &= not _is_malformed(node)
        elif name == "graphs":
            before = set(document.graphs)
            read_graphs(context, node, graphs)
            document.readable &= not _is_malformed(node)
            new = [graph for name, graph in document.graphs.items() if name not in before]
            early.update(name for graph in new for op in graph.ops for name in op.inputs if name not in document.queues)
        elif name == "programs":
            read_programs(context, node, document.programs, document.program_order, document.queues.keys())
        elif name == "fused_ops":
            read_fused_ops(context, node, document.fused_ops)
            document.readable &= not _is_malformed(node)
        else:
            document.sections[name] = node
        context.subject = ""
    _check_order(context, document, early, graphs.op_lines)
    _check_presence(context, document, root)


def _check_order(context: Context, document: Document, early: set[str], op_lines: dict[str, int]) -> None:
    """A queue that is declared after the graph that reads it is not found there (NETLIST 11.3 C3)."""
    late = {name for name in early if name in document.queues and name not in op_lines}
    for graph in document.graphs.values() if late else ():
        for op in graph.ops:
            for name in op.inputs if not op.broken else ():
                if name in late:
                    context.subject = f"op {op.name}"
                    message = f"input {quoted(name)} is a queue that is declared further down"
                    context.report(NO_INPUT, op.at("inputs"), message, "`queues` comes before `graphs`")
    context.subject = ""


def _check_presence(context: Context, document: Document, root: Mapping) -> None:
    """V002 without an architecture, V011 without queues, graphs or programs."""
    if not context.archs and not any(finding.rule == NO_ARCH for finding in context.diagnostics):
        context.report(NO_ARCH, root, "the netlist names no architecture", "add devices: {arch: wormhole_b0}")
    written = {name for name, _, _ in root.items()}
    unread = {name: node for name, node in document.sections.items() if name not in SECTIONS}
    read = {"queues": document.queues, "graphs": document.graphs, "programs": document.program_order}
    for section, found in read.items():
        if found or (section in written and not _is_empty(root.find(section))):
            continue
        misspelt = nearest(section, unread)
        hint = f"is section '{misspelt}' meant?" if misspelt else ""
        context.report(NOTHING, root.find(section) or root, f"the netlist has no {section}", hint)
        document.readable = False


def _is_malformed(node: Node) -> bool:
    """Whether a section that is a map of objects is something else (and has been reported)."""
    return not isinstance(node, Mapping) and not (isinstance(node, Scalar) and node.is_null)


def _is_empty(node: Node | None) -> bool:
    """Whether a section holds nothing; one that is malformed has been reported already."""
    if isinstance(node, Mapping):
        return not node.pairs
    if isinstance(node, Sequence):
        return not node.items
    return node is None or node.is_null
