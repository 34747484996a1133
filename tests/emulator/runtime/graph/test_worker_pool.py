"""Kernel work split over threads: everything once, whatever fails."""

import ast
import gc
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import buda_emu.arithmetic.kernels
from buda_emu.arithmetic.jit.job_slot import JobSlot, pause, read
from buda_emu.arithmetic.jit.kernel import Kernel, disabled, kernel
from buda_emu.arithmetic.jit.machine_code import loading as gil_turns
from buda_emu.arithmetic.jit.thread_team import await_helpers, claim_items, spins_in
from buda_emu.emulator.runtime.graph import threads
from buda_emu.emulator.runtime.graph.threads import WorkerPool, parts
from buda_emu.support.errors import InternalError

BIG = np.zeros(1 << 24, np.uint8)  # enough to be worth starting helpers
FAILING = np.int64(-1)
CLAIMED = "Name(id='claim_items'"  # in a dumped tree


@kernel
def count_items(start, stop, counts, work, failing, _big):
    """counts[item] += 1; what the threads do is done `work` times, so that all get some of it."""
    for item in claim_items(start, stop):
        for _ in range(work):
            counts[item] += 1
            counts[item] -= 1
        counts[item] += 1
        if item == failing:
            raise ValueError("here")


@kernel
def meet(start, stop, seen, address, patience, _big):
    """seen[item] = 1; whoever has item 0 waits for item 1, and makes it 2 when that comes."""
    for item in claim_items(start, stop):
        seen[item] = 1
        if item == 0:
            for _ in range(patience):
                if read(address, 1) != 0:
                    seen[0] = 2
                    break
                pause()


@pytest.fixture(autouse=True)
def supply(monkeypatch):
    """Whatever else the machine does: what is seen of it is left out, and processors are not scarce."""
    supply = threads._Supply()
    monkeypatch.setattr(supply, "add_task", lambda *_: None)
    monkeypatch.setattr(threads, "_SUPPLY", supply)
    return supply


@pytest.fixture
def pool():
    pool = WorkerPool(2)
    pool(count_items, 2, np.zeros(2, np.int64), 1, FAILING, BIG)  # the helper is there
    yield pool
    pool.close()


def named_threads():
    return [thread for thread in threading.enumerate() if thread.name == "buda-emu"]


@given(st.integers(1, 3000), st.integers(1, 16))
def test_parts_cover_everything_once_and_are_even(items, threads):
    found = parts(items, threads)
    assert [item for start, stop in found for item in range(start, stop)] == list(range(items))
    sizes = {stop - start for start, stop in found}
    assert max(sizes) - min(sizes) <= 1
    assert len(found) == min(items, 2 * threads)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("items", [1, 2, 7, 1000])
def test_every_item_is_worked_on_once(threads, items):
    seen = np.zeros(items, np.int64)

    def function(start, stop, _big):
        seen[start:stop] += 1

    pool = WorkerPool(threads)
    pool(function, items, BIG)
    pool(count_items, items, seen, 1, FAILING, BIG)
    assert (seen == 2).all()
    pool.close()
    pool(count_items, items, seen, 1, FAILING, BIG)  # a closed pool is the caller alone
    assert (seen == 3).all()


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_many_jobs_one_after_the_other(threads):
    """Helpers that come too late for a job must not touch the next one's items."""
    rng = np.random.default_rng(threads)
    pool = WorkerPool(threads)
    for number in range(3000):
        seen = np.zeros(int(rng.integers(2, 60)), np.int64)
        if number % 100 == 0:
            time.sleep(0.002)  # the helpers fall asleep
        if number % 7 == 0:
            pool(
                lambda start, stop, counts, _big: np.add(counts[start:stop], 1, counts[start:stop]),
                len(seen),
                seen,
                BIG,
            )
        else:
            pool(count_items, len(seen), seen, int(rng.integers(0, 50)), FAILING, BIG)
        assert (seen == 1).all(), number
    pool.close()


def test_a_helper_takes_part_in_a_kernel(pool):
    if not isinstance(meet, Kernel):
        pytest.skip("kernels are not compiled")
    for _ in range(20):
        seen = np.zeros(40, np.int64)
        pool(meet, len(seen), seen, seen.ctypes.data, 1 << 30, BIG)
        assert seen[0] == 2
        assert (seen[1:] == 1).all()


def test_a_slow_part_does_not_hold_up_the_others(pool):
    """The helper is stuck in its first part until the caller has done all the rest."""
    done, caller, count = threading.Event(), threading.get_ident(), []

    def function(start, _stop, _big):
        if threading.get_ident() != caller:
            assert done.wait(10)
        else:
            count.append(start)
            if len(count) >= 3:
                done.set()

    pool(function, 64, BIG)
    assert len(count) >= 3


@pytest.mark.parametrize("failing", [0, 7])
def test_a_failing_function_ends_all(pool, failing):
    def function(start, stop, _big):
        if start <= failing < stop:
            raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        pool(function, 8, BIG)
    seen = np.zeros(8, np.int64)
    pool(count_items, 8, seen, 1, FAILING, BIG)
    assert (seen == 1).all()


