"""Read the whole document, section by section in the order in which they stand (NETLIST 1.1), and its programs."""

from collections.abc import Callable, Collection, Iterable
from collections.abc import Mapping as Map
from dataclasses import field
from functools import partial

from buda_emu.netlist.fields import EXECUTE_FIELDS, INSTRUCTIONS, SECTIONS, SETTING_FIELDS
from buda_emu.netlist.model import (
    Allocate,
    Deallocate,
    Declare,
    EndLoop,
    Execute,
    FusedOp,
    Graph,
    Instruction,
    Loop,
    Param,
    Program,
    Queue,
    QueueSettings,
    VarInst,
)
from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.netlist.reader.context import Context, ReadCache
from buda_emu.netlist.reader.graphs import GraphSection, read_fused_ops, read_graphs
from buda_emu.netlist.reader.queues import read_queues
from buda_emu.netlist.reader.values import Pair, body_of, integer, kind_of, read_pairs, read_single_pair, text_of
from buda_emu.netlist.repetitions import suggest_missing_names
from buda_emu.spec.archs import ARCHS, DEFAULT_ARCH
from buda_emu.support.checker.checks import TooManyFindingsError
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.fix import removing
from buda_emu.support.checker.suggest import near, nearest
from buda_emu.support.checker.text import quote
from buda_emu.support.records import dataclass

_ENDS = removing("the end of a program is implied")
MALFORMED = "V110"
BARE = "V111"
DECLARATION = "V112"
VARINST = "V113"
ALLOCATION = "V114"
UNKNOWN_KEY = "V115"


def read_programs(
    context: Context, node: Node, programs: dict[str, Program], order: list[str], queues: Collection[str]
) -> None:
    """Read every program: the last body of a name stays in `programs`, and `order` receives every name as it stands.

    `queues` are the names that are declared before this place of the file (V114).
    """
    context.subject = "programs"
    if not isinstance(node, Sequence):
        context.report(MALFORMED, node, f"the section needs a list of programs, not {kind_of(node)}")
        return
    for entry_node in node.items:
        context.subject = "programs"
        entry = read_single_pair(context, "an entry needs a map {name: [instructions]}", entry_node, MALFORMED)
        if entry is not None:
            name, key, value = entry
            context.subject = f"program {name}"
            programs[name] = _read_program(context, name, key, value, queues)
            order.append(name)


def _read_program(context: Context, name: str, name_node: Scalar, node: Node, queues: Collection[str]) -> Program:
    """Read one program. Instructions that cannot be read are left out after a finding. `queues` is as in
    `read_programs`.
    """
    findings = context.findings
    instructions: list[Instruction] = []
    if isinstance(node, Sequence):
        for instruction_node in node.items:
            instruction = _read_instruction(context, instruction_node, queues)
            if instruction is not None:
                instructions.append(instruction)
    elif not (isinstance(node, Scalar) and node.is_null):  # NETLIST 11.2 B7: a program without a body is legal
        context.report(MALFORMED, node, f"a program needs a list of instructions, not {kind_of(node)}")
    return Program(
        name=name,
        instructions=tuple(instructions),
        source=node,
        name_node=name_node,
        broken=context.findings > findings,
    )


def _read_instruction(context: Context, node: Node, queues: Collection[str]) -> Instruction | None:
    """Read one instruction; None, after a finding, if it cannot be read. `queues` is as in `read_programs`."""
    if isinstance(node, Scalar):
        word = text_of(node)
        if word == "endloop":
            return EndLoop(source=node, name_node=node)
        if word == "endprogram":
            hint = _ENDS
        else:
            hint = near(word, ("endloop",))
        context.report(BARE, node, f"{quote(word)} cannot stand alone; only endloop can", hint)
        return None
    pair = read_single_pair(context, "an instruction needs a map {name: operand}", node, MALFORMED)
    if pair is None:
        return None
    word, key, value = pair
    if word not in _INSTRUCTIONS:
        if word == "endprogram":
            hint = _ENDS
        else:
            hint = near(word, INSTRUCTIONS)
        context.report(MALFORMED, key, f"unknown instruction {quote(word)}", hint)
        return None
    read = partial(_INSTRUCTIONS[word], _Statement(context, word, key, value, queues))
    if word == "execute":  # only these are large enough to be worth reusing
        return context.reuse_or_read(value, id(key), read)
    return read()


class _Statement:
    """One instruction as it is written: its word, its operand, and the names of the queues declared before it."""

    __slots__ = ("context", "key", "node", "queues", "word")

    def __init__(self, context: Context, word: str, key: Scalar, node: Node, queues: Collection[str]) -> None:
        self.context = context
        self.word = word
        self.key = key
        self.node = node
        self.queues = queues


