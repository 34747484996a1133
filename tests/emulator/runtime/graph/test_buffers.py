"""Memory of intermediate tensors, handed out again."""

import numpy as np
import pytest

from buda_emu.emulator.memory.memory_pool import MemoryPool, fresh
from buda_emu.emulator.runtime.graph import chunk as buffers
from buda_emu.emulator.runtime.graph.chunk import BufferPool

TILE = 4096  # bytes


@pytest.fixture
def spare(monkeypatch):
    """What closed machines left behind: nothing so far."""
    memory = MemoryPool(1 << 30)
    monkeypatch.setattr(buffers, "POOL", memory)
    return memory


@pytest.fixture
def pool(spare):
    return BufferPool()


def test_the_latest_array_of_a_shape_is_handed_out_as_it_is(pool):
    first, second = pool.take(2, 3), pool.take(2, 3)
    assert first.shape == (2, 3, 1024)
    assert not np.shares_memory(first, second)
    pool.give_back(first)
    pool.give_back(second)
    assert pool.take(2, 3) is second
    assert pool.take(2, 3) is first


def test_memory_of_the_same_size_serves_other_shapes(pool):
    array = pool.take(2, 3)
    pool.give_back(array)
    other = pool.take(1, 6)
    assert other.shape == (1, 6, 1024)
    assert np.shares_memory(other, array)
    pool.give_back(other)
    flat = pool.lend(6 * 1024)
    assert flat.shape == (6 * 1024,)
    assert np.shares_memory(flat, array)


def test_the_smallest_that_fits_and_none_that_is_more_than_twice_as_large(pool):
    arrays = {tiles: pool.take(1, tiles) for tiles in (8, 5, 9)}
    for array in arrays.values():
        pool.give_back(array)
    assert np.shares_memory(pool.take(1, 4), arrays[5])
    taken = pool.take(2, 2)
    assert taken.shape == (2, 2, 1024)
    assert np.shares_memory(taken, arrays[8])
    assert not np.shares_memory(pool.take(1, 4), arrays[9])


def test_a_part_given_back_is_all_of_its_memory(pool):
    large = pool.take(1, 8)
    pool.give_back(large)
    part = pool.take(1, 5)
    pool.give_back(part)
    assert pool.take(1, 5).shape == (1, 5, 1024)  # a part again
    pool.give_back(part.view(np.uint8)[:, :1])
    again = pool.take(1, 8)
    assert again.dtype == np.float32
    assert np.shares_memory(again, large)


def test_memory_that_is_read_only_or_made_for_other_types_is_not_kept(pool):
    array = fresh(1024).reshape(1, 1, 1024)
    array.base.flags.writeable = False
    pool.give_back(array)
    other = np.empty(1024, np.int32)
    pool.give_back(other)
    taken = pool.take(1, 1)
    assert not np.shares_memory(taken, array)
    assert not np.shares_memory(taken, other)


def test_more_than_may_be_left_goes_the_oldest_first(pool, spare):
    arrays = [pool.take(1, tiles) for tiles in (4, 3, 2, 1)]
    pool.leave(6 * TILE)
    for array in arrays:
        pool.give_back(array)
    pool.free()
    assert spare.drop() == 6 * TILE  # 4 went when 2 came


def test_a_limit_counts_whole_memory_not_the_part_that_was_used(pool, spare):
    pool.give_back(pool.take(1, 8))
    part = pool.take(1, 5)
    pool.leave(7 * TILE)
    pool.give_back(part)
    pool.free()
    assert spare.drop() == 0


def test_what_closed_machines_left_counts_as_well(pool, spare):
    spare.give(fresh(4 * 1024))
    spare.give(fresh(3 * 1024))
    pool.give_back(pool.take(1, 9))
    pool.leave(12 * TILE)
    assert spare.drop() == 3 * TILE


def test_a_limit_holds_until_the_next(pool, spare):
    arrays = [pool.take(1, 2) for _ in range(3)]
    pool.leave(TILE)
    pool.give_back(arrays[0])
    pool.leave(4 * TILE)
    pool.give_back(arrays[1])
    pool.give_back(arrays[2])
    pool.leave(3 * TILE)
    pool.free()
    assert spare.drop() == 2 * TILE


def test_the_next_machine_gets_what_was_given_back_last(pool, spare):
    arrays = [pool.take(1, 2) for _ in range(3)]
    for array in arrays:
        pool.give_back(array)
    pool.free()
    assert np.shares_memory(spare.take(2 * 1024), arrays[2])
    assert np.shares_memory(BufferPool().take(2, 1), arrays[1])
