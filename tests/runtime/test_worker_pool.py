"""Kernel work split over threads: everything once, whatever fails."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.runtime.threads import WorkerPool, parts

BIG = np.zeros(1 << 20, np.uint8)  # enough to be worth splitting


@given(st.integers(1, 3000), st.integers(1, 16))
def test_parts_cover_everything_once_and_are_even(items, threads):
    found = parts(items, threads)
    assert [item for start, stop in found for item in range(start, stop)] == list(range(items))
    sizes = {stop - start for start, stop in found}
    assert max(sizes) - min(sizes) <= 1
    assert len(found) == min(items, 4 * threads)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("items", [1, 2, 7, 1000])
def test_every_item_is_worked_on_once_and_results_add_up(threads, items):
    seen = np.zeros(items, np.int64)

    def kernel(start, stop, _big):
        seen[start:stop] += 1
        return stop - start

    pool = WorkerPool(threads)
    assert pool(kernel, items, BIG) == items
    assert (seen == 1).all()
    pool.close()
    assert pool(kernel, items, BIG) == items  # a closed pool is the caller alone


def test_a_slow_part_does_not_hold_up_the_others():
    """The helper is stuck in its first part until the caller has done all the rest."""
    done, caller, count = threading.Event(), threading.get_ident(), []

    def kernel(start, _stop, _big):
        if threading.get_ident() != caller:
            assert done.wait(10)
        else:
            count.append(start)
            if len(count) >= 7:
                done.set()

    pool = WorkerPool(2)
    pool(kernel, 64, BIG)
    pool.close()
    assert len(count) >= 7


@pytest.mark.parametrize("failing", [0, 7])
def test_a_failing_kernel_ends_all(failing):
    def kernel(start, stop, _big):
        if start <= failing < stop:
            raise ValueError("here")

    pool = WorkerPool(2)
    with pytest.raises(ValueError, match="here"):
        pool(kernel, 8, BIG)
    assert pool(lambda start, stop, _big: stop - start, 8, BIG) == 8
    pool.close()
