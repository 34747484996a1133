"""Node -> value, one function for each kind of field (`buda_emu.netlist.fields.Kind`).

Each reports what is wrong and returns None; the caller then keeps the field's default and the object is broken.
"""

from collections import abc
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from buda_emu.netlist.fields import FIDELITIES, Field
from buda_emu.netlist.nodes import NULL_WORDS, Node, Scalar, Sequence
from buda_emu.netlist.nodes import Mapping as MappingNode
from buda_emu.netlist.reader.context import Context
from buda_emu.netlist.sourced import Sourced
from buda_emu.netlist.yaml_text import parse_bool, parse_float, parse_int
from buda_emu.spec.blocking import LEGAL_TILE_DIMS
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.support.checker.fix import replacing
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural, quote

T = TypeVar("T")
FORMAT_WORDS = frozenset(NETLIST_FORMATS)
NOT_INTEGER = "V180"
NOT_BOOLEAN = "V181"
NOT_NUMBER = "V182"
NOT_LIST = "V183"
NOT_MAP = "V184"


def kind_of(node: Node) -> str:
    """What a node is, for a message."""
    if isinstance(node, Scalar):
        return "nothing" if node.is_null else quote(node.text)
    return "a list" if isinstance(node, Sequence) else "a map"


def text_of(node: Scalar) -> str:
    """The text of a scalar; a plain null reads as "null" (NETLIST 11.2 B9)."""
    return "null" if node.plain and node.text in NULL_WORDS else node.text


def read_text(context: Context, field: Field, node: Node) -> str | None:
    """A word or name as it stands."""
    if isinstance(node, Scalar):
        return text_of(node)
    context.report(field.rule, node, f"{field.name} needs a word, not {kind_of(node)}")
    return None


def read_int(context: Context, field: Field, node: Node) -> int | None:
    """A 32-bit integer."""
    return integer(context, field.name, node)


def integer(context: Context, what: str, node: Node) -> int | None:
    """A 32-bit integer; `what` names the value in the message."""
    if isinstance(node, Scalar):
        value = parse_int(node.text)
        if value is not None:
            return value
    context.report(NOT_INTEGER, node, f"{what} needs an integer, not {kind_of(node)}", _integer_hint(node))
    return None


def _integer_hint(node: Node) -> str:
    text = node.text.strip() if isinstance(node, Scalar) else ""
    digits = text.lstrip("+-")
    if not digits or len(digits) > 60:
        return ""
    if digits.isdecimal():
        return "a leading 0 means octal" if digits[0] == "0" else "integers have 32 bits"
    number = parse_float(text)
    if number is not None and number == number // 1:
        return replacing(f"write {int(number)}", text, str(int(number)))
    plain = text.replace("_", "")
    return replacing(f"write {plain}", text, plain) if digits.replace("_", "").isdecimal() else ""


def read_bool(context: Context, field: Field, node: Node) -> bool | None:
    """A YAML 1.1 boolean."""
    if isinstance(node, Scalar):
        value = parse_bool(node.text)
        if value is not None:
            return value
    context.report(NOT_BOOLEAN, node, f"{field.name} needs true or false, not {kind_of(node)}")
    return None


def read_float(context: Context, field: Field, node: Node) -> float | None:
    """A single-precision number."""
    return number(context, field.name, node)


def number(context: Context, what: str, node: Node) -> float | None:
    """A single-precision number; `what` names the value in the message."""
    if isinstance(node, Scalar):
        value = parse_float(node.text)
        if value is not None:
            return value
    context.report(NOT_NUMBER, node, f"{what} needs a number, not {kind_of(node)}")
    return None


def read_format(context: Context, field: Field, node: Node) -> str | None:
    """A number format that a netlist may use (V010)."""
    if isinstance(node, Scalar):
        if node.text in FORMAT_WORDS:
            return node.text
        hint = "Tf32 exists inside a core only" if node.text == "Tf32" else near(node.text, NETLIST_FORMATS)
        context.report("V010", node, f"{field.name}: unknown format {kind_of(node)}", hint)
        return None
    context.report("V010", node, f"{field.name} needs a format, not {kind_of(node)}")
    return None


def read_fidelity(context: Context, field: Field, node: Node) -> str | None:
    """A math fidelity (V025)."""
    word = text_of(node) if isinstance(node, Scalar) else ""
    if word not in FIDELITIES:
        context.report("V025", node, f"unknown {field.name} {kind_of(node)}", near(word, FIDELITIES))
    return FIDELITIES.get(word)


def _each(context: Context, field: Field, node: Node, read: Callable[[Node], T | None]) -> tuple[T, ...] | None:
    """What `read` makes of each entry of a list; None where it is none, or one is not read."""
    if not isinstance(node, Sequence):
        context.report(NOT_LIST, node, f"{field.name} needs a list, not {kind_of(node)}")
        return None
    values = [read(item) for item in node.items]
    known = tuple(value for value in values if value is not None)
    return known if len(known) == len(values) else None


def read_ints(context: Context, field: Field, node: Node) -> tuple[int, ...] | None:
    """A list of integers."""
    return _each(context, field, node, lambda item: integer(context, f"{field.name}: an entry", item))


def read_pair(context: Context, field: Field, node: Node) -> tuple[int, ...] | None:
    """A list of exactly two integers; `field.rule` is reported for any other length (V003, V023)."""
    if isinstance(node, Sequence) and len(node.items) == 2:
        first, second = node.items
        if isinstance(first, Scalar) and isinstance(second, Scalar):  # the usual case, short
            pair = parse_int(first.text), parse_int(second.text)
            if pair[0] is not None and pair[1] is not None:
                return (pair[0], pair[1])
        return read_ints(context, field, node)
    found = f"{len(node.items)}" if isinstance(node, Sequence) else kind_of(node)
    context.report(field.rule, node, f"{field.name} needs a list of two integers, not {found}")
    return None


