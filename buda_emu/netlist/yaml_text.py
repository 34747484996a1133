"""Values of the netlist language as text: the one place that knows how a list, a map or a word is written."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
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


INT32_MIN = -(1 << 31)
INT32_MAX = (1 << 31) - 1
UINT32_MAX = (1 << 32) - 1

# As a C++ stream reads with any base: optional sign, 0x hex, leading-0 octal, else decimal; trailing blanks are eaten.
_INTEGER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0([0-7]*)|([1-9][0-9]*))[ \t\n\v\f\r]*")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t\n\v\f\r]*")
_LEADING_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_FLOAT32_LIMIT = (2 - 2**-24) * 2.0**127  # from here on a number rounds to infinity in single precision
_MAX_DIGITS = 32  # longer texts are out of range in any base; bounds the work

_TRUE = ("y", "yes", "true", "on")
_FALSE = ("n", "no", "false", "off")
BOOLS = {
    spelling: value
    for words, value in ((_TRUE, True), (_FALSE, False))
    for word in words
    for spelling in (word, word.capitalize(), word.upper())
}
_SPECIAL_FLOATS = {
    sign + spelling: value
    for signs, words, value in (
        (("", "+"), (".inf", ".Inf", ".INF"), float("inf")),
        (("-",), (".inf", ".Inf", ".INF"), float("-inf")),
        (("",), (".nan", ".NaN", ".NAN"), float("nan")),
    )
    for sign in signs
    for spelling in words
}


def _integer(text: str) -> int | None:
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, hexadecimal, octal, decimal = match.groups()
    digits, base = (hexadecimal, 16) if hexadecimal else (decimal, 10) if decimal else (octal or "0", 8)
    if len(digits.lstrip("0")) > _MAX_DIGITS:
        return None
    value = int(digits, base)
    return -value if sign == "-" else value


@lru_cache(8192)
def parse_int(text: str) -> int | None:
    """A signed 32-bit integer: decimal, 0x hex or leading-0 octal."""
    value = _integer(text)
    return value if value is not None and INT32_MIN <= value <= INT32_MAX else None


@lru_cache(8192)
def parse_address(text: str) -> int | None:
    """An unsigned 32-bit integer; a minus sign is refused even before 0."""
    value = None if text.startswith("-") else _integer(text)
    return value if value is not None and value <= UINT32_MAX else None


def parse_bool(text: str) -> bool | None:
    """true/false, yes/no, on/off, y/n in lower, Capitalised or UPPER case."""
    return BOOLS.get(text)


@lru_cache(1024)
def parse_float(text: str) -> float | None:
    """A number within single precision: decimal with an optional exponent, `.inf`, `.nan`; no hex, no suffix."""
    special = _SPECIAL_FLOATS.get(text)
    if special is not None:
        return special
    if _FLOAT.fullmatch(text) is None:
        return None
    value = float(text)
    return value if -_FLOAT32_LIMIT < value < _FLOAT32_LIMIT else None


def leading_integer(text: str) -> int | None:
    """The decimal integer at the start of a text, whatever follows it (C `stoi`: NETLIST 3.1, the N of input_N_tms)."""
    match = _LEADING_INTEGER.match(text)
    if match is None or len(match[1]) > _MAX_DIGITS:
        return None
    value = int(match[1])
    return value if INT32_MIN <= value <= INT32_MAX else None
