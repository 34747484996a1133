"""Runs recorded programs of the vector unit over tiles of Dst (DEVICE_NUMERICS 3).

`buda_emu.tensix.programs` records them from the definitions. A program is a list of instructions on registers of 256
lanes, which stay in the first-level cache; every instruction is one loop that vectorises.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.kernels.jit import helper, kernel
from buda_emu.kernels.tensix.fma import (
    add_rows,
    fma_any,
    fma_rows_blackhole,
    fma_rows_wormhole,
    may_be_special,
    multiply_rows,
)
from buda_emu.kernels.tensix.images import TILE
from buda_emu.kernels.tensix.lanes import LANES, greater_row, load_row, store_row, to_float_row, to_integer_row

Image = NDArray[np.uint32]
"""uint32[tiles, 1024]: Dst datums of each tile, row by row."""


# An instruction is: operation, register of the result, three registers of operands, and a number: the places of a
# shift, the bound of TO_INTEGER, the table of LOOKUP; with UNLESS the third operand of MULTIPLY is the condition where
# nobody reads the result. A condition is a word whose sign bit tells.
FMA: Final = 0
MULTIPLY: Final = 1
ADD_FLOATS: Final = 2
SUBTRACT_FLOATS: Final = 3
MERGE: Final = 4
AND: Final = 5
OR: Final = 6
SHIFT_LEFT: Final = 7
SHIFT_RIGHT: Final = 8
EXPONENT: Final = 9
ADD: Final = 10
SUBTRACT: Final = 11
EQUAL: Final = 12
LESS: Final = 13
SELECT: Final = 14
LOOKUP: Final = 15
TO_INTEGER: Final = 16
TO_FLOAT: Final = 17
GREATER: Final = 18

UNLESS: Final = 1

TABLE_BREAKS: Final = 5
"""A row of `tables` has this many ascending breaks, unused ones 2^32 - 1, and then one value more."""

U = np.uint32
I = np.int32  # noqa: E741
_TRUE: Final = U(0xFFFFFFFF)
_ONE: Final = U(0x3F800000)
_ROW: Final = np.uint64(LANES)


@kernel
def run_instructions(
    code: NDArray[np.int32], lanes: NDArray[np.uint32], tables: NDArray[np.uint32], blackhole: bool
) -> None:
    """The instructions of `code` once, on registers that lie one after the other in `lanes`."""
    for step in range(code.shape[0]):
        _execute(code, step, lanes, tables, blackhole)


@kernel
def run_program(
    start: int,
    stop: int,
    code: NDArray[np.int32],
    constants: NDArray[np.uint32],
    tables: NDArray[np.uint32],
    registers: int,
    first: Image,
    second: Image,
    second_mode: int,
    two_inputs: bool,
    load_mode: int,
    store_mode: int,
    mask: NDArray[np.bool_],
    out: Image,
    blackhole: bool,
) -> None:
    """Tiles start..stop of `out` from those of `first` and, for programs of two inputs, `second`.

    `code` int32[n, 6]; register i holds constants[i] in every lane, the two inputs come next, the last instruction
    computes the result. `mask` bool[1024]: datums that are not set are copied from `first`. Modes as in
    `buda_emu.kernels.tensix.lanes`.
    """
    lanes = np.empty(registers * LANES, dtype=np.uint32)
    for i in range(constants.size):
        for k in range(i * LANES, (i + 1) * LANES):
            lanes[k] = constants[i]
    inputs = np.uint64(constants.size) * _ROW
    result = np.uint64(code[code.shape[0] - 1, 1]) * _ROW
    for tile in range(start, stop):
        for block in range(0, TILE, LANES):
            keep, target, here = (
                first[tile, block : block + LANES],
                out[tile, block : block + LANES],
                mask[block : block + LANES],
            )
            if not _any(here):
                for i in range(_ROW):
                    target[i] = keep[i]
                continue
            load_row(keep, load_mode, lanes, inputs)
            if two_inputs:
                load_row(second[tile, block : block + LANES], second_mode, lanes, inputs + _ROW)
            run_instructions(code, lanes, tables, blackhole)
            store_row(lanes, result, store_mode, keep, here, target)


@kernel
def apply_table(
    start: int,
    stop: int,
    image: Image,
    table: NDArray[np.uint16],
    mask: NDArray[np.bool_],
    out: Image,
) -> None:
    """Tiles start..stop of 16-bit datums through a table of all 65536 results; where `mask` is unset they stay."""
    for tile in range(start, stop):
        source, target = image[tile], out[tile]
        for i in range(TILE):
            datum = source[i]
            target[i] = U(table[U(datum & U(0xFFFF))]) if mask[i] else datum


@helper
def _any(mask: Any) -> Any:
    """Whether anything is set."""
    found = False
    for i in range(_ROW):
        found |= mask[i]
    return found


@helper
def _execute(code: Any, step: int, lanes: Any, tables: Any, blackhole: Any) -> None:
    """One instruction. Registers are places in `lanes`, unsigned because numba would test signed ones for wrapping."""
    operation, number = code[step, 0], code[step, 5]
    out = np.uint64(code[step, 1]) * _ROW
    a, b, c = np.uint64(code[step, 2]) * _ROW, np.uint64(code[step, 3]) * _ROW, np.uint64(code[step, 4]) * _ROW
    if operation <= SUBTRACT_FLOATS:
        unless = operation == MULTIPLY and number == UNLESS
        if not (unless and _all_negative(lanes, c)):
            _multiply_add(operation, lanes, a, b, c, out, unless, blackhole)
    elif operation == LOOKUP:
        _lookup(lanes, a, tables, number, out)
    elif operation == TO_INTEGER:
        to_integer_row(lanes, a, number, out)
    elif operation == TO_FLOAT:
        to_float_row(lanes, a, out)
    elif operation == GREATER:
        greater_row(lanes, a, b, out)
    else:
        _simple(operation, lanes, a, b, c, U(number), out)


@helper
def _all_negative(lanes: Any, row: Any) -> Any:
    """Whether a condition holds in every lane."""
    found = I(-1)
    for i in range(_ROW):
        found = I(found & I(lanes[row + i]))
    return found < I(0)


@helper
def _multiply_add(operation: Any, lanes: Any, a: Any, b: Any, c: Any, out: Any, unless: Any, blackhole: Any) -> None:
    """a * b + c, a * b, a + b or a - b; `unless`: not needed in lanes where the condition c holds."""
    flip = U(0x80000000) if operation == SUBTRACT_FLOATS else U(0)
    if operation == FMA:
        if blackhole:
            special = fma_rows_blackhole(lanes, a, b, c, out)
        else:
            special = fma_rows_wormhole(lanes, a, b, c, out)
    elif operation == MULTIPLY:
        special = multiply_rows(lanes, a, b, out)
    else:
        special = add_rows(lanes, a, b, flip, out, blackhole)
    if not special:
        return
    for i in range(_ROW):
        x, y, z = lanes[a + i], lanes[b + i], lanes[c + i]
        if unless and I(z) < I(0):
            continue
        if operation == MULTIPLY:
            z = U(0)
        elif operation != FMA:
            x, z = U(_ONE | flip), x
        if may_be_special(x, y, z, lanes[out + i]):
            lanes[out + i] = fma_any(x, y, z, blackhole)


@helper
def _simple(operation: Any, lanes: Any, a: Any, b: Any, c: Any, number: Any, out: Any) -> None:
    """Instructions of one or two steps."""
    if operation == SELECT:
        for i in range(_ROW):
            chosen, other = lanes[b + i], lanes[c + i]
            lanes[out + i] = chosen if I(lanes[a + i]) < I(0) else other
    elif operation == MERGE:
        for i in range(_ROW):
            lanes[out + i] = U(U(lanes[a + i] & lanes[b + i]) | lanes[c + i])
    elif operation == AND:
        for i in range(_ROW):
            lanes[out + i] = U(lanes[a + i] & lanes[b + i])
    elif operation == OR:
        for i in range(_ROW):
            lanes[out + i] = U(lanes[a + i] | lanes[b + i])
    elif operation == EXPONENT:
        for i in range(_ROW):
            lanes[out + i] = U(U(lanes[a + i] >> U(23)) & U(255))
    elif operation == SHIFT_LEFT:
        for i in range(_ROW):
            lanes[out + i] = U(lanes[a + i] << number)
    elif operation == SHIFT_RIGHT:
        for i in range(_ROW):
            lanes[out + i] = U(lanes[a + i] >> number)
    elif operation == ADD:
        for i in range(_ROW):
            lanes[out + i] = U(lanes[a + i] + lanes[b + i])
    elif operation == SUBTRACT:
        for i in range(_ROW):
            lanes[out + i] = U(lanes[a + i] - lanes[b + i])
    elif operation == EQUAL:
        for i in range(_ROW):
            lanes[out + i] = _TRUE if lanes[a + i] == lanes[b + i] else U(0)
    elif operation == LESS:
        for i in range(_ROW):
            lanes[out + i] = _TRUE if I(lanes[a + i]) < I(lanes[b + i]) else U(0)


@helper
def _lookup(lanes: Any, a: Any, tables: Any, row: Any, out: Any) -> None:
    """The value of the range in which each lane lies."""
    b0, b1, b2, b3, b4 = tables[row, 0], tables[row, 1], tables[row, 2], tables[row, 3], tables[row, 4]
    v0, v1, v2 = tables[row, 5], tables[row, 6], tables[row, 7]
    v3, v4, v5 = tables[row, 8], tables[row, 9], tables[row, 10]
    for i in range(_ROW):
        x = lanes[a + i]
        low = v0 if x < b0 else (v1 if x < b1 else v2)
        high = v3 if x < b3 else (v4 if x < b4 else v5)
        lanes[out + i] = low if x < b2 else high
