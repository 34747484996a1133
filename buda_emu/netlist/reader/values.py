"""Read nodes into values, with one function for each kind of field (`buda_emu.netlist.fields.Kind`).

Each function reports a value that it cannot read and returns None; the field then keeps its default, and its object
is broken.
"""

import re
from collections import abc
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from buda_emu.netlist.fields import FIDELITY_WORDS, Field
from buda_emu.netlist.nodes import NULL_WORDS, Node, Scalar, Sequence
from buda_emu.netlist.nodes import Mapping as MappingNode
from buda_emu.netlist.reader.context import Context
from buda_emu.netlist.repetitions import Kind
from buda_emu.netlist.sourced import Sourced
from buda_emu.netlist.yaml_text import parse_bool, parse_float, parse_int
from buda_emu.spec.blocking import LEGAL_TILE_DIMS
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.support.checker.fix import replacing
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural, quote

T = TypeVar("T")
FORMAT_WORDS = frozenset(NETLIST_FORMATS)
_SIZE = re.compile(r"(\d+) ?[xX,] ?(\d+)")
"""Two integers as people write a size, `2x4`."""
NOT_INTEGER = "V180"
NOT_BOOLEAN = "V181"
NOT_NUMBER = "V182"
NOT_LIST = "V183"
NOT_MAP = "V184"


def kind_of(node: Node) -> str:
    """Return a node in words for a message: a scalar's text in quotes, "nothing", "a list" or "a map"."""
    if isinstance(node, Sequence):
        return "a list"
    if not isinstance(node, Scalar):
        return "a map"
    return "nothing" if node.is_null else quote(node.text)


def text_of(node: Scalar) -> str:
    """Return the text of a scalar; a plain null reads as "null" (NETLIST 11.2 B9)."""
    if node.plain and node.text in NULL_WORDS:
        return "null"
    return node.text


def read_text(context: Context, field: Field, node: Node) -> str | None:
    """Return the word or name that a field holds, as it stands; None, after a finding, if it is no scalar."""
    if isinstance(node, Scalar):
        return text_of(node)
    context.report(field.rule, node, f"{field.name} needs a word, not {kind_of(node)}")
    return None


def read_int(context: Context, field: Field, node: Node) -> int | None:
    """Return the signed 32-bit integer that a field holds; None after a finding."""
    return integer(context, field.name, node)


def integer(context: Context, label: str, node: Node) -> int | None:
    """Return the signed 32-bit integer that a node holds; None after a finding, in which `label` names the value."""
    if isinstance(node, Scalar):
        value = parse_int(node.text)
        if value is not None:
            return value
    context.report(NOT_INTEGER, node, f"{label} needs an integer, not {kind_of(node)}", _integer_hint(node))
    return None


def _integer_hint(node: Node) -> str:
    """Return the hint about a text that is no 32-bit integer although it has digits: octal, too large, a whole
    fraction, or digits grouped by `_`; else "".
    """
    text = node.text.strip() if isinstance(node, Scalar) else ""
    digits = text.lstrip("+-")
    if not digits or len(digits) > 60:
        return ""
    if digits.isdecimal():
        if digits[0] == "0":
            return "a leading 0 means octal"
        return "integers have 32 bits"
    number = parse_float(text)
    if number is not None and number == number // 1:
        return replacing(f"write {int(number)}", text, str(int(number)))
    if digits.replace("_", "").isdecimal():
        plain = text.replace("_", "")
        return replacing(f"write {plain}", text, plain)
    return ""


def read_bool(context: Context, field: Field, node: Node) -> bool | None:
    """Return the YAML 1.1 boolean that a field holds; None after a finding."""
    if isinstance(node, Scalar):
        value = parse_bool(node.text)
        if value is not None:
            return value
    context.report(NOT_BOOLEAN, node, f"{field.name} needs true or false, not {kind_of(node)}")
    return None


def read_float(context: Context, field: Field, node: Node) -> float | None:
    """Return the single-precision number that a field holds; None after a finding."""
    return number(context, field.name, node)


def number(context: Context, label: str, node: Node) -> float | None:
    """Return the single-precision number that a node holds; None after a finding, in which `label` names the value."""
    if isinstance(node, Scalar):
        value = parse_float(node.text)
        if value is not None:
            return value
    context.report(NOT_NUMBER, node, f"{label} needs a number, not {kind_of(node)}")
    return None


