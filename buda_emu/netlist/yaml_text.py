"""Values of the netlist language as text: the one place that knows how a list, a map or a word is written."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from buda_emu.netlist import nodes

_PLAIN: Final = re.compile(r"[A-Za-z0-9_$.+][A-Za-z0-9_$.+/-]*\Z|-[A-Za-z0-9_.]+\Z")
"""Texts that mean themselves without quotes wherever they stand; of others some would not."""
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


class Plain(str):
    """A text that is written as it is, without quotes: a number, or a word of YAML."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """A map in which a key may stand several times."""

    __slots__ = ()


def flow(value: Any) -> str:
    """On one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if isinstance(value, Plain) else word(value)
    if isinstance(value, Mapping):
        value = Pairs(value.items())  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{flow(key)}: {flow(item)}" for key, item in value) + "}"
    if isinstance(value, Sequence):
        parts: Sequence[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return "[" + ", ".join(flow(item) for item in parts) + "]"
    return number(value) if isinstance(value, float) else str(value)


def number(value: float) -> str:
    """The shortest text that reads as the same number, in nine digits where these are enough."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": ".nan", "inf": ".inf", "-inf": "-.inf"}[str(value)]
    text = f"{value:.9g}"
    if float(text) != value:
        text = repr(value)
    return text if "." in text or "e" not in text else text.replace("e", ".0e")


def word(text: str) -> str:
    """A text, in quotes where it would not mean itself without."""
    return text if _PLAIN.match(text) else quoted(text)


def quoted(text: str) -> str:
    """In double quotes, with an escape for whatever a line of YAML cannot hold."""
    return '"' + "".join(_ESCAPES.get(letter) or _escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"


def comment(text: str, indent: int = 0) -> list[str]:
    """Lines of a comment, without what YAML has no place for."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return [f"{' ' * indent}# {line}" for line in textwrap.wrap(plain, 116 - indent)]


def block(node: nodes.Node, indent: int = 0) -> Iterator[str]:
    """A tree as it was read, an entry to a line; repeated keys are kept."""
    pad = " " * indent
    if isinstance(node, nodes.Mapping) and node.pairs:
        for key, value in node.pairs:
            yield from _entry(f"{pad}{_short(key)}:", value, indent + 2)
    elif isinstance(node, nodes.Sequence) and node.items:
        for item in node.items:
            yield from _entry(f"{pad}-", item, indent + 2)
    else:
        yield f"{pad}{_short(node)}"


def _entry(head: str, value: nodes.Node, indent: int) -> Iterator[str]:
    if _is_short(value):
        yield f"{head} {_short(value)}".rstrip()
        return
    yield head
    yield from block(value, indent)


def _is_short(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Scalar):
        return True
    return not (node.pairs if isinstance(node, nodes.Mapping) else node.items)


def _short(node: nodes.Node) -> str:
    """On one line."""
    if isinstance(node, nodes.Scalar):
        return node.text if node.is_null else word(node.text) if node.plain else quoted(node.text)
    if isinstance(node, nodes.Mapping):
        return "{" + ", ".join(f"{_short(key)}: {_short(value)}" for key, value in node.pairs) + "}"
    return "[" + ", ".join(map(_short, node.items)) + "]"
