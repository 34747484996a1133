"""The opcodes of `varinst` (NETLIST 3.3)."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from buda_emu.support.errors import ProgramError
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Opcode:
    """One varinst opcode: its number of operands, and `result`, which computes the new value from the old one and
    the operands."""

    name: str
    operands: int
    doc: str
    result: Callable[[int, tuple[int, ...]], int]
    reads_out: bool = False


def _incwrap(out: int, args: tuple[int, ...]) -> int:
    """Return the counter `out` after an increment, wrapped at a modulus; `args` is (increment, modulus). Raises
    ProgramError for a modulus of 0, and for a negative modulus with a negative increment.
    """
    inc, wrap = args
    if wrap == 0:
        raise ProgramError("incwrap with wrap 0 has no result")
    if wrap < 0 and inc < 0:
        raise ProgramError(f"incwrap by {inc} with a negative wrap {wrap} has no result")
    wraps = 0  # the smallest k >= 0 with k * wrap + inc >= 0
    if inc < 0:
        wraps = max(0, -(inc // wrap))
    total = out + inc + wraps * wrap
    return total - wrap * _truncate_div(total, wrap)


def _truncate_div(a: int, b: int) -> int:
    """Return a quotient rounded towards 0, as C++ divides integers; `//` rounds down."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


OPCODES: Mapping[str, Opcode] = {
    op.name: op
    for op in (
        Opcode("set", 1, "[out, set, a]: out = a", lambda _, args: args[0]),
        Opcode("add", 2, "[out, add, a, b]: out = a + b", lambda _, args: args[0] + args[1]),
        Opcode("mul", 2, "[out, mul, a, b]: out = a * b", lambda _, args: args[0] * args[1]),
        Opcode(
            name="inc",
            operands=1,
            doc="[out, inc, a]: out = out + a",
            result=lambda out, args: out + args[0],
            reads_out=True,
        ),
        Opcode(
            name="incwrap",
            operands=2,
            doc="[out, incwrap, a, wrap]: out = (out + a) modulo wrap",
            result=_incwrap,
            reads_out=True,
        ),
    )
}


_MOST_DIGITS = 10  # those of INT_MAX; to convert thousands takes Python too long
_MOST_SHOWN = 40  # characters of an operand in a message: the message stays within a line
# Variables of programs are 32-bit signed integers (NETLIST 3.1).
INT_MIN = -(1 << 31)
INT_MAX = (1 << 31) - 1
_LEADING_INT = re.compile(r"\s*([+-]?)0*(\d+)")


def is_variable(text: str) -> bool:
    """Return whether an operand names a variable: it has a `$` anywhere (NETLIST 3)."""
    return "$" in text


def stored_name(text: str) -> str:
    """Return the name under which a variable is stored, without any `$`."""
    return text.replace("$", "")


@lru_cache(maxsize=1024)
def immediate(text: str) -> int:
    """Return the value of an operand that is not a variable: 1 for true, 0 for false, or the decimal integer with which
    it begins (NETLIST 3.1 (b)).

    Raises ProgramError for any other text, and for an integer of more than 32 bits.
    """
    if not text:
        raise ProgramError("empty operand where a value or a $variable is needed")
    lowered = text.lower()
    if lowered in ("true", "false"):
        return int(lowered == "true")
    match = _LEADING_INT.match(text)
    if match is None:
        raise ProgramError(f"operand {text!r} is neither a number nor true or false nor a $variable")
    sign, digits = match.groups()
    if len(digits) <= _MOST_DIGITS and INT_MIN <= int(sign + digits) <= INT_MAX:
        return int(sign + digits)
    raise ProgramError(f"operand {shorten(text)!r} does not fit a 32-bit signed integer")


def is_read_in_part(text: str) -> bool:
    """Return whether `immediate` reads only the beginning of a text as an integer, such as the 1 of `1.9`."""
    match = _LEADING_INT.match(text)
    return match is not None and match.end() < len(text.rstrip())


def shorten(text: str) -> str:
    """Return a text for messages, cut after `_MOST_SHOWN` characters."""
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[:_MOST_SHOWN]}..."


def wrap32(value: int) -> int:
    """Return a number wrapped to 32 bits in two's complement."""
    return (value - INT_MIN) % (1 << 32) + INT_MIN