def read_format(context: Context, field: Field, node: Node) -> str | None:
    """Return the number format that a field holds; None, after a finding, for one that a netlist may not use (V010)."""
    if isinstance(node, Scalar):
        if node.text in FORMAT_WORDS:
            return node.text
        if node.text == "Tf32":
            hint = "Tf32 exists inside a core only"
        else:
            hint = near(node.text, NETLIST_FORMATS)
        context.report("V010", node, f"{field.name}: unknown format {kind_of(node)}", hint)
        return None
    context.report("V010", node, f"{field.name} needs a format, not {kind_of(node)}")
    return None


def read_fidelity(context: Context, field: Field, node: Node) -> str | None:
    """Return the math fidelity that a field holds, by its canonical name; None, after a finding, for an unknown one
    (V025).
    """
    word = text_of(node) if isinstance(node, Scalar) else ""
    if word not in FIDELITY_WORDS:
        hint = near(word, FIDELITY_WORDS) or f"one of {', '.join(FIDELITY_WORDS)}"
        context.report("V025", node, f"unknown {field.name} {kind_of(node)}", hint)
    return FIDELITY_WORDS.get(word)


def _read_list(context: Context, field: Field, node: Node, read: Callable[[Node], T | None]) -> tuple[T, ...] | None:
    """Return the entries of a list, each read by `read`, which returns None for one that it reported; None if the
    node is no list, after a finding, or an entry could not be read.
    """
    if not isinstance(node, Sequence):
        context.report(NOT_LIST, node, f"{field.name} needs a list, not {kind_of(node)}")
        return None
    results = [read(entry) for entry in node.items]
    values = tuple(value for value in results if value is not None)
    return values if len(values) == len(results) else None


def read_ints(context: Context, field: Field, node: Node) -> tuple[int, ...] | None:
    """Return the signed 32-bit integers of a list; None after a finding."""
    return _read_list(context, field, node, lambda entry: integer(context, f"{field.name}: an entry", entry))


def read_pair(context: Context, field: Field, node: Node) -> tuple[int, ...] | None:
    """Return the two integers of a list; None after a finding, which is `field.rule` for a list of any other length
    (V003, V023).
    """
    if isinstance(node, Sequence) and len(node.items) == 2:
        first, second = node.items
        if isinstance(first, Scalar) and isinstance(second, Scalar):  # the usual case, read without a call
            pair = parse_int(first.text), parse_int(second.text)
            if pair[0] is not None and pair[1] is not None:
                return (pair[0], pair[1])
        return read_ints(context, field, node)
    if isinstance(node, Sequence):
        length = f"{len(node.items)}"
    else:
        length = kind_of(node)
    hint = ""
    if isinstance(node, Scalar):
        match = _SIZE.fullmatch(node.text)
        if match is not None:
            hint = f"write [{match[1]}, {match[2]}]"
    context.report(field.rule, node, f"{field.name} needs a list of two integers, not {length}", hint)
    return None


def read_texts(context: Context, field: Field, node: Node) -> tuple[str, ...] | None:
    """Return the names in a list; None after a finding."""

    def read_name(entry: Node) -> str | None:
        """Return the text of an entry; None, after a finding, for an entry that is no scalar."""
        if isinstance(entry, Scalar):
            return text_of(entry)
        context.report(field.rule, entry, f"{field.name}: an entry needs a name, not {kind_of(entry)}")
        return None

    return _read_list(context, field, node, read_name)


def read_formats(context: Context, field: Field, node: Node) -> tuple[str, ...] | None:
    """Return the number formats in a list; None after a finding."""
    return _read_list(context, field, node, lambda entry: read_format(context, field, entry))


def read_tile_dim(context: Context, field: Field, node: Node) -> tuple[int, int] | None:
    """Return [height, width] of a tile, two integers; further ones are ignored (NETLIST 11.2 B6). None, after a
    finding, for a tile that does not exist (V007).
    """
    if not isinstance(node, Sequence) or len(node.items) < 2:
        context.report("V007", node, f"{field.name} needs two integers: height and width of a tile")
        return None
    height, width = [integer(context, f"{field.name}: an entry", entry) for entry in node.items[:2]]
    if height is None or width is None:
        return None
    dims = (height, width)
    if dims not in LEGAL_TILE_DIMS:
        legal = ", ".join(f"{rows}x{columns}" for rows, columns in LEGAL_TILE_DIMS)
        context.report("V007", node, f"there is no {height}x{width} tile", f"tiles are {legal}")
        return None
    if context.arch == "grayskull" and dims != LEGAL_TILE_DIMS[0]:
        context.report("V007", node, f"grayskull has no {height}x{width} tile, only 32x32")
        return None
    return dims


