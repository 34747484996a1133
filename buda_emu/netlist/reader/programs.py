"""The `programs` section: instructions as they are written (NETLIST 3). What only the last body of a name must satisfy
(NETLIST 11.1 A16) is left to the rules."""

from collections.abc import Callable, Collection
from collections.abc import Mapping as Map
from functools import partial

from buda_emu.netlist.fields import EXECUTE_FIELDS, INSTRUCTIONS, SETTING_FIELDS
from buda_emu.netlist.model import (
    Allocate,
    Deallocate,
    Declare,
    EndLoop,
    Execute,
    Instruction,
    Loop,
    Param,
    Program,
    QueueSettings,
    VarInst,
)
from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.netlist.reader.context import Context
from buda_emu.netlist.reader.values import integer, keyed, kind_of, of_one_key, text_of
from buda_emu.support.checker.fix import removing
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import quoted

_ENDS = removing("the end of a program is implied")
MALFORMED, BARE, DECLARATION, VARINST, ALLOCATION, UNKNOWN_KEY = "V110", "V111", "V112", "V113", "V114", "V115"


def read_programs(
    context: Context, node: Node, programs: dict[str, Program], order: list[str], queues: Collection[str]
) -> None:
    """Read every program: the last body of a name stays in `programs`, `order` gets every name as it stands.

    `queues` are the names known at this place of the file (V114).
    """
    context.subject = "programs"
    if not isinstance(node, Sequence):
        context.report(MALFORMED, node, f"the section needs a list of programs, not {kind_of(node)}")
        return
    for item in node.items:
        context.subject = "programs"
        entry = of_one_key(context, "an entry needs a map {name: [instructions]}", item, MALFORMED)
        for name, key, value in keyed(context, entry) if entry is not None else ():
            context.subject = f"program {name}"
            programs[name] = _read_program(context, name, key, value, queues)
            order.append(name)


def _read_program(context: Context, name: str, name_node: Scalar, node: Node, queues: Collection[str]) -> Program:
    findings = context.findings
    instructions: list[Instruction] = []
    if isinstance(node, Sequence):
        for item in node.items:
            instruction = _read_instruction(context, item, queues)
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
    if isinstance(node, Scalar):
        word = text_of(node)
        if word == "endloop":
            return EndLoop(source=node, name_node=node)
        hint = _ENDS if word == "endprogram" else near(word, ("endloop",))
        context.report(BARE, node, f"{quoted(word)} cannot stand alone; only endloop can", hint)
        return None
    named = of_one_key(context, "an instruction needs a map {name: operand}", node, MALFORMED)
    for word, key, value in keyed(context, named) if named is not None else ():
        if word in _INSTRUCTIONS:
            read = partial(_INSTRUCTIONS[word], _Statement(context, word, key, value, queues))
            return context.kept_or(value, id(key), read) if word == "execute" else read()
        hint = _ENDS if word == "endprogram" else near(word, INSTRUCTIONS)
        context.report(MALFORMED, key, f"unknown instruction {quoted(word)}", hint)
    return None


class _Statement:
    """One instruction as it is written: its word, its operand, and the queues known at this place."""

    __slots__ = ("context", "key", "node", "queues", "word")

    def __init__(self, context: Context, word: str, key: Scalar, node: Node, queues: Collection[str]) -> None:
        self.context = context
        self.word = word
        self.key = key
        self.node = node
        self.queues = queues


def _words(context: Context, rule: str, what: str, node: Node) -> tuple[str, ...] | None:
    """The texts of a list of scalars; anything else is reported under `rule`."""
    if not isinstance(node, Sequence):
        context.report(rule, node, f"{what} needs a list, not {kind_of(node)}")
        return None
    texts = tuple(text_of(item) for item in node.items if isinstance(item, Scalar))
    for item in node.items:
        if not isinstance(item, Scalar):
            context.report(rule, item, f"{what}: an entry needs a word, not {kind_of(item)}")
    return texts if len(texts) == len(node.items) else None


def _declare(statement: _Statement) -> Instruction | None:
    context, word, node = statement.context, statement.word, statement.node
    if isinstance(node, Mapping):
        pairs: list[tuple[str, str]] = []
        for name, _, value in keyed(context, node):
            number = integer(context, f"{word} {name}", value)  # NETLIST 12: 3
            if number is not None:
                pairs.append((name, str(number)))
    else:
        names = _words(context, DECLARATION, word, node)
        if names is None:
            return None
        pairs = [(name, "0") for name in names]
    kind = "var" if word == "var" else "staticvar"
    return Declare(kind=kind, variables=tuple(pairs), source=node, name_node=statement.key)


