"""Hover texts for the place under the cursor, in Markdown."""

from collections.abc import Iterator
from typing import Final

from buda_emu.app.editor.names import Name
from buda_emu.app.editor.text import OpenText
from buda_emu.netlist.fields import (
    DEVICE_FIELDS,
    EXECUTE_FIELDS,
    FUSED_FIELDS,
    GRAPH_FIELDS,
    INPUT_FIELDS,
    INSTRUCTIONS,
    OP_FIELDS,
    PAD_FIELDS,
    QUEUE_FIELDS,
    SECTIONS,
    SETTING_FIELDS,
    SUB_OP_FIELDS,
    Field,
    Table,
)
from buda_emu.netlist.model import FusedOp, Graph, Netlist, Op, Queue
from buda_emu.netlist.rules.book import RULES
from buda_emu.netlist.sizes import buffer_bytes
from buda_emu.performance.timing.op.cost import op_cycles as cycles
from buda_emu.performance.timing.op.table import calls_of
from buda_emu.spec.archs import ARCHS
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.spec.varinst import OPCODES
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import BudaError

_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_TABLES: Final[dict[str, tuple[Table, ...]]] = {
    "devices": (DEVICE_FIELDS,),
    "queues": (QUEUE_FIELDS,),
    "graphs": (OP_FIELDS, GRAPH_FIELDS, PAD_FIELDS),
    "fused_ops": (SUB_OP_FIELDS, FUSED_FIELDS),
    "programs": (EXECUTE_FIELDS, SETTING_FIELDS),
}
"""The fields that keys of each section may be."""


def hover(text: OpenText, line: int, column: int) -> str:
    """Return the hover text of a place, with line and column counting from 1; "" for none."""
    paragraphs = [
        _finding_text(finding)
        for finding in text.findings
        if finding.line == line and finding.column <= column <= finding.end_column
    ]
    name = text.names.at(line, column)
    if name is not None:
        paragraphs += about_name(text, name)
    else:
        paragraphs += about_word(_word_at(text.lines, line, column), _section_at(text.lines, line))
    return "\n\n---\n\n".join(filter(None, paragraphs))


def _finding_text(finding: Diagnostic) -> str:
    """Return the Markdown that the editor shows over a finding: severity, rule, message, hint, and the explanation of
    the rule."""
    rule = RULES.get(finding.rule)
    if rule is not None:
        explanation = f"\n\n{rule.explanation}"
    else:
        explanation = ""
    hint = f" ({finding.hint})" if finding.hint else ""
    return f"**{finding.severity} {finding.rule}**: {finding.message}{hint}{explanation}"


# -------------------------------------------------------------------------------------------------------------- names
def about_name(text: OpenText, name: Name) -> list[str]:
    """Return paragraphs of Markdown about the object that a name names, with the values that loading derived; only a
    title if the text has errors that keep it from being loaded."""
    netlist = text.netlist
    title = f"**{name.kind}** `{name.text}`"
    if netlist is None:
        return [title]
    if name.kind == "queue":
        return [title, *(about_queue(netlist, queue) for queue in _copies_of(netlist, name.text))][:5]
    if name.kind == "op":
        ops = [op for op in netlist.ops.values() if op.name == name.text or op.written_name == name.text]
        return [title, *(about_op(netlist, op) for op in ops)][:5]
    if name.kind == "graph" and name.text in netlist.graphs:
        return [f"{title}: {_about_graph(netlist.graphs[name.text])}"]
    if name.kind == "fused op" and name.text in netlist.fused_ops:
        return [f"{title}: {_about_fused_op(netlist.fused_ops[name.text])}"]
    if name.kind == "variable":
        uses = text.names.same(name)
        return [f"{title} of program `{name.scope}`: {plural(len(uses), 'place')}"]
    return [title]


def _about_graph(graph: Graph) -> str:
    """Return a line with the number of the graph's ops, its chip and its input_count."""
    return f"{plural(len(graph.ops), 'op')} on chip {graph.target_device}, input_count {graph.input_count}"


def _about_fused_op(fused: FusedOp) -> str:
    """Return the number of inputs and the types of all scheduled ops, in words."""
    types: list[str] = []
    for schedule in fused.schedules:
        types += [step.type for step in schedule]
    return f"{plural(fused.inputs, 'input')}, {' → '.join(types)}"


def _copies_of(netlist: Netlist, name: str) -> Iterator[Queue]:
    """Return the queue of a name; for the written name of a queue on several chips its copies, one for each chip
    (NETLIST 1.7)."""
    return (queue for queue in netlist.queues.values() if queue.name == name or queue.written_name == name)