def read_texts(context: Context, field: Field, node: Node) -> tuple[str, ...] | None:
    """A list of names."""

    def name(item: Node) -> str | None:
        if isinstance(item, Scalar):
            return text_of(item)
        context.report(field.rule, item, f"{field.name}: an entry needs a name, not {kind_of(item)}")
        return None

    return _each(context, field, node, name)


def read_formats(context: Context, field: Field, node: Node) -> tuple[str, ...] | None:
    """A list of number formats."""
    return _each(context, field, node, lambda item: read_format(context, field, item))


def read_tile_dim(context: Context, field: Field, node: Node) -> tuple[int, int] | None:
    """[height, width]: at least two integers, further ones are ignored (V007, NETLIST 11.2 B6)."""
    if not isinstance(node, Sequence) or len(node.items) < 2:
        context.report("V007", node, f"{field.name} needs two integers: height and width of a tile")
        return None
    values = [integer(context, f"{field.name}: an entry", item) for item in node.items[:2]]
    if None in values:
        return None
    dims = (values[0] or 0, values[1] or 0)
    if dims not in LEGAL_TILE_DIMS:
        legal = ", ".join(f"{height}x{width}" for height, width in LEGAL_TILE_DIMS)
        context.report("V007", node, f"there is no {dims[0]}x{dims[1]} tile", f"tiles are {legal}")
        return None
    if context.arch == "grayskull" and dims != LEGAL_TILE_DIMS[0]:
        context.report("V007", node, f"grayskull has no {dims[0]}x{dims[1]} tile, only 32x32")
        return None
    return dims


def read_device(context: Context, field: Field, node: Node) -> int | tuple[int, ...] | None:
    """A chip, or a list of chips (NETLIST 1.7)."""
    if isinstance(node, Sequence):
        return read_ints(context, field, node)
    return integer(context, field.name, node)


Reader: TypeAlias = Callable[[Context, Field, Node], Any]

READERS: Mapping[str, Reader] = {
    "int": read_int,
    "bool": read_bool,
    "float": read_float,
    "text": read_text,
    "word": read_text,  # the words are judged where the field is used: an unknown one reads as "invalid" (NETLIST 1.1)
    "format": read_format,
    "formats": read_formats,
    "fidelity": read_fidelity,
    "pair": read_pair,
    "ints": read_ints,
    "texts": read_texts,
    "names": read_texts,
    "tile_dim": read_tile_dim,
    "device": read_device,
}


def readers(table: Mapping[str, Field]) -> dict[str, tuple[Field, Reader]]:
    """The fields of a table whose kind is read here, with their readers."""
    return {field.name: (field, READERS[field.kind]) for field in table.values() if field.kind in READERS}


Other: TypeAlias = Callable[[str, Scalar, Node], None]


def body_of(context: Context, what: str, node: Node, rule: str = NOT_MAP) -> MappingNode:
    """A map as it is; nothing is a map without fields (NETLIST 11.3 C16); anything else is reported, then the same."""
    if isinstance(node, MappingNode):
        return node
    if not (isinstance(node, Scalar) and node.is_null):
        context.report(rule, node, f"{what} needs a map, not {kind_of(node)}")
    return MappingNode([], node.line, node.column, node.end_column)


def keyed(context: Context, body: MappingNode) -> Iterator[tuple[str, Scalar, Node]]:
    """(key, key node, value) in document order, repeated keys included; a key that is not a scalar is reported."""
    for key, value in body.pairs:
        if isinstance(key, Scalar):
            yield text_of(key), key, value
        else:
            context.report(NOT_MAP, key, f"a key needs to be a name, not {kind_of(key)}")


def named(
    context: Context, node: Node, kind: str, rule: str, known: abc.Mapping[str, Sourced]
) -> Iterator[tuple[str, Scalar, Node]]:
    """As `keyed`, of a section of objects of a kind; one with the name of a `known` one is reported by `rule`.

    The object is the subject of findings meanwhile.
    """
    context.subject = f"{kind}s"
    for name, key, value in keyed(context, body_of(context, "the section", node)):
        context.subject = f"{kind} {name}"
        first = known.get(name)
        if first is None:
            yield name, key, value
        else:
            line = first.name_node.line if first.name_node is not None else 0
            hint = context.again(first.source, value)
            context.report(rule, key, f"there is already a {kind} of that name, in line {line}", hint)
        context.subject = f"{kind}s"


def of_one_key(context: Context, what: str, node: Node, rule: str) -> MappingNode | None:
    """A map of one key; None, reported, for anything else. `what` is to be which map."""
    if isinstance(node, MappingNode) and len(node.pairs) == 1:
        return node
    found = f"a map with {plural(len(node.pairs), 'key')}" if isinstance(node, MappingNode) else kind_of(node)
    context.report(rule, node, f"{what}, not {found}")
    return None


def read_fields(
    context: Context, body: MappingNode, readers: dict[str, tuple[Field, Reader]], other: Other
) -> dict[str, Any]:
    """The values of the fields that `readers` knows; every other pair goes to `other`. A repeated field is overwritten.

    Values that could not be read are left out.
    """
    values: dict[str, Any] = {}
    for key, value in body.pairs:
        if not isinstance(key, Scalar):
            context.report(NOT_MAP, key, f"a key needs to be a name, not {kind_of(key)}")
            continue
        name = key.text
        found = readers.get(name)
        if found is None:
            other(text_of(key), key, value)
            continue
        result = found[1](context, found[0], value)
        if result is not None:
            values[name] = result
    return values
