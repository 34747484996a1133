"""The opcodes of `varinst` (NETLIST 3.3)."""

from collections.abc import Callable, Mapping

from buda_emu.errors import ProgramError
from buda_emu.records import dataclass


@dataclass(frozen=True, slots=True)
class Opcode:
    """One varinst opcode: how many operands after the opcode, and the result from (out, operands)."""

    name: str
    operands: int
    doc: str
    result: Callable[[int, tuple[int, ...]], int]
    reads_out: bool = False


def _incwrap(out: int, args: tuple[int, ...]) -> int:
    inc, wrap = args
    if wrap == 0:
        raise ProgramError("incwrap with wrap 0 has no result")
    if wrap < 0 and inc < 0:
        raise ProgramError(f"incwrap by {inc} with a negative wrap {wrap} has no result")
    turns = max(0, -(inc // wrap)) if inc < 0 else 0  # the smallest k >= 0 with k*wrap + inc >= 0
    total = out + inc + turns * wrap
    return total - wrap * _truncate_div(total, wrap)


def _truncate_div(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


OPCODES: Mapping[str, Opcode] = {
    op.name: op
    for op in (
        Opcode("set", 1, "[out, set, a]: out = a", lambda _, args: args[0]),
        Opcode("add", 2, "[out, add, a, b]: out = a + b", lambda _, args: args[0] + args[1]),
        Opcode("mul", 2, "[out, mul, a, b]: out = a * b", lambda _, args: args[0] * args[1]),
        Opcode("inc", 1, "[out, inc, a]: out = out + a", lambda out, args: out + args[0], True),
        Opcode("incwrap", 2, "[out, incwrap, a, wrap]: out = (out + a) modulo wrap", _incwrap, True),
    )
}
