"""Parts of a netlist for the editor: symbols, foldings, coloured words, and hints between the lines."""

from collections.abc import Iterator
from typing import Final, Literal

from buda_emu.app.editor.hover import op_cycles
from buda_emu.app.editor.names import Name
from buda_emu.app.editor.text import OpenText
from buda_emu.netlist.model import Netlist, Op
from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.netlist.rules.ops.shapes import after, pad_shape, unpad_shape
from buda_emu.netlist.sizes import buffer_bytes
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A section or a name with everything below it, on lines `line` to `last`, which count from 1."""

    name: str
    kind: str
    line: int
    column: int
    last: int
    last_column: int
    parts: "tuple[Part, ...]"


def parts(text: OpenText) -> list[Part]:
    """Return the sections, and in them queues, graphs with their ops, programs with their variables, fused ops."""
    by_line = {(name.line, name.column): name for name in text.names.all if name.defines}
    sections: list[Part] = []
    for section, key, node in text.tree.root.items():
        sections.append(_part(section, "section", key, node, by_line))
    return sections


def _part(name: str, kind: str, key: Scalar, node: Node, names: dict[tuple[int, int], Name]) -> Part:
    """Return the outline entry of a named piece of the file, with the entries inside it. `key` is the name's place in
    the text, `node` its value; an inner entry whose kind is empty is left out. `names` are the file's names by line
    and column."""
    inside: list[Part] = []
    if isinstance(node, Mapping):
        pairs = node.items()
    else:
        pairs = iter(())
    for entry in node.items if isinstance(node, Sequence) else ():
        if isinstance(entry, Mapping):
            inside += [_part_of_key(text, name_node, value, names) for text, name_node, value in entry.items()]
    inside += [_part_of_key(text, name_node, value, names) for text, name_node, value in pairs]
    line, column = max(_end_of(node), (key.line, key.end_column))
    return Part(
        name=name,
        kind=kind,
        line=key.line,
        column=key.column,
        last=line,
        last_column=column,
        parts=tuple(part for part in inside if part.kind),
    )


def _part_of_key(text: str, key: Scalar, node: Node, names: dict[tuple[int, int], Name]) -> Part:
    """Return the part of a key, without a kind if the key names nothing."""
    name = names.get((key.line, key.column + (0 if key.plain else 1)))
    return _part(text, name.kind if name is not None else "", key, node, names)


def _end_of(node: Node) -> tuple[int, int]:
    """Return line and column after the last value of a node; closing brackets do not count."""
    last = (node.line, node.end_column)
    if isinstance(node, Mapping):
        for key, value in node.pairs[-1:]:
            last = max(last, (key.line, key.end_column), _end_of(value))
    elif isinstance(node, Sequence) and node.items:
        last = max(last, _end_of(node.items[-1]))
    return last


def foldings(text: OpenText) -> Iterator[tuple[int, int]]:
    """Yield first and last line of every part that takes several lines."""

    def below(part: Part) -> Iterator[tuple[int, int]]:
        """Yield first and last line of the part, if it has more than one line, and of all parts inside it."""
        if part.last > part.line:
            yield part.line, part.last
        for inner in part.parts:
            yield from below(inner)

    for part in parts(text):
        yield from below(part)


# ------------------------------------------------------------------------------------------------------------- colours
Token = Literal["namespace", "property", "class", "function", "variable", "type", "enumMember", "method"]
TOKENS: Final[tuple[Token, ...]] = (
    "namespace", "property", "class", "function", "variable", "type", "enumMember", "method",
)  # fmt: skip
_OF_NAMES: Final[dict[str, Token]] = {
    "queue": "class", "op": "function", "graph": "namespace", "fused op": "type", "program": "method",
    "variable": "variable",
}  # fmt: skip


def semantic_tokens(text: OpenText) -> list[tuple[int, int, int, Token, bool]]:
    """Return line and column from 1, length and kind of each coloured word, and whether it is a definition.

    The words are in the order of the text.
    """
    words: dict[tuple[int, int], tuple[int, Token, bool]] = {
        (name.line, name.column): (name.end - name.column, _OF_NAMES[name.kind], name.defines)
        for name in text.names.all
    }
    for node, is_key in _scalars(text.tree.root, False):
        kind = _token_of(node, is_key)
        if kind is not None and node.plain:
            words.setdefault((node.line, node.column), (len(node.text), kind, False))
    return [(line, column, *words[line, column]) for line, column in sorted(words)]


def _token_of(node: Scalar, is_key: bool) -> Token | None:
    """Return the token kind of a scalar that is not a name, or None if it has no colour."""
    if is_key:
        return "property"
    if node.text in OP_TYPES:
        return "type"
    if node.text in NETLIST_FORMATS:
        return "enumMember"
    return None


def _scalars(node: Node, is_key: bool) -> Iterator[tuple[Scalar, bool]]:
    """Yield every scalar of a node, and whether it is a key."""
    if isinstance(node, Scalar):
        yield node, is_key
    elif isinstance(node, Mapping):
        for name, value in node.pairs:
            yield from _scalars(name, True)
            yield from _scalars(value, False)
    else:
        for entry in node.items:
            yield from _scalars(entry, False)


# --------------------------------------------------------------------------------------------------------------- hints
@dataclass(frozen=True, slots=True)
class Hint:
    """A short text that the editor shows after a place of the netlist's text; `more` is the text of its tooltip."""

    line: int
    column: int
    text: str
    more: str