def _param(statement: _Statement) -> Instruction | None:
    context, word, node = statement.context, statement.word, statement.node
    names = _words(context, DECLARATION, word, node)
    if names == ():
        context.report(DECLARATION, node, "param without names has no effect", severity="warning")
    return None if names is None else Param(names=names, source=node, name_node=statement.key)


def _varinst(statement: _Statement) -> Instruction | None:
    context, word, node = statement.context, statement.word, statement.node
    operands = _words(context, VARINST, word, node)
    if operands is None:
        return None
    if len(operands) < 2:
        context.report(VARINST, node, "varinst needs a variable and an opcode", "write [$x, set, 1]")
        return None
    return VarInst(out=operands[0], opcode=operands[1], args=operands[2:], source=node, name_node=statement.key)


def _loop(statement: _Statement) -> Instruction | None:
    context, node = statement.context, statement.node
    if isinstance(node, Scalar):
        return Loop(count=text_of(node), source=node, name_node=statement.key)
    context.report(MALFORMED, node, f"loop needs a count, not {kind_of(node)}")
    return None


def _endloop(statement: _Statement) -> Instruction | None:
    return EndLoop(source=statement.node, name_node=statement.key)


def _allocation(statement: _Statement) -> Instruction | None:
    context, word, node, queues = statement.context, statement.word, statement.node, statement.queues
    names = _words(context, ALLOCATION, word, node)
    if names is None or not isinstance(node, Sequence):
        return None
    for name, item in zip(names, node.items, strict=True):
        if name not in queues:
            context.report(ALLOCATION, item, f"{word}: there is no queue {quoted(name)} up to here", near(name, queues))
    instruction = Allocate if word == "allocate_queue" else Deallocate
    return instruction(queues=names, source=node, name_node=statement.key)


def _execute(statement: _Statement) -> Instruction | None:
    context, node = statement.context, statement.node
    findings = context.findings
    graph = ""
    settings: list[QueueSettings] = []
    # Nothing is an execute of the graph "" (NETLIST 11.2 B11).
    if not isinstance(node, Mapping) and not (isinstance(node, Scalar) and node.is_null):
        context.report(UNKNOWN_KEY, node, f"execute needs a map with graph_name, not {kind_of(node)}")
    for name, name_node, value in keyed(context, node) if isinstance(node, Mapping) else ():
        if name == "graph_name":
            if isinstance(value, Scalar):
                graph = text_of(value)
            else:
                context.report(UNKNOWN_KEY, value, f"graph_name needs a name, not {kind_of(value)}")
        elif name == "queue_settings":
            settings.extend(_read_settings(context, value))
        else:
            context.report(UNKNOWN_KEY, name_node, f"unknown key {quoted(name)} in execute", near(name, EXECUTE_FIELDS))
    return Execute(
        graph=graph,
        queue_settings=tuple(settings),
        source=node,
        name_node=statement.key,
        broken=context.findings > findings,
    )


def _read_settings(context: Context, node: Node) -> list[QueueSettings]:
    """The settings of each queue in order; a queue named twice stays twice (NETLIST 11.1 A11)."""
    settings: list[QueueSettings] = []
    if not isinstance(node, Mapping):
        if not (isinstance(node, Scalar) and node.is_null):
            context.report(UNKNOWN_KEY, node, f"queue_settings needs a map, not {kind_of(node)}")
        return settings
    for queue, queue_node, body in keyed(context, node):
        findings = context.findings
        values: dict[str, str] = {}
        if not isinstance(body, Mapping) and not (isinstance(body, Scalar) and body.is_null):
            context.report(UNKNOWN_KEY, body, f"the settings of queue {queue} need a map, not {kind_of(body)}")
        for key, key_node, value in keyed(context, body) if isinstance(body, Mapping) else ():
            if key not in SETTING_FIELDS:
                hint = near(key, SETTING_FIELDS)
                context.report(UNKNOWN_KEY, key_node, f"unknown setting {quoted(key)} of queue {queue}", hint)
            elif isinstance(value, Scalar):
                values[key] = text_of(value)
            else:
                context.report(UNKNOWN_KEY, value, f"{key} of queue {queue} needs a word, not {kind_of(value)}")
        broken = context.findings > findings
        settings.append(QueueSettings(queue=queue, source=body, name_node=queue_node, broken=broken, **values))
    return settings


_INSTRUCTIONS: Map[str, Callable[[_Statement], Instruction | None]] = {
    "param": _param,
    "var": _declare,
    "staticvar": _declare,
    "varinst": _varinst,
    "loop": _loop,
    "endloop": _endloop,
    "execute": _execute,
    "allocate_queue": _allocation,
    "deallocate_queue": _allocation,
}
