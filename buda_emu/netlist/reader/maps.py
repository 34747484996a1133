"""Walking a map: bodies, keys, and the simple fields of a table."""

from collections import abc
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from buda_emu.checker.text import plural
from buda_emu.netlist.fields import Field
from buda_emu.netlist.nodes import Mapping, Node, Scalar
from buda_emu.netlist.reader.context import Context
from buda_emu.netlist.reader.values import NOT_MAP, Reader, kind_of, text_of
from buda_emu.netlist.sourced import Sourced

Other: TypeAlias = Callable[[str, Scalar, Node], None]


def body_of(context: Context, what: str, node: Node, rule: str = NOT_MAP) -> Mapping:
    """A map as it is; nothing is a map without fields (NETLIST 11.3 C16); anything else is reported, then the same."""
    if isinstance(node, Mapping):
        return node
    if not (isinstance(node, Scalar) and node.is_null):
        context.report(rule, node, f"{what} needs a map, not {kind_of(node)}")
    return Mapping([], node.line, node.column, node.end_column)


def keyed(context: Context, body: Mapping) -> Iterator[tuple[str, Scalar, Node]]:
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


def of_one_key(context: Context, what: str, node: Node, rule: str) -> Mapping | None:
    """A map of one key; None, reported, for anything else. `what` is to be which map."""
    if isinstance(node, Mapping) and len(node.pairs) == 1:
        return node
    found = f"a map with {plural(len(node.pairs), 'key')}" if isinstance(node, Mapping) else kind_of(node)
    context.report(rule, node, f"{what}, not {found}")
    return None


def read_fields(
    context: Context, body: Mapping, readers: dict[str, tuple[Field, Reader]], other: Other
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
