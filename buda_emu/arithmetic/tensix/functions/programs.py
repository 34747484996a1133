"""Functions of the vector unit recorded as programs for the kernel that runs them fast.

`record` calls a definition with a unit that notes the instructions instead of executing them, and gives the values
registers. The kernel then takes the same steps as `NumpyUnit` does.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.kernels.tensix.functions import lanes, vector_unit
from buda_emu.arithmetic.kernels.tensix.functions.lanes import BF16, FP16, FP32, INT32
from buda_emu.arithmetic.kernels.tensix.words import TILE, as_rows
from buda_emu.arithmetic.tensix.functions.elementary import MINUS_ONE, ONE
from buda_emu.arithmetic.tensix.lanes import DstMode
from buda_emu.support.errors import InternalError

_MODES: Final[dict[DstMode, int]] = {"bf16": BF16, "fp16": FP16, "fp32": FP32, "int32": INT32}
_INPUTS: Final = 2  # numbered before the values of the steps


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Instructions of the kernel that computes a function of the vector unit, one row each: operation, target, three
    operands, number. `constants` are loaded into the first registers, `tables` are for lookups; `registers` counts all
    registers, those with constants and inputs too."""

    code: NDArray[np.int32]
    constants: U32
    tables: U32
    registers: int

    def run(
        self,
        dst: U32,
        out: U32,
        mask: NDArray[np.bool_],
        load_mode: DstMode,
        store_mode: DstMode | None = None,
        second: tuple[U32, DstMode] | None = None,
        blackhole: bool = False,
        tiles: tuple[int, int] | None = None,
    ) -> None:
        """Compute `out` from the Dst image `dst`, and for programs of two inputs from `second` and its mode, by the
        compiled kernel.

        Images are uint32[n, 32, 32], C-contiguous; `mask` bool[32, 32] marks the datums to compute, the others are
        copied from `dst`. `load_mode` is what `dst` holds, `store_mode` what the result has where that differs. `tiles`
        is the range (first, end) of tiles to compute, all by default.
        """
        other, other_mode = second or (dst, load_mode)
        first, other, target = map(as_rows, (dst, other, out))
        start, stop = tiles or (0, len(dst))
        code = vector_unit.Code(self.code, self.constants, self.tables, self.registers)
        inputs = vector_unit.Inputs(first, _MODES[load_mode], other, _MODES[other_mode], second is not None)
        out_mode = _MODES[store_mode or load_mode]
        vector_unit.run_program(start, stop, code, inputs, mask.reshape(TILE), target, out_mode, blackhole)


@dataclass(frozen=True, slots=True)
class ProgramValue:
    """An input of a program or the result of an instruction: its number in the order of appearance, inputs first."""

    index: int


Operand = ProgramValue | int


@dataclass(slots=True)
class Recorder:
    """A `VectorUnit` that records instructions instead of executing them, as `steps` (operation, operands, number) and
    `tables`. Its methods return the value that stands for the instruction's result."""

    steps: "list[Step]" = field(default_factory=list[Any])
    tables: list[tuple[int, ...]] = field(default_factory=list[Any])

    def fma(self, x: Operand, y: Operand, z: Operand) -> ProgramValue:
        """Record x * y + z; bare products, sums and differences have instructions of their own."""
        if z == 0:
            return self._note(lanes.MULTIPLY, x, y)
        if x == ONE:
            return self._note(lanes.ADD_FLOATS, z, y)
        if x == MINUS_ONE:
            return self._note(lanes.SUBTRACT_FLOATS, z, y)
        return self._note(lanes.FMA, x, y, z)

    def merge(self, a: ProgramValue, mask: int, added: Operand) -> ProgramValue:
        """Record (a & mask) | added."""
        return self._note(lanes.MERGE, a, mask, added)

    def exponent(self, a: ProgramValue) -> ProgramValue:
        """Record the exponent field of `a`."""
        return self._note(lanes.EXPONENT, a)

    def bit_and(self, a: ProgramValue, b: Operand) -> ProgramValue:
        """Record a & b."""
        return self._note(lanes.AND, a, b)

    def bit_or(self, a: ProgramValue, b: Operand) -> ProgramValue:
        """Record a | b."""
        return self._note(lanes.OR, a, b)

    def shift_left(self, a: ProgramValue, places: int) -> ProgramValue:
        """Record a shift towards the high bits."""
        return self._note(lanes.SHIFT_LEFT, a, number=places)

    def shift_right(self, a: ProgramValue, places: int) -> ProgramValue:
        """Record a shift towards the low bits, with zeros at the top."""
        return self._note(lanes.SHIFT_RIGHT, a, number=places)

    def add(self, a: Operand, b: Operand) -> ProgramValue:
        """Record the integer sum modulo 2^32."""
        return self._note(lanes.ADD, a, b)

    def subtract(self, a: Operand, b: Operand) -> ProgramValue:
        """Record the integer difference modulo 2^32."""
        return self._note(lanes.SUBTRACT, a, b)

    def negative(self, a: ProgramValue) -> ProgramValue:
        """Return the condition that `a` is negative, without an instruction: the value itself, because a choice looks
        at the sign bit of its condition."""
        return a

    def equal(self, a: ProgramValue, b: Operand) -> ProgramValue:
        """Record the condition that all bits agree."""
        return self._note(lanes.EQUAL, a, b)

    def less(self, a: ProgramValue, b: Operand) -> ProgramValue:
        """Record the condition a < b of integers in two's complement."""
        return self._note(lanes.LESS, a, b)

    def select(self, condition: ProgramValue, a: Operand, b: Operand) -> ProgramValue:
        """Record the choice of `a` where the condition holds, else `b`."""
        return self._note(lanes.SELECT, condition, a, b)

    def lookup(self, breaks: tuple[int, ...], values: tuple[int, ...], a: ProgramValue) -> ProgramValue:
        """Record a table lookup; equal tables are stored once, filled up to the kernel's number of ranges with breaks
        of all ones."""
        missing = lanes.TABLE_BREAKS - len(breaks)
        row = breaks + (0xFFFFFFFF,) * missing + values + (0,) * missing
        if row not in self.tables:
            self.tables.append(row)
        return self._note(lanes.LOOKUP, a, number=self.tables.index(row))

    def to_integer(self, a: ProgramValue, limit: int) -> ProgramValue:
        """Record the conversion to an integer of at most `limit` in magnitude."""
        return self._note(lanes.TO_INTEGER, a, number=limit)

    def to_float(self, a: ProgramValue) -> ProgramValue:
        """Record the conversion of an integer to fp32."""
        return self._note(lanes.TO_FLOAT, a)

    def greater(self, a: Operand, b: Operand) -> ProgramValue:
        """Record the choice of the larger in the order of sign and magnitude."""
        return self._note(lanes.GREATER, a, b)

    def _note(self, operation: int, *operands: Operand, number: int = 0) -> ProgramValue:
        """Append an instruction of the kernel, `number` its constant (places, limit or table), and return its
        result."""
        self.steps.append((operation, operands, number))
        return ProgramValue(_INPUTS + len(self.steps) - 1)