@pytest.mark.parametrize("failing", range(0, 40, 3))
def test_a_failing_kernel_ends_all(pool, failing):
    """Whichever thread meets the item; the pool serves on."""
    for _ in range(20):
        seen = np.zeros(40, np.int64)
        with pytest.raises(ValueError, match="here"):
            pool(count_items, len(seen), seen, 100, np.int64(failing), BIG)
        assert seen.max() == 1
        assert seen[failing] == 1
        seen[:] = 0
        pool(count_items, len(seen), seen, 1, FAILING, BIG)
        assert (seen == 1).all()


def test_a_kernel_that_cannot_be_called_is_over(pool):
    """Helpers that were rung for it wait for the next job."""
    for _ in range(20):
        seen = np.zeros(40, np.int64)
        with pytest.raises((TypeError, AttributeError)):
            pool(count_items, len(seen), object(), 1, FAILING, BIG)
        pool(count_items, len(seen), seen, 1, FAILING, BIG)
        assert (seen == 1).all()


def test_arguments_that_no_slot_has_room_for():
    if not isinstance(count_items, Kernel):
        pytest.skip("kernels are not compiled")

    @kernel
    def many(start, stop, arrays):
        for item in claim_items(start, stop):
            arrays[0][item] += 1

    few = (np.zeros(4, np.int64),) * 20
    many(0, 4, few)
    assert (few[0] == 1).all()
    with pytest.raises(InternalError, match=r"many.* take 5616 bytes, a job slot has 4096"):
        many(0, 4, few * 5)


def test_two_callers_at_once(pool):
    """One has the helpers, the other works alone."""
    problems = []

    def call():
        for _ in range(200):
            seen = np.zeros(30, np.int64)
            pool(count_items, len(seen), seen, 200, FAILING, BIG)
            if not (seen == 1).all():
                problems.append(seen)

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert problems == []


def test_arrays_of_a_finished_job_are_let_go(pool):
    for function in (count_items, lambda *_: None):
        seen = np.zeros(1000, np.int64)
        held = weakref.ref(seen)
        pool(function, len(seen), seen, 1, FAILING, BIG)
        del seen
        deadline = time.monotonic() + 10
        while held() is not None and time.monotonic() < deadline:
            time.sleep(0.001)  # a helper that came late may hold them for as long as it stays awake
        assert held() is None


def test_a_forgotten_pool_sends_its_helpers_home():
    pool = WorkerPool(3)
    pool(count_items, 10, np.zeros(10, np.int64), 1, FAILING, BIG)
    before = len(named_threads())
    del pool
    gc.collect()
    assert len(named_threads()) == before - 2


def test_spins_take_the_time_asked_for():
    assert spins_in(1e-3) > 100 or not isinstance(count_items, Kernel)


# -------------------------------------------------------------------------------------------------- turns at Python
compiled_only = pytest.mark.skipif(disabled, reason="kernels that are not compiled have no entry points")


@kernel
def until_told(address):
    """What stands there, once it is not 0."""
    while read(address, 0) == 0:
        pause()
    return read(address, 0)


@pytest.fixture
def turns():
    assert gil_turns.TURN[0] == gil_turns.NOBODY_WAITS
    yield gil_turns.TURN
    gil_turns.end_turns()


@pytest.mark.parametrize("fails", [False, True])
def test_threads_take_turns_as_long_as_they_share_a_function(pool, turns, fails):
    seen = set()

    def function(_start, _stop, _big):
        seen.add(int(turns[0]))
        if fails:
            raise ValueError("here")

    try:
        pool(function, 8, BIG)
    except ValueError:
        assert fails
    assert seen <= {gil_turns.TAKEN, gil_turns.FREE}
    assert turns[0] == gil_turns.NOBODY_WAITS


@compiled_only
@pytest.mark.parametrize("before", [gil_turns.TAKEN, gil_turns.FREE, gil_turns.NOBODY_WAITS])
def test_a_kernel_takes_the_turn_at_its_end_where_threads_take_turns(turns, before):
    told = np.ones(1, np.int64)
    turns[0] = before
    until_told(told.ctypes.data)
    assert turns[0] == (gil_turns.NOBODY_WAITS if before == gil_turns.NOBODY_WAITS else gil_turns.TAKEN)


@compiled_only
@pytest.mark.parametrize("given_back", [False, True])
def test_a_kernel_gives_the_turn_away_and_goes_on_if_it_never_comes_back(turns, given_back):
    told, results = np.zeros(1, np.int64), []
    until_told(np.ones(1, np.int64).ctypes.data)  # compiled
    gil_turns.take_turns()
    thread = threading.Thread(target=lambda: results.append(until_told(told.ctypes.data)))
    thread.start()
    until = time.monotonic() + 10
    while turns[0] != gil_turns.FREE and time.monotonic() < until:
        time.sleep(1e-4)
    assert turns[0] == gil_turns.FREE
    gil_turns.take_turns()
    told[0] = 5
    if given_back:
        turns[0] = gil_turns.FREE
    thread.join(10)
    assert results == [5]
    assert turns[0] == gil_turns.TAKEN


