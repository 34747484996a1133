"""The scalar grammar of a netlist: which texts are integers, booleans and numbers (NETLIST 1.1, 11.3 C12).

Every function takes the text of a scalar and returns None where it is not one. Quoting makes no difference.
"""

import re
from functools import lru_cache

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1
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
