"""Which tasks come before which, as bits, and accesses to common bytes that no order keeps apart (`timeline.order`).

Tasks are numbered so that whoever comes before has the smaller number. Bits are of one block of columns at a time, so
that memory grows with the number of tasks, not with its square: bit c of row r says that `first` + c comes before r.
"""

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]

_ONE = np.uint64(1)
_WORD = 64


@helper
def _has(rows: Words, row: int, column: int) -> bool:
    return (rows[row, column // _WORD] >> np.uint64(column % _WORD)) & _ONE != np.uint64(0)


@kernel
def fill_before(before_first: Ints, before: Ints, first: int, rows: Words) -> None:
    """Fill `rows` [tasks, words], all 0, for the columns from `first` on; task r comes directly after
    before[before_first[r]] .. before[before_first[r+1] - 1]."""
    words = rows.shape[1]
    for row in range(rows.shape[0]):
        for i in range(before_first[row], before_first[row + 1]):
            other = before[i]
            for word in range(words):
                rows[row, word] |= rows[other, word]
            column = other - first
            if 0 <= column < words * _WORD:
                rows[row, column // _WORD] |= _ONE << np.uint64(column % _WORD)


@kernel
def ask_before(rows: Words, first: int, earlier: Ints, later: Ints, answer: Flags) -> None:
    """Write `answer` [pairs] where `earlier` is of this block of columns."""
    for i in range(earlier.shape[0]):
        column = earlier[i] - first
        if 0 <= column < rows.shape[1] * _WORD:
            answer[i] = _has(rows, later[i], column)


@kernel
def racing_accesses(
    space: Ints, low: Ints, high: Ints, task: Ints, writes: Flags, rows: Words, first: int, found: Ints
) -> int:
    """Pairs of accesses to common bytes, one of which writes, whose tasks nothing orders; how many there are.

    Accesses are sorted by space, then by `low`, their first byte; `high` is the byte after the last. Pairs whose
    smaller task is of this block of columns are written to `found` [most, 2] as far as there is room.
    """
    columns = rows.shape[1] * _WORD
    active = np.empty(low.shape[0], np.int64)  # accesses that began at a smaller byte and are not over
    count = pairs = 0
    for i in range(low.shape[0]):
        kept = 0
        for k in range(count):
            j = active[k]
            if space[j] != space[i] or high[j] <= low[i]:
                continue
            active[kept] = j
            kept += 1
            if not (writes[i] or writes[j]) or task[i] == task[j]:
                continue
            earlier, later = min(task[i], task[j]), max(task[i], task[j])
            column = earlier - first
            if 0 <= column < columns and not _has(rows, later, column):
                if pairs < found.shape[0]:
                    found[pairs, 0], found[pairs, 1] = j, i
                pairs += 1
        active[kept] = i
        count = kept + 1
    return pairs
