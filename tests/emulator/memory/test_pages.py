"""Memory in large pages."""

import gc
from itertools import pairwise

import numpy as np
import pytest

from buda_emu.emulator.memory import memory_pool as pages
from buda_emu.emulator.memory.memory_pool import CACHE_LINE, LARGE_PAGE, fresh, memory_of


@pytest.mark.parametrize(
    "count", [0, 1, 1000, 1024, 50_001, LARGE_PAGE // 4, LARGE_PAGE // 4 + 1, 5 * LARGE_PAGE // 4 + 3]
)
def test_all_of_it_can_be_written(count):
    array = fresh(count)
    assert (array.dtype, array.shape) == (np.float32, (count,))
    array[:] = 1
    assert array.sum(dtype=np.float64) == count
    assert array.ctypes.data % CACHE_LINE == 0


def test_large_ones_begin_at_a_large_page_where_there_are_such():
    if not hasattr(pages.mmap, "MADV_HUGEPAGE"):
        pytest.skip("pages have one size here")
    assert fresh(LARGE_PAGE).ctypes.data % LARGE_PAGE == 0


def test_small_ones_share_large_pages_and_no_byte():
    counts = [1024, 1025, LARGE_PAGE // 4 - 1] * 10  # more than are asked of the system at once
    pieces = [fresh(count) for count in counts]
    for number, piece in enumerate(pieces):
        piece[:] = number
    for number, piece in enumerate(pieces):
        assert piece.ctypes.data % CACHE_LINE == 0
        assert (piece == number).all()
    if hasattr(pages.mmap, "MADV_HUGEPAGE"):
        assert any(a.base is b.base for a, b in pairwise(pieces))
        assert len({id(piece.base) for piece in pieces}) > 1


@pytest.mark.parametrize("count", [10, 10_000, LARGE_PAGE])
def test_views_keep_it_alive(count):
    view = fresh(count)[:10].reshape(2, 5)
    gc.collect()
    view[:] = 2
    assert view.sum() == 20


@pytest.mark.parametrize("count", [1000, 10_000, LARGE_PAGE])
def test_a_part_given_back_is_all_of_it(count):
    array = fresh(count)
    assert memory_of(array[:500].reshape(10, -1)) is array


def test_what_is_not_to_be_had_is_a_memory_error():
    with pytest.raises(MemoryError):
        fresh(1 << 60)