def _read_words(context: Context, rule: str, label: str, node: Node) -> tuple[str, ...] | None:
    """Return the texts of a list of scalars; anything else is reported under `rule`, and None is returned."""
    if not isinstance(node, Sequence):
        hint = ""
        if isinstance(node, Scalar) and node.text:
            hint = f"write [{node.text}]"
        context.report(rule, node, f"{label} needs a list, not {kind_of(node)}", hint)
        return None
    texts: list[str] = []
    for entry in node.items:
        if isinstance(entry, Scalar):
            texts.append(text_of(entry))
        else:
            context.report(rule, entry, f"{label}: an entry needs a word, not {kind_of(entry)}")
    if len(texts) == len(node.items):
        return tuple(texts)
    return None


def _read_declaration(statement: _Statement) -> Instruction | None:
    """Read `var` or `staticvar`: a map of names to initial values, or a list of names whose values are 0. None, after a
    finding, for anything else."""
    context = statement.context
    word = statement.word
    node = statement.node
    if isinstance(node, Mapping):
        pairs: list[tuple[str, str]] = []
        for name, _, value in read_pairs(context, node):
            number = integer(context, f"{word} {name}", value)  # NETLIST 12: 3
            if number is not None:
                pairs.append((name, str(number)))
    else:
        names = _read_words(context, DECLARATION, word, node)
        if names is None:
            return None
        pairs = [(name, "0") for name in names]
    kind = "var" if word == "var" else "staticvar"
    return Declare(kind=kind, variables=tuple(pairs), source=node, name_node=statement.key)


def _read_param(statement: _Statement) -> Instruction | None:
    """Read `param`, a list of names; an empty list is a warning. None, after a finding, for anything else."""
    context = statement.context
    word = statement.word
    node = statement.node
    names = _read_words(context, DECLARATION, word, node)
    if names == ():
        context.report(DECLARATION, node, "param without names has no effect", severity="warning")
    if names is None:
        return None
    return Param(names=names, source=node, name_node=statement.key)


def _read_varinst(statement: _Statement) -> Instruction | None:
    """Read `varinst`, a list of a variable, an opcode and operands; None, after a finding, for a shorter list or
    none."""
    context = statement.context
    word = statement.word
    node = statement.node
    operands = _read_words(context, VARINST, word, node)
    if operands is None:
        return None
    if len(operands) < 2:
        context.report(VARINST, node, "varinst needs a variable and an opcode", "write [$x, set, 1]")
        return None
    return VarInst(out=operands[0], opcode=operands[1], args=operands[2:], source=node, name_node=statement.key)


def _read_loop(statement: _Statement) -> Instruction | None:
    """Read `loop` with its count, a number or variable that is evaluated when the program runs."""
    context = statement.context
    node = statement.node
    if isinstance(node, Scalar):
        return Loop(count=text_of(node), source=node, name_node=statement.key)
    context.report(MALFORMED, node, f"loop needs a count, not {kind_of(node)}")
    return None


def _read_endloop(statement: _Statement) -> Instruction | None:
    """Read an `endloop` that is written as a map; its operand does not matter."""
    return EndLoop(source=statement.node, name_node=statement.key)


def _read_allocation(statement: _Statement) -> Instruction | None:
    """Read `allocate_queue` or `deallocate_queue`, a list of queues; None, after a finding, for anything else. Names
    that were not declared before this place are reported (V114)."""
    context = statement.context
    word = statement.word
    node = statement.node
    queues = statement.queues
    names = _read_words(context, ALLOCATION, word, node)
    if names is None or not isinstance(node, Sequence):
        return None
    for name, name_node in zip(names, node.items, strict=True):
        if name not in queues:
            message = f"{word}: there is no queue {quote(name)} up to here"
            context.report(ALLOCATION, name_node, message, near(name, queues))
    if word == "allocate_queue":
        instruction = Allocate
    else:
        instruction = Deallocate
    return instruction(queues=names, source=node, name_node=statement.key)


def _read_execute(statement: _Statement) -> Instruction | None:
    """Read `execute`: the name of a graph, and the settings of its queues. Unknown keys are findings."""
    context = statement.context
    node = statement.node
    findings = context.findings
    graph = ""
    settings: list[QueueSettings] = []
    pairs: Iterable[Pair] = ()  # an empty operand is an execute of the graph "" (NETLIST 11.2 B11)
    if isinstance(node, Mapping):
        pairs = read_pairs(context, node)
    elif not (isinstance(node, Scalar) and node.is_null):
        context.report(UNKNOWN_KEY, node, f"execute needs a map with graph_name, not {kind_of(node)}")
    for name, name_node, value in pairs:
        if name == "graph_name":
            if isinstance(value, Scalar):
                graph = text_of(value)
            else:
                context.report(UNKNOWN_KEY, value, f"graph_name needs a name, not {kind_of(value)}")
        elif name == "queue_settings":
            settings.extend(_read_settings(context, value))
        else:
            context.report(UNKNOWN_KEY, name_node, f"unknown key {quote(name)} in execute", near(name, EXECUTE_FIELDS))
    return Execute(
        graph=graph,
        queue_settings=tuple(settings),
        source=node,
        name_node=statement.key,
        broken=context.findings > findings,
    )