Step = tuple[int, tuple[Operand, ...], int]
"""Operation, operands, number."""


def record(function: Callable[..., ProgramValue], inputs: int = 1) -> Program:
    """Record the program of a function of the vector unit, `function(unit, *values)`, which takes one or two inputs.
    Raises InternalError where the result is not that of the last instruction."""
    recorder = Recorder()
    result = function(recorder, *(ProgramValue(i) for i in range(inputs)))
    if result.index != _INPUTS + len(recorder.steps) - 1:
        raise InternalError("the result of a vector program is its last instruction")
    recorder.steps = _mark_unneeded_products(recorder.steps)
    constants: list[int] = []
    for _, operands, _ in recorder.steps:
        for operand in operands:
            if isinstance(operand, int) and operand not in constants:
                constants.append(operand)
    code, registers = _allocate_registers(recorder.steps, constants)
    return Program(
        np.array(code, dtype=np.int32),
        np.array(constants, dtype=np.uint32),
        np.array(recorder.tables or [(0,) * (2 * lanes.TABLE_BREAKS + 1)], dtype=np.uint32),
        registers,
    )


def _mark_unneeded_products(steps: list[Step]) -> list[Step]:
    """Return the steps with a mark on each multiplication whose product counts only where a condition does not hold: it
    gets the condition as a third operand, so that the kernel need not compute the product right where the condition
    holds. The one reader of such a product is a choice (SELECT) for its false case, and the condition is computed
    before the product."""
    readers: dict[int, list[int]] = {}
    for at, (_, operands, _) in enumerate(steps):
        for operand in operands:
            if isinstance(operand, ProgramValue):
                readers.setdefault(operand.index, []).append(at)
    marked = list(steps)
    for at, (operation, operands, _) in enumerate(steps):
        reader = readers.get(_INPUTS + at, [])
        if operation != lanes.MULTIPLY or len(reader) != 1:
            continue
        condition = _choice_condition(steps[reader[0]], ProgramValue(_INPUTS + at))
        if condition is not None:
            marked[at] = lanes.MULTIPLY, (*operands, condition), lanes.UNLESS
    return marked


def _choice_condition(step: Step, value: ProgramValue) -> ProgramValue | None:
    """Return the condition of a choice that takes `value` where it does not hold, if the condition is computed before
    the value; None for any other step."""
    if step[0] != lanes.SELECT:
        return None
    condition, _, otherwise = step[1]
    if otherwise == value and isinstance(condition, ProgramValue) and condition.index < value.index:
        return condition
    return None


def _allocate_registers(steps: list[Step], constants: list[int]) -> tuple[list[tuple[int, ...]], int]:
    """Return the instructions with registers in place of values, and the number of registers. A register is used again
    once its value has been read for the last time; a result never shares a register with an operand of its own
    instruction."""
    last_use: dict[int, int] = {}
    for at, (_, operands, _) in enumerate(steps):
        last_use.update({o.index: at for o in operands if isinstance(o, ProgramValue)})
    registers = len(constants) + _INPUTS
    place = {i: len(constants) + i for i in range(_INPUTS)}
    free: list[int] = []
    code: list[tuple[int, ...]] = []
    for at, (operation, operands, number) in enumerate(steps):
        target = registers
        if free:
            target = free.pop()
        registers = max(registers, target + 1)
        place[_INPUTS + at] = target
        read = [place[o.index] if isinstance(o, ProgramValue) else constants.index(o) for o in operands]
        code.append((operation, target, *read, *[read[0]] * (3 - len(read)), number))
        used = {o.index for o in operands if isinstance(o, ProgramValue)}
        free.extend(place[i] for i in sorted(used) if last_use[i] == at)
    return code, registers
