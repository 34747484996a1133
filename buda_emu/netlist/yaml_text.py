"""Text of the values of the netlist language: printing of lists, maps and words, and parsing of scalars."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import inf, nan
from typing import Any, Final

from buda_emu.netlist import nodes

_PLAIN: Final = re.compile(r"[A-Za-z0-9_$.+][A-Za-z0-9_$.+/-]*\Z|-[A-Za-z0-9_.]+\Z")
"""Texts that are safe without quotes in every place; some of the others are not."""
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


class Plain(str):
    """A text that is printed without quotes: a number, or a word of YAML."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """A map, as a list of pairs, in which a key may be repeated."""

    __slots__ = ()


def flow(value: Any) -> str:
    """Return the text of a value on one line, lists and maps in brackets."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str):
        return value if isinstance(value, Plain) else word(value)
    if isinstance(value, Mapping):
        value = Pairs(value.items())  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{flow(key)}: {flow(content)}" for key, content in value) + "}"
    if isinstance(value, Sequence):
        parts: Sequence[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return "[" + ", ".join(map(flow, parts)) + "]"
    return str(value)


def number(value: float) -> str:
    """Return a text that reads as the same number: with nine digits if these are enough, else the shortest."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": ".nan", "inf": ".inf", "-inf": "-.inf"}[str(value)]
    text = f"{value:.9g}"
    if float(text) != value:
        text = repr(value)
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")  # YAML 1.1 reads 1e5 as a word
    return text


def word(text: str) -> str:
    """Return a text as a YAML scalar, in quotes unless it is safe without."""
    return text if _PLAIN.match(text) else quote(text)


def quote(text: str) -> str:
    """Return a text in double quotes, with an escape for every character that a line of YAML cannot hold."""
    return '"' + "".join(_ESCAPES.get(letter) or _escape(letter) for letter in text) + '"'


def _escape(letter: str) -> str:
    """Return a character of a quoted text, as an escape if it is not printable."""
    if letter.isprintable():
        return letter
    return f"\\U{ord(letter):08x}"


def comment(text: str, indent: int = 0) -> list[str]:
    """Return the lines of a comment, wrapped; characters that YAML does not allow become blanks."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return [f"{' ' * indent}# {line}" for line in textwrap.wrap(plain, 116 - indent)]


def block(node: nodes.Node, indent: int = 0) -> Iterator[str]:
    """Yield the lines of a tree in block style, one line for each entry, after `indent` blanks; repeated keys are
    kept.
    """
    pad = " " * indent
    if isinstance(node, nodes.Mapping) and node.pairs:
        for key, value in node.pairs:
            yield from _entry(f"{pad}{_one_line(key)}:", value, indent + 2)
    elif isinstance(node, nodes.Sequence) and node.items:
        for part in node.items:
            yield from _entry(f"{pad}-", part, indent + 2)
    else:
        yield f"{pad}{_one_line(node)}"


def _entry(head: str, value: nodes.Node, indent: int) -> Iterator[str]:
    """Yield the lines of a map's or list's entry: `head`, its key or dash, and the value on the same line or in a
    block below, indented by `indent`.
    """
    if _has_no_entries(value):
        yield f"{head} {_one_line(value)}".rstrip()
        return
    yield head
    yield from block(value, indent)


def _has_no_entries(node: nodes.Node) -> bool:
    """Return whether a node is a scalar or an empty map or list, which is written on one line."""
    if isinstance(node, nodes.Scalar):
        return True
    if isinstance(node, nodes.Mapping):
        return not node.pairs
    return not node.items


def _one_line(node: nodes.Node) -> str:
    """Return a tree on one line, lists and maps in brackets."""
    if isinstance(node, nodes.Mapping):
        return "{" + ", ".join(f"{_one_line(key)}: {_one_line(value)}" for key, value in node.pairs) + "}"
    if isinstance(node, nodes.Sequence):
        return "[" + ", ".join(map(_one_line, node.items)) + "]"
    if node.is_null:
        return node.text
    return word(node.text) if node.plain else quote(node.text)


# The limits of C++ integers, as which the reference reads numbers.
INT32_MIN = -(1 << 31)
INT32_MAX = (1 << 31) - 1
UINT32_MAX = (1 << 32) - 1

# A C++ stream reads integers so, in any base: optional sign, 0x hex, leading-0 octal, else decimal; trailing blanks.
_INTEGER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0([0-7]*)|([1-9][0-9]*))[ \t\n\v\f\r]*")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t\n\v\f\r]*")
_LEADING_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_FLOAT32_LIMIT = (2 - 2**-24) * 2.0**127  # from here on a number rounds to infinity in single precision
_MAX_DIGITS = 32  # longer texts are out of range in any base; bounds the work