def _read_settings(context: Context, node: Node) -> list[QueueSettings]:
    """Read the settings of each queue in order; a queue that is named twice has two entries (NETLIST 11.1 A11)."""
    settings: list[QueueSettings] = []
    if not isinstance(node, Mapping):
        if not (isinstance(node, Scalar) and node.is_null):
            context.report(UNKNOWN_KEY, node, f"queue_settings needs a map, not {kind_of(node)}")
        return settings
    for queue, queue_node, body in read_pairs(context, node):
        findings = context.findings
        values = _read_queue_settings(context, queue, body)
        broken = context.findings > findings
        settings.append(QueueSettings(queue=queue, source=body, name_node=queue_node, broken=broken, **values))
    return settings


def _read_queue_settings(context: Context, queue: str, body: Node) -> dict[str, str]:
    """Read the settings of one queue as texts, by field. Unknown ones are findings and left out."""
    values: dict[str, str] = {}
    if not isinstance(body, Mapping):
        if not (isinstance(body, Scalar) and body.is_null):
            context.report(UNKNOWN_KEY, body, f"the settings of queue {queue} need a map, not {kind_of(body)}")
        return values
    for key, key_node, value in read_pairs(context, body):
        if key not in SETTING_FIELDS:
            hint = near(key, SETTING_FIELDS)
            context.report(UNKNOWN_KEY, key_node, f"unknown setting {quote(key)} of queue {queue}", hint)
        elif isinstance(value, Scalar):
            values[key] = text_of(value)
        else:
            context.report(UNKNOWN_KEY, value, f"{key} of queue {queue} needs a word, not {kind_of(value)}")
    return values


_INSTRUCTIONS: Map[str, Callable[[_Statement], Instruction | None]] = {
    "param": _read_param,
    "var": _read_declaration,
    "staticvar": _read_declaration,
    "varinst": _read_varinst,
    "loop": _read_loop,
    "endloop": _read_endloop,
    "execute": _read_execute,
    "allocate_queue": _read_allocation,
    "deallocate_queue": _read_allocation,
}


NO_ARCH = "V002"


def read_devices(context: Context, node: Node) -> None:
    """Set `context.archs` and `context.arch` from the section. Unknown keys are V001, a wrong `arch` is V002."""
    context.subject = "devices"
    for key, key_node, value in read_pairs(context, body_of(context, "the section", node, NO_ARCH)):
        if key != "arch":
            context.report("V001", key_node, f"unknown key {quote(key)}; the only one is arch", near(key, ("arch",)))
        elif isinstance(value, Sequence):
            _select_arch(context, value)
        else:
            _read_only_arch(context, value)


def _read_arch(context: Context, node: Node) -> str | None:
    """Return an architecture that a node names, in any case; None, after a finding, if there is no such
    architecture.
    """
    if isinstance(node, Scalar):
        word = text_of(node).lower()
    else:
        word = ""
    if word in ARCHS:
        return word
    hint = near(word, ARCHS) or f"known are {', '.join(name for name, arch in ARCHS.items() if arch.documented)}"
    context.report(NO_ARCH, node, f"unknown architecture {kind_of(node)}", hint)
    return None


def _read_only_arch(context: Context, node: Node) -> None:
    """Select the only architecture of a netlist in `context`. A request for a different one is a warning and has no
    effect."""
    word = _read_arch(context, node)
    if word is None:
        return
    context.arch = word
    context.archs = (word,)
    if context.requested_arch not in (None, word):
        message = f"the netlist is for {word} only and is read for it, not for {context.requested_arch}"
        context.report(NO_ARCH, node, message, severity="warning")


def _select_arch(context: Context, node: Sequence) -> None:
    """Select the requested architecture of a list in `context`, or the default. Every word must be known (NETLIST 11.3
    C4) and the requested one among them; else there is a finding."""
    words = [_read_arch(context, entry) for entry in node.items]
    archs = tuple(word for word in words if word is not None)
    if not node.items:
        context.report(NO_ARCH, node, "the list of architectures is empty")
    if not archs or len(archs) < len(words):
        return
    context.archs = archs
    requested = context.requested_arch
    if requested is None:
        context.arch = DEFAULT_ARCH if DEFAULT_ARCH in archs else archs[0]
    elif requested in archs:
        context.arch = requested
    else:
        context.report(NO_ARCH, node, f"the netlist is not for {requested}", f"it is for {', '.join(archs)}")


