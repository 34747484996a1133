"""Runs recorded programs of the vector unit over tiles of Dst (DEVICE_NUMERICS 3).

`buda_emu.tensix.programs` records them from the definitions. A program is a list of instructions on registers of 256
lanes, which stay in the first-level cache; every instruction is one loop that vectorises.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.kernels.jit import helper, kernel
from buda_emu.kernels.tensix.fma import add_rows, fma_rows, multiply_rows
from buda_emu.kernels.tensix.lanes import greater_row, load_row, store_row, to_float_row, to_integer_row

Image = NDArray[np.uint32]
"""uint32[tiles, 1024]: Dst datums of each tile, row by row."""

LANES: Final = 256
TILE: Final = 1024

# An instruction is: operation, register of the result, three registers of operands, and a number: the places of a
# shift, the bound of TO_INTEGER, the table of LOOKUP.
FMA: Final = 0
MULTIPLY: Final = 1
ADD_FLOATS: Final = 2
SUBTRACT_FLOATS: Final = 3
AND: Final = 4
OR: Final = 5
SHIFT_LEFT: Final = 6
SHIFT_RIGHT: Final = 7
ADD: Final = 8
SUBTRACT: Final = 9
NEGATIVE: Final = 10
EQUAL: Final = 11
LESS: Final = 12
SELECT: Final = 13
LOOKUP: Final = 14
TO_INTEGER: Final = 15
TO_FLOAT: Final = 16
GREATER: Final = 17

TABLE_BREAKS: Final = 5
"""A row of `tables` has this many ascending breaks, unused ones 2^32 - 1, and then one value more."""

U = np.uint32
I = np.int32  # noqa: E741
_TRUE: Final = U(0xFFFFFFFF)


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
    lanes = np.empty((registers, LANES), dtype=np.uint32)
    for i in range(constants.size):
        lanes[i, :] = constants[i]
    inputs = constants.size
    for tile in range(start, stop):
        for block in range(0, TILE, LANES):
            keep, target, here = (
                first[tile, block : block + LANES],
                out[tile, block : block + LANES],
                mask[block : block + LANES],
            )
            if not here.any():
                target[:] = keep
                continue
            load_row(keep, load_mode, lanes[inputs])
            load_row(second[tile, block : block + LANES], load_mode, lanes[inputs + 1])
            for step in range(code.shape[0]):
                _execute(code[step], lanes, tables, blackhole)
            store_row(lanes[code[code.shape[0] - 1, 1]], store_mode, keep, here, target)


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
def _execute(instruction: Any, lanes: Any, tables: Any, blackhole: Any) -> None:
    """One instruction."""
    operation = instruction[0]
    out, a, b, c = lanes[instruction[1]], lanes[instruction[2]], lanes[instruction[3]], lanes[instruction[4]]
    if operation == FMA:
        fma_rows(a, b, c, out, blackhole)
    elif operation == MULTIPLY:
        multiply_rows(a, b, out, blackhole)
    elif operation == ADD_FLOATS:
        add_rows(a, b, U(0), out, blackhole)
    elif operation == SUBTRACT_FLOATS:
        add_rows(a, b, U(0x80000000), out, blackhole)
    elif operation == SELECT:
        for i in range(LANES):
            out[i] = b[i] if a[i] != U(0) else c[i]
    elif operation == LOOKUP:
        _lookup(a, tables[instruction[5]], out)
    elif operation == TO_INTEGER:
        to_integer_row(a, instruction[5], out)
    elif operation == TO_FLOAT:
        to_float_row(a, out)
    elif operation == GREATER:
        greater_row(a, b, out)
    elif operation == SHIFT_LEFT:
        places = U(instruction[5])
        for i in range(LANES):
            out[i] = U(a[i] << places)
    elif operation == SHIFT_RIGHT:
        places = U(instruction[5])
        for i in range(LANES):
            out[i] = U(a[i] >> places)
    else:
        _simple(operation, a, b, out)


@helper
def _simple(operation: Any, a: Any, b: Any, out: Any) -> None:
    """Instructions of one step on one or two registers."""
    if operation == AND:
        for i in range(LANES):
            out[i] = U(a[i] & b[i])
    elif operation == OR:
        for i in range(LANES):
            out[i] = U(a[i] | b[i])
    elif operation == ADD:
        for i in range(LANES):
            out[i] = U(a[i] + b[i])
    elif operation == SUBTRACT:
        for i in range(LANES):
            out[i] = U(a[i] - b[i])
    elif operation == NEGATIVE:
        for i in range(LANES):
            out[i] = _TRUE if I(a[i]) < I(0) else U(0)
    elif operation == EQUAL:
        for i in range(LANES):
            out[i] = _TRUE if a[i] == b[i] else U(0)
    elif operation == LESS:
        for i in range(LANES):
            out[i] = _TRUE if I(a[i]) < I(b[i]) else U(0)


@helper
def _lookup(a: Any, table: Any, out: Any) -> None:
    """The value of the range in which each lane lies."""
    b0, b1, b2, b3, b4 = table[0], table[1], table[2], table[3], table[4]
    v0, v1, v2, v3, v4, v5 = table[5], table[6], table[7], table[8], table[9], table[10]
    for i in range(LANES):
        x = a[i]
        low = v0 if x < b0 else (v1 if x < b1 else v2)
        high = v3 if x < b3 else (v4 if x < b4 else v5)
        out[i] = low if x < b2 else high