def read_device(context: Context, field: Field, node: Node) -> int | tuple[int, ...] | None:
    """Return the number of a chip, or those of a list of chips (NETLIST 1.7); None after a finding."""
    if isinstance(node, Sequence):
        return read_ints(context, field, node)
    return integer(context, field.name, node)


Reader: TypeAlias = Callable[[Context, Field, Node], Any]

READERS: Mapping[str, Reader] = {
    "int": read_int,
    "bool": read_bool,
    "float": read_float,
    "text": read_text,
    "word": read_text,  # the rules check the words: an unknown one reads as "invalid" (NETLIST 1.1)
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
    """Return the fields of a table whose kind has a reader here, each with its reader."""
    return {field.name: (field, READERS[field.kind]) for field in table.values() if field.kind in READERS}


Other: TypeAlias = Callable[[str, Scalar, Node], None]


def body_of(context: Context, label: str, node: Node, rule: str = NOT_MAP) -> MappingNode:
    """Return the map with an object's fields. Null is a map without fields (NETLIST 11.3 C16); anything else is
    reported under `rule` and treated so, too. `label` begins the message, such as "an op".
    """
    if isinstance(node, MappingNode):
        return node
    if not (isinstance(node, Scalar) and node.is_null):
        context.report(rule, node, f"{label} needs a map, not {kind_of(node)}")
    return MappingNode([], node.line, node.column, node.end_column)


Pair: TypeAlias = tuple[str, Scalar, Node]


def read_pairs(context: Context, body: MappingNode) -> Iterator[Pair]:
    """Yield key, key node and value in document order, repeated keys included. A key that is no scalar is reported."""
    for key, value in body.pairs:
        if isinstance(key, Scalar):
            yield text_of(key), key, value
        else:
            context.report(NOT_MAP, key, f"a key needs to be a name, not {kind_of(key)}")


def read_objects(
    context: Context, node: Node, kind: Kind, rule: str, objects: abc.Mapping[str, Sourced]
) -> Iterator[Pair]:
    """Yield name, name node and body of the objects of a section. A name that `objects` has already is reported
    under `rule` and left out. While the caller reads an object, it is the subject of findings; `kind` is the word
    for it.
    """
    context.subject = f"{kind}s"
    for name, key, value in read_pairs(context, body_of(context, "the section", node)):
        context.subject = f"{kind} {name}"
        first = objects.get(name)
        if first is None:
            yield name, key, value
        else:
            context.report_repetition(rule, kind, key, value, first, first.at().line)
        context.subject = f"{kind}s"


def read_single_pair(context: Context, requirement: str, node: Node, rule: str) -> Pair | None:
    """Return the only pair of a map; None, after a finding under `rule`, for anything else.

    `requirement` begins the message: "an entry needs a map {name: op}".
    """
    if isinstance(node, MappingNode) and len(node.pairs) == 1:
        return next(read_pairs(context, node), None)
    if isinstance(node, MappingNode):
        actual = f"a map with {plural(len(node.pairs), 'key')}"
    else:
        actual = kind_of(node)
    context.report(rule, node, f"{requirement}, not {actual}")
    return None


def read_fields(
    context: Context, body: MappingNode, readers: dict[str, tuple[Field, Reader]], other: Other
) -> dict[str, Any]:
    """Read the fields that `readers` knows; every other pair goes to `other`. The last value of a repeated field
    counts.

    Values that could not be read are left out of the result.
    """
    values: dict[str, Any] = {}
    for key, value in body.pairs:
        if not isinstance(key, Scalar):
            context.report(NOT_MAP, key, f"a key needs to be a name, not {kind_of(key)}")
            continue
        name = key.text
        entry = readers.get(name)
        if entry is None:
            other(text_of(key), key, value)
            continue
        result = entry[1](context, entry[0], value)
        if result is not None:
            values[name] = result
    return values