def hints(text: OpenText, first: int, last: int) -> Iterator[Hint]:
    """Yield hints on lines `first` to `last`: bytes of queues, shapes of operands after their TMs, cycles of ops."""
    netlist = text.netlist
    if netlist is None:
        return
    op_by_written_name = {op.written_name: op for op in netlist.ops.values()}
    for name in text.names.all:
        if not (name.defines and first <= name.line <= last):
            continue
        if name.kind == "queue":
            yield from _queue_hints(netlist, name)
        elif name.kind == "op" and name.text in op_by_written_name:
            yield from _op_hints(netlist, op_by_written_name[name.text], name)


def _queue_hints(netlist: Netlist, name: Name) -> Iterator[Hint]:
    """Yield the bytes of a queue, of one copy if it has copies on several chips."""
    queue = next((queue for queue in netlist.queues.values() if queue.written_name == name.text), None)
    if queue is not None and not queue.broken:
        size = buffer_bytes(queue, netlist, netlist.ops) * len(queue.buffers)
        yield Hint(name.line, name.end + 1, f" {_bytes_text(size)}", f"{size:,} bytes in all buffers")


def _op_hints(netlist: Netlist, op: Op, name: Name) -> Iterator[Hint]:
    """Yield the cycles of an op, and the shapes of its operands after their TMs."""
    cycles = op_cycles(netlist, op)
    if cycles:
        yield Hint(name.line, name.end + 1, f" {cycles:,.0f} cycles", "of one core for one input, modelled")
    for index, tms in enumerate(op.input_tms):
        if not tms:
            continue
        shape = shape_read(netlist, op, index)
        node = None
        if isinstance(op.source, Mapping):
            node = op.source.find(f"input_{index}_tms")
        if shape and isinstance(node, Sequence) and node.end_column > node.column + 1:
            yield Hint(node.line, node.end_column, f" {shape}", "t x tile rows x tile columns after the TMs")


def shape_read(netlist: Netlist, op: Op, index: int) -> str:
    """Return the shape that an op reads of an input after unpad, TMs and pad, such as `2 x 4 x 1`: t, tile rows,
    tile columns. "" if it is not known."""
    source = netlist.queues.get(op.inputs[index]) or netlist.ops.get(op.inputs[index])
    if source is None:
        return ""
    try:
        shape = unpad_shape(source.blocking.shape, op.input_unpad[index])
        for tm in op.input_tms[index]:
            shape = after(tm, shape)
        shape = pad_shape(shape, op.input_pad[index])
    except ValueError:
        return ""  # the findings say why
    return " x ".join(map(str, shape))


def _bytes_text(size: int) -> str:
    """Return a number of bytes with its unit, such as 1.5 KiB."""
    if size < 1 << 10:
        return f"{size} B"
    if size < 1 << 20:
        return f"{size / (1 << 10):,.1f} KiB"
    return f"{size / (1 << 20):,.1f} MiB"
