"""The event loop of the timeline: its heap, and what it says of each task."""

import numpy as np
import pytest

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.kernels.timeline import Lists, Written, _pop, _push, run_timeline

pytestmark = pytest.mark.tiny


@kernel
def sort_by_heap(times, tasks, out):
    """out [n, 2] = (time, task) in the order in which a heap gives them."""
    held, names, size = np.empty_like(times), np.empty_like(tasks), 0
    for n in range(times.shape[0]):
        size = _push(held, names, size, times[n], tasks[n])
    for n in range(times.shape[0]):
        out[n, 0], out[n, 1] = held[0], names[0]
        size = _pop(held, names, size)


@pytest.mark.parametrize("different", [1, 3, 1000])
def test_the_heap_gives_the_earliest_and_of_equals_the_first_task(different):
    stream = np.random.default_rng(different)
    times, tasks = stream.integers(0, different, 40), stream.permutation(40)
    out = np.zeros((40, 2), np.int64)
    sort_by_heap(times, tasks, out)
    assert list(map(tuple, out.tolist())) == sorted(zip(times.tolist(), tasks.tolist(), strict=True))


def flat(lists):
    """first, items."""
    first = np.cumsum([0, *map(len, lists)])
    return first.astype(np.int64), np.array([item for own in lists for item in own], np.int64).reshape(-1)


def run(units, duration, waits, signals, level):
    """(ended, start, end, cause, held_by); a wait is (object, count, takes), a signal (object, count)."""
    unit_first, unit_tasks = flat(units)
    wait_first, wait_object = flat([[item[0] for item in own] for own in waits])
    signal_first, signal_object = flat([[item[0] for item in own] for own in signals])
    count = np.array([item[1] for own in waits for item in own], np.int64)
    takes = np.array([item[2] for own in waits for item in own], np.bool_)
    given = np.array([item[1] for own in signals for item in own], np.int64)
    written = Written(*(np.full(len(duration), -1) for _ in range(4)))
    lists = Lists(wait_first, wait_object, count), takes, Lists(signal_first, signal_object, given)
    ended = run_timeline((unit_first, unit_tasks), np.array(duration), *lists, np.array(level), written)
    return ended, *(item.tolist() for item in written)


def test_the_first_task_of_a_unit_has_no_cause_and_the_next_one_the_task_before_it():
    found = run([[0, 1], [2, 3]], [3, 4, 5, 6], [[], [], [], []], [[], [], [], []], [0])
    assert found == (4, [0, 3, 0, 5], [3, 7, 5, 11], [-1, 0, -1, 2], [-1] * 4)


def test_a_task_waits_for_tokens_and_its_cause_is_who_gave_the_last_one():
    """Task 2 takes two tokens of object 0, which tasks 0 and 1 give; task 3 looks at what was ever given."""
    waits = [[], [], [(0, 2, True)], [(0, 2, False)]]
    signals = [[(0, 1)], [(0, 1)], [], []]
    found = run([[0], [1], [2], [3]], [3, 5, 2, 1], waits, signals, [0])
    assert found == (4, [0, 0, 5, 5], [3, 5, 7, 6], [-1, -1, 1, 1], [-1, -1, 0, 0])


def test_what_never_gets_its_tokens_never_starts():
    assert run([[0, 1]], [3, 4], [[], [(0, 1, True)]], [[], []], [0]) == (1, [0, -1], [3, -1], [-1, -1], [-1, 0])