def about_queue(netlist: Netlist, queue: Queue) -> str:
    """Return shape, format, bytes and place of a queue in words."""
    _, rows, columns = queue.blocking.element_shape
    size = buffer_bytes(queue, netlist)
    buffers = len(queue.buffers)
    memory = f"{queue.loc}, chip {queue.target_device}"
    return (
        f"{queue.type} of {plural(queue.entries, 'entry')}, each `{queue.blocking.t} x {rows} x {columns}` {queue.df}; "
        f"{plural(buffers, 'buffer')} of {size:,} bytes, {size * buffers:,} bytes in {memory}; fed by `{queue.input}`"
    )


def about_op(netlist: Netlist, op: Op) -> str:
    """Return shape, formats, cores and cycles of an op in words."""
    declaration = OP_TYPES.get(op.type)
    _, rows, columns = op.blocking.element_shape
    if op.grid_loc:
        place = f", from core {list(op.grid_loc)}"
    else:
        place = ""
    title = op.type
    if declaration is not None:
        title += f": {declaration.doc}"
    lines = [
        title,
        f"writes `{op.blocking.t} x {rows} x {columns}` {op.out_df}; {op.cores[0]} x {op.cores[1]} cores{place}",
        *(f"input {index} `{name}`" for index, name in enumerate(op.inputs)),
    ]
    cycles = op_cycles(netlist, op)
    if cycles:
        lines.append(f"about {cycles:,.0f} cycles for one input, modelled")
    return "  \n".join(lines)


def op_cycles(netlist: Netlist, op: Op) -> float:
    """Return the cycles that one core of an op takes for one input, 0 if the model has none."""
    try:
        return sum(cycles(call) for call in calls_of(netlist, op))
    except (BudaError, LookupError, ValueError):
        return 0.0  # a broken op: the findings say why


# -------------------------------------------------------------------------------------------------------------- words
def about_word(word: str, section: str) -> list[str]:
    """Return paragraphs of Markdown on the meanings of a word of the language in a section; [] if it has none."""
    paragraphs = _about_key(word, section)
    if word in SECTIONS and not paragraphs:
        paragraphs.append(f"**{word}**: {SECTIONS[word]}")
    if section == "programs":
        if word in INSTRUCTIONS:
            paragraphs.append(f"**{word}**: {INSTRUCTIONS[word].doc}")
        if word in OPCODES:
            paragraphs.append(f"`{OPCODES[word].doc}`")
    elif section in ("graphs", "fused_ops"):
        if word in OP_TYPES:
            paragraphs.append(f"**op type {word}**: {OP_TYPES[word].doc}; inputs: {OP_TYPES[word].inputs_text}")
        elif word in ATTRIBUTES and not paragraphs:
            paragraphs.append(_about_attribute(word))
    if word in FORMATS:
        paragraphs.append(f"**format {word}**: {FORMATS[word].doc}")
    if word in ARCHS:
        paragraphs.append(f"**{word}** {ARCHS[word].about}")
    return paragraphs


def _about_key(word: str, section: str) -> list[str]:
    """Return the descriptions of the fields of a section that a word may be the key of."""
    tables = _TABLES.get(section, ())
    paragraphs = [about_field(table[word]) for table in tables if word in table][:1]
    parts = word.split("_")
    if len(parts) == 3 and parts[0] == "input" and parts[1].isdecimal():
        paragraphs += [about_field(field) for name, field in INPUT_FIELDS.items() if name.endswith(f"_{parts[2]}")]
    return paragraphs


def _about_attribute(name: str) -> str:
    """Return the Markdown for an op attribute: its meaning and the op types that take it."""
    attribute = ATTRIBUTES[name]
    if attribute.types is None:
        types = "all op types"
    else:
        types = ", ".join(attribute.types)
    return f"**attribute {name}**: {attribute.doc}; on {types}"


def about_field(field: Field) -> str:
    """Return the description of a field, with its default and its words."""
    if field.words and len(field.words) < 12:
        words = f"; one of {', '.join(field.words)}"
    else:
        words = ""
    if field.required:
        need = "needed"
    else:
        need = f"default {field.default!r}"
    return f"**{field.name}**: {field.doc}; {need}{words}"


def _word_at(lines: list[str], line: int, column: int) -> str:
    """Return the word that a place is in or at the end of, "" if there is none."""
    if not 0 < line <= len(lines):
        return ""
    text = lines[line - 1]
    start = end = min(column - 1, len(text))
    while start and text[start - 1] in _WORD:
        start -= 1
    while end < len(text) and text[end] in _WORD:
        end += 1
    return text[start:end]


def _section_at(lines: list[str], line: int) -> str:
    """Return the name of the section of the netlist that a line is in, "" above the first."""
    for text in reversed(lines[:line]):
        if text[:1].isalpha():
            return text.split(":", 1)[0].strip()
    return ""
