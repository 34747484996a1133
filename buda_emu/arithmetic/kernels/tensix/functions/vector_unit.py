"""Runs recorded programs of the vector unit over tiles of Dst (DEVICE_NUMERICS 3).

`buda_emu.arithmetic.tensix.functions.programs` records them from the definitions. A program is a list of instructions
on registers of 256 lanes, which stay in the first-level cache; every instruction is one loop of vector code
(`lanes.execute_row`).
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.kernels.tensix.functions.fma import LANES, fma_any, may_be_special
from buda_emu.arithmetic.kernels.tensix.functions.lanes import (
    FMA,
    MULTIPLY,
    SUBTRACT_FLOATS,
    UNLESS,
    execute_row,
    load_row,
    store_row,
)
from buda_emu.arithmetic.kernels.tensix.products.prepared import align_to_cache_line
from buda_emu.arithmetic.kernels.tensix.words import TILE
from buda_emu.spec.single import SIGN

Image = NDArray[np.uint32]
"""uint32[tiles, 1024]: Dst datums of each tile, row by row."""


U = np.uint32
I = np.int32  # noqa: E741
_SIGN: Final = U(SIGN)
_ONE: Final = U(0x3F800000)  # the bits of the single 1.0
_ROW: Final = np.uint64(LANES)


@kernel
def run_instructions(
    code: NDArray[np.int32], lanes: NDArray[np.uint32], tables: NDArray[np.uint32], blackhole: bool
) -> None:
    """Execute the instructions of `code`, int32[n, 6], in their order, on registers of LANES lanes that lie one after
    the other in `lanes`; lanes with special numbers are computed again, so that all are right. `tables` are those of
    LOOKUP."""
    special = np.zeros(1, np.int32)
    for step in range(code.shape[0]):
        execute_row(code, step, lanes, tables, special, blackhole)
        if special[0] < 0:
            _recompute_special_lanes(code, step, lanes, blackhole)


class Code(NamedTuple):
    """A recorded program: instructions int32[n, 6]; the `tables` of its lookups; and the number of its `registers`.
    Register i holds constants[i] in every lane; the registers of both inputs come next; the last instruction computes
    the result."""

    instructions: NDArray[np.int32]
    constants: NDArray[np.uint32]
    tables: NDArray[np.uint32]
    registers: int


class Inputs(NamedTuple):
    """Both inputs of a program as Dst images, with their modes (`lanes.BF16` and so on). `two` is False for a program
    that takes only the first; the second is not looked at then."""

    first: Image
    first_mode: int
    second: Image
    second_mode: int
    two: bool


@kernel
def run_program(
    start: int,
    stop: int,
    program: Code,
    inputs: Inputs,
    mask: NDArray[np.bool_],
    out: Image,
    out_mode: int,
    blackhole: bool,
) -> None:
    """Write to tiles start to stop - 1 of `out`, Dst images of `out_mode`, the results of a recorded program. mask:
    bool[1024]; datums where it is not set are copied from the first input. `blackhole`: with that chip's
    multiply-add."""
    code, constants, tables, registers = program
    first, first_mode, second, second_mode, two_inputs = inputs
    lanes = align_to_cache_line(np.empty((registers + 1) * LANES, np.uint32), registers * LANES)
    for i in range(constants.size):
        for k in range(i * LANES, (i + 1) * LANES):
            lanes[k] = constants[i]
    place = np.uint64(constants.size) * _ROW
    result = np.uint64(code[code.shape[0] - 1, 1]) * _ROW
    for tile in range(start, stop):
        for block in range(0, TILE, LANES):
            keep = first[tile, block : block + LANES]
            target = out[tile, block : block + LANES]
            block_mask = mask[block : block + LANES]
            if not _any_is_set(block_mask):
                for i in range(_ROW):
                    target[i] = keep[i]
                continue
            load_row(keep, first_mode, lanes, place)
            if two_inputs:
                load_row(second[tile, block : block + LANES], second_mode, lanes, place + _ROW)
            run_instructions(code, lanes, tables, blackhole)
            store_row(lanes, result, out_mode, keep, block_mask, target)


@kernel
def apply_table(
    start: int, stop: int, image: Image, table: NDArray[np.uint16], mask: NDArray[np.bool_], out: Image
) -> None:
    """Write to tiles start to stop - 1 of `out` the datums of `image`, of 16 bits, mapped by a table of all 65536
    results; datums where `mask`, bool[1024], is not set are copied."""
    for tile in range(start, stop):
        source = image[tile]
        target = out[tile]
        for i in range(TILE):
            datum = source[i]
            target[i] = U(table[U(datum & U(0xFFFF))]) if mask[i] else datum


@helper
def _any_is_set(mask: Any) -> Any:
    """Return whether a datum is set in the LANES datums of a mask."""
    any_set = False
    for i in range(_ROW):
        any_set |= mask[i]
    return any_set


@helper
def _recompute_special_lanes(code: Any, step: int, lanes: Any, blackhole: bool) -> None:
    """Compute again, in place, the lanes of the result of a multiply-add, product or sum that `may_be_special` finds. A
    product that is needed only where a condition does not hold (UNLESS) is left as it is where it does."""
    operation = code[step, 0]
    unless = code[step, 0] == MULTIPLY and code[step, 5] == UNLESS
    out = np.uint64(code[step, 1]) * _ROW
    a = np.uint64(code[step, 2]) * _ROW
    b = np.uint64(code[step, 3]) * _ROW
    c = np.uint64(code[step, 4]) * _ROW
    for i in range(_ROW):
        x = lanes[a + i]
        y = lanes[b + i]
        z = lanes[c + i]
        if unless and I(z) < I(0):  # not needed where the condition holds
            continue
        if operation == MULTIPLY:
            z = U(0)
        elif operation != FMA:
            z = x
            x = _ONE
            if operation == SUBTRACT_FLOATS:
                x = U(_ONE | _SIGN)
        if may_be_special(x, y, z, lanes[out + i]):
            lanes[out + i] = fma_any(x, y, z, blackhole)


_TAPS: Final = U(0xB400)  # of the 16-bit Galois shift register (DEVICE_NUMERICS 3.3, dropout)
_LANES: Final = 32  # elements that a pass of the vector unit computes


@kernel
def random_words(state: NDArray[np.uint32], words: NDArray[np.uint32], mask: NDArray[np.bool_]) -> None:
    """Fill `words`, uint32[n, 32, 32], with the words of the generator of dropout, in the order of the vector unit's
    passes, and step its `state`, uint32[32], one register for each lane (DEVICE_NUMERICS 3.3).

    `mask`, bool[32, 32], marks the datums that the vector mode reaches; all others are 0 and their passes do not step
    the state.
    """
    for tile in range(words.shape[0]):
        for face in range(4):
            top = 16 * (face >> 1)
            left = 16 * (face & 1)
            for step in range(8):
                row = top + 4 * (step >> 1)
                column = left + (step & 1)
                reached = mask[row, column]
                for lane in range(_LANES):
                    i = row + (lane >> 3)
                    j = column + 2 * (lane & 7)
                    word = state[lane]
                    words[tile, i, j] = U(0)
                    if reached:
                        words[tile, i, j] = word
                        state[lane] = U(word >> U(1))
                        if U(word & U(1)) != U(0):
                            state[lane] = U(U(word >> U(1)) ^ _TAPS)