NOTHING = "V011"
NO_INPUT = "V017"


@dataclass(slots=True)
class WrittenNetlist:
    """A netlist as written, before expansion (NETLIST 1.7) and derivation (1.5, 1.8).

    `queue_devices` and `graph_devices` hold the chips of objects whose target_device is a list. `readable` is False
    when a section on which others depend is missing or not a map; names cannot be checked then.
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


def read_document(root: Mapping, path: str, arch: str | None, cache: ReadCache | None = None) -> WrittenNetlist:
    """Read every section of a document.

    `arch` selects one architecture of a list in `devices.arch`; `cache` holds objects of an earlier version of the
    text.
    """
    context = Context(path, arch, cache)
    document = WrittenNetlist(path, diagnostics=context.diagnostics)
    try:
        _read_sections(root, context, document)
    except TooManyFindingsError as error:
        document.readable = False
        document.diagnostics.append(error.last)
    document.arch_name = context.arch
    document.archs = context.archs
    return document


def _read_sections(root: Mapping, context: Context, document: WrittenNetlist) -> None:
    """Read the sections in the order in which they stand, then check what needs all of them: names that are
    missing, queues declared after graphs that read them, and sections that are absent. Raises TooManyFindingsError.
    """
    graphs = GraphSection(document.graphs, document.graph_devices)
    early: set[str] = set()  # names that were not queues when the graphs that use them were read
    for name, _, node in read_pairs(context, root):
        if name == "devices":
            read_devices(context, node)
        elif name == "queues":
            read_queues(context, node, document.queues, document.queue_devices)
            document.readable &= not _is_malformed(node)
        elif name == "graphs":
            before = set(document.graphs)
            read_graphs(context, node, graphs)
            document.readable &= not _is_malformed(node)
            for name, graph in document.graphs.items():
                if name not in before:
                    early |= _undeclared_inputs(graph, document.queues)
        elif name == "programs":
            read_programs(context, node, document.programs, document.program_order, document.queues.keys())
        elif name == "fused_ops":
            read_fused_ops(context, node, document.fused_ops)
            document.readable &= not _is_malformed(node)
        else:
            document.sections[name] = node
        context.subject = ""
    suggest_missing_names(document, context.repetitions)
    _check_order(context, document, early, graphs.op_lines)
    _check_presence(context, document, root)


def _undeclared_inputs(graph: Graph, queues: Collection[str]) -> set[str]:
    """Return the inputs of a graph's ops that are not among the queues declared so far."""
    inputs: set[str] = set()
    for op in graph.ops:
        inputs.update(name for name in op.inputs if name not in queues)
    return inputs


def _check_order(context: Context, document: WrittenNetlist, early: set[str], op_lines: dict[str, int]) -> None:
    """Report inputs that are queues declared after the graph that reads them (NETLIST 11.3 C3). `early` holds the
    inputs that were no queues when their graph was read, `op_lines` the names of all ops.
    """
    late = {name for name in early if name in document.queues and name not in op_lines}
    if not late:
        return
    for graph in document.graphs.values():
        for op in graph.ops:
            if op.broken:
                continue
            for name in op.inputs:
                if name in late:
                    context.subject = f"op {op.name}"
                    message = f"input {quote(name)} is a queue that is declared further down"
                    context.report(NO_INPUT, op.at("inputs"), message, "`queues` comes before `graphs`")
    context.subject = ""


def _check_presence(context: Context, document: WrittenNetlist, root: Mapping) -> None:
    """Report a netlist without an architecture (V002) or without queues, graphs or programs (V011)."""
    if not context.archs and not any(finding.rule == NO_ARCH for finding in context.diagnostics):
        context.report(NO_ARCH, root, "the netlist names no architecture", "add devices: {arch: wormhole_b0}")
    unread = {name: node for name, node in document.sections.items() if name not in SECTIONS}
    sections = {"queues": document.queues, "graphs": document.graphs, "programs": document.program_order}
    for section, objects in sections.items():
        if objects or not _is_empty(root.find(section)):
            continue
        misspelt = nearest(section, unread)
        hint = f"is section '{misspelt}' meant?" if misspelt else ""
        context.report(NOTHING, root.find(section) or root, f"the netlist has no {section}", hint)
        document.readable = False


def _is_malformed(node: Node) -> bool:
    """Return whether a section that should be a map of objects is something else; this has been reported."""
    return not isinstance(node, Mapping) and not (isinstance(node, Scalar) and node.is_null)


def _is_empty(node: Node | None) -> bool:
    """Return whether a section is absent or holds nothing. False for a malformed one, which has been reported."""
    if isinstance(node, Mapping):
        return not node.pairs
    if isinstance(node, Sequence):
        return not node.items
    return node is None or node.is_null
