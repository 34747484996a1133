"""Operands of a program's instructions as texts: variables and immediate values (NETLIST 3, 3.1)."""

import re
from functools import lru_cache

from buda_emu.errors import ProgramError

_MOST_DIGITS = 10
_MOST_SHOWN = 40
INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
_LEADING_INT = re.compile(r"\s*([+-]?)0*(\d+)")


def is_variable(text: str) -> bool:
    """An operand names a variable when it contains a `$` anywhere (NETLIST 3)."""
    return "$" in text


def stored_name(text: str) -> str:
    """The name under which a variable is kept: every `$` is stripped."""
    return text.replace("$", "")


@lru_cache(maxsize=1024)
def immediate(text: str) -> int:
    """Value of an operand that is not a variable: true, false or a leading decimal integer (NETLIST 3.1 (b))."""
    if not text:
        raise ProgramError("empty operand where a value or a $variable is needed")
    lowered = text.lower()
    if lowered in ("true", "false"):
        return int(lowered == "true")
    match = _LEADING_INT.match(text)
    if match is None:
        raise ProgramError(f"operand {text!r} is neither a number nor true or false nor a $variable")
    sign, digits = match.groups()
    value = int(sign + digits) if len(digits) <= _MOST_DIGITS else None  # thousands of digits take Python too long
    if value is None or not INT_MIN <= value <= INT_MAX:
        raise ProgramError(f"operand {shortened(text)!r} does not fit a 32-bit signed integer")
    return value


def shortened(text: str) -> str:
    """For messages."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def wrap32(value: int) -> int:
    """Two's complement 32-bit result."""
    return (value - INT_MIN) % (1 << 32) + INT_MIN