@compiled_only
def test_helpers_are_awaited_while_they_are_busy_and_so_long_at_most():
    slot = JobSlot()
    await_helpers(slot.address, 1 << 62)  # or it hangs
    slot.count_busy(1)
    start = time.perf_counter()
    await_helpers(slot.address, spins_in(5e-3))
    assert time.perf_counter() - start > 5e-4
    slot.count_busy(-1)
    await_helpers(slot.address, 1 << 62)


def of_this_loop(node):
    """What stands in a statement, but for loops inside it."""
    yield node
    if not isinstance(node, ast.For | ast.While):
        for child in ast.iter_child_nodes(node):
            yield from of_this_loop(child)


def test_kernels_that_share_items_do_nothing_else_with_them():
    """What a helper returns is lost, and one that left the loop early would leave items that it has claimed."""
    checked = 0
    for path in Path(buda_emu.arithmetic.kernels.__file__).parent.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            *before, loop = function.body
            assert not any(CLAIMED in ast.dump(statement) for statement in before), function.name
            if isinstance(loop, ast.For) and CLAIMED in ast.dump(loop.iter):
                checked += 1
                assert ast.unparse(function.returns) == "None", function.name
                assert not any(isinstance(node, ast.Return | ast.Raise) for node in ast.walk(loop)), function.name
                breaks = (isinstance(node, ast.Break) for child in loop.body for node in of_this_loop(child))
                assert not any(breaks), function.name
    assert checked > 20


# ------------------------------------------------------------------------------------------ others need processors, too
def test_processors_are_scarce_until_they_are_there_again():
    supply = threads._Supply()
    assert not supply.scarce
    supply.add_task(1e-3, 1e-3)
    assert not supply.scarce
    supply.add_task(4e-3, 1e-3)
    assert supply.scarce
    for _ in range(12):
        supply.add_task(1e-3, 1e-3)
    assert not supply.scarce


def workers(pool, size, expected):
    """How many threads work on operands of `size` bytes; it takes as long as `expected` need to come, 10 s at most."""
    working = set()

    def function(start, stop, _big):
        working.add(threading.get_ident())
        until = time.monotonic() + 10
        while len(working) < expected and time.monotonic() < until:
            time.sleep(1e-4)

    pool(function, 8, np.zeros(size, np.uint8))
    return len(working)


@pytest.mark.parametrize(("size", "expected"), [(1 << 21, 1), (1 << 24, 2)])
def test_a_helper_is_asked_for_large_work_only_while_processors_are_scarce(size, expected, pool, supply):
    type(supply).add_task(supply, 3.0, 1.0)
    assert workers(pool, size, expected) == expected


def test_work_is_rare_until_it_takes_a_good_part_of_the_time():
    demand = threads._Demand()
    assert demand.rare
    demand.add_task(1000.0, 1000.0004)  # what was before counts as a short pause
    assert demand.rare
    now = 1000.001
    for _ in range(12):
        now += 0.001
        demand.add_task(now, now + 0.001)
        now += 0.001
    assert not demand.rare
    for _ in range(12):
        now += 0.004
        demand.add_task(now, now + 0.0004)
        now += 0.0004
    assert demand.rare


@pytest.mark.parametrize(("rare", "size", "expected"), [(True, 3 << 19, 1), (False, 3 << 19, 2), (True, 1 << 21, 2)])
def test_a_helper_is_not_woken_for_little_work_that_is_rare(rare, size, expected, pool, monkeypatch):
    monkeypatch.setattr(threads, "_WORTH_DIVIDING", 1 << 20)
    end = time.perf_counter()
    pool._demand.add_task(end - 1e-4 if rare else end - 10, end)
    assert workers(pool, size, expected) == expected


@pytest.mark.parametrize(("size", "spent", "expected"), [(1 << 21, 0, 1), (1 << 21, 1e-3, 2), (1 << 24, 0, 2)])
def test_helpers_are_not_started_for_little_work(size, spent, expected):
    pool = WorkerPool(2)
    pool._demand.add_task(1000.0, 1000.0 + spent)
    assert workers(pool, size, expected) == expected
    assert pool._team.started == (expected == 2)
    pool.close()


@pytest.mark.parametrize(("size", "expected"), [(1 << 20, 1), (1 << 21, 2)])
def test_python_functions_are_divided_for_large_work_only(size, expected, pool):
    assert workers(pool, size, expected) == expected


def test_what_a_task_took_is_noticed(pool, monkeypatch):
    noticed = []
    monkeypatch.setattr(threads._SUPPLY, "add_task", lambda took, computed: noticed.append((took, computed)))
    pool(lambda _start, _stop, _big: time.sleep(2e-3), 1, BIG)  # one item: not worth it, nobody looks
    assert not noticed
    pool(lambda _start, _stop, _big: time.sleep(2e-3), 2, BIG)
    ((took, computed),) = noticed
    assert took >= 2e-3
    assert computed < took