_TRUE = ("y", "yes", "true", "on")
_FALSE = ("n", "no", "false", "off")


def _boolean_words() -> dict[str, bool]:
    """Return the value of each boolean word in lower, Capitalised and UPPER case."""
    values: dict[str, bool] = {}
    for word in (*_TRUE, *_FALSE):
        values.update(dict.fromkeys((word, word.capitalize(), word.upper()), word in _TRUE))
    return values


BOOLS = _boolean_words()
_SPECIAL_FLOATS = {
    ".inf": inf, ".Inf": inf, ".INF": inf,
    "+.inf": inf, "+.Inf": inf, "+.INF": inf,
    "-.inf": -inf, "-.Inf": -inf, "-.INF": -inf,
    ".nan": nan, ".NaN": nan, ".NAN": nan,
}  # fmt: skip


def _integer(text: str) -> int | None:
    """Return an integer of any size written as decimal, 0x hex or leading-0 octal; None for any other text, and for
    more than 32 digits.
    """
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, hexadecimal, octal, decimal = match.groups()
    digits = octal or "0"
    base = 8
    if hexadecimal:
        digits = hexadecimal
        base = 16
    elif decimal:
        digits = decimal
        base = 10
    if len(digits.lstrip("0")) > _MAX_DIGITS:
        return None
    value = int(digits, base)
    return -value if sign == "-" else value


@lru_cache(8192)
def parse_int(text: str) -> int | None:
    """Return a signed 32-bit integer, written as decimal, 0x hex or leading-0 octal; None for any other text."""
    value = _integer(text)
    if value is None or not INT32_MIN <= value <= INT32_MAX:
        return None
    return value


@lru_cache(8192)
def parse_address(text: str) -> int | None:
    """Return an unsigned 32-bit integer; None for any other text, and for a minus sign even before 0."""
    if text.startswith("-"):
        return None
    value = _integer(text)
    if value is None or value > UINT32_MAX:
        return None
    return value


def parse_bool(text: str) -> bool | None:
    """Return a boolean: true/false, yes/no, on/off, y/n in lower, Capitalised or UPPER case; None for any other
    text."""
    return BOOLS.get(text)


@lru_cache(1024)
def parse_float(text: str) -> float | None:
    """Return a number within single precision: decimal with an optional exponent, `.inf` or `.nan`; no hex, no suffix.

    None for any other text.
    """
    special = _SPECIAL_FLOATS.get(text)
    if special is not None:
        return special
    if _FLOAT.fullmatch(text) is None:
        return None
    value = float(text)
    if not -_FLOAT32_LIMIT < value < _FLOAT32_LIMIT:
        return None
    return value


def leading_integer(text: str) -> int | None:
    """Return the decimal integer at the start of a text, or None; text after it is ignored.

    C++ `stoi` reads so: variables (NETLIST 3.1) and the N of `input_N_tms`.
    """
    match = _LEADING_INTEGER.match(text)
    if match is None or len(match[1]) > _MAX_DIGITS:
        return None
    value = int(match[1])
    if not INT32_MIN <= value <= INT32_MAX:
        return None
    return value
