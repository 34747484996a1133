"""Kernels of `buda_emu.performance.timeline`: the event loop that decides when tasks run, and the order that tasks must
have."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]

_ONE = np.uint64(1)
_WORD = 64  # columns of the matrix of `fill_before` in one word


@helper
def _bit_is_set(rows: Words, row: int, column: int) -> bool:
    """Return whether task `first` + `column` has always ended when task `row` begins, in `rows` from `fill_before`,
    whose first column stands for task `first`."""
    return (rows[row, column // _WORD] >> np.uint64(column % _WORD)) & _ONE != np.uint64(0)


@kernel
def fill_before(before_first: Ints, before: Ints, first: int, rows: Words) -> None:
    """Set the bits of a block of columns of the matrix "task c ends before task r begins", directly or through other
    tasks.

    rows: uint64[tasks, words], all 0 on entry; bit c - `first` of row r stands for task c. Task r begins when tasks
    before[before_first[r]] to before[before_first[r + 1] - 1] have ended; they must have smaller numbers than r.
    """
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
    """Write to answer[i] whether task earlier[i] has always ended when task later[i] begins, for the pairs whose
    earlier task is among the columns of this block; other answers stay as they are. `rows`, the matrix of what ends
    before what, with columns from task `first` on, comes from `fill_before`."""
    for i in range(earlier.shape[0]):
        column = earlier[i] - first
        if 0 <= column < rows.shape[1] * _WORD:
            answer[i] = _bit_is_set(rows, later[i], column)


@kernel
def racing_accesses(
    space: Ints, low: Ints, high: Ints, task: Ints, writes: Flags, rows: Words, first: int, races: Ints
) -> int:
    """Find the pairs of accesses to common bytes of one space, at least one of which writes, whose tasks may run in
    either order, and return their number.

    Accesses are sorted by space, then by `low`, their first byte; `high` is the byte after the last. Only pairs whose
    smaller task is among the columns of this block (`rows` from column `first` on, by `fill_before`) count. Their
    numbers of accesses are written to races[most, 2], the one that begins earlier first, as far as there is room.
    """
    columns = rows.shape[1] * _WORD
    active = np.empty(low.shape[0], np.int64)  # accesses that began at a smaller byte and are not over
    count = pairs = 0
    for i in range(low.shape[0]):
        active_count = 0
        for k in range(count):
            j = active[k]
            if space[j] != space[i] or high[j] <= low[i]:
                continue
            active[active_count] = j
            active_count += 1
            if not (writes[i] or writes[j]) or task[i] == task[j]:
                continue
            earlier = min(task[i], task[j])
            later = max(task[i], task[j])
            column = earlier - first
            if 0 <= column < columns and not _bit_is_set(rows, later, column):
                if pairs < races.shape[0]:
                    races[pairs, 0] = j
                    races[pairs, 1] = i
                pairs += 1
        active[active_count] = i
        count = active_count + 1
    return pairs


NOBODY = -1  # no task has this number


@helper
def _push(times: Ints, tasks: Ints, size: int, time: int, task: int) -> int:
    """Add a task to a heap of `size` tasks ordered by time, then by task, in both arrays, and return the new size."""
    place = size
    while place > 0:
        parent = (place - 1) // 2
        if times[parent] < time or (times[parent] == time and tasks[parent] < task):
            break
        times[place] = times[parent]
        tasks[place] = tasks[parent]
        place = parent
    times[place] = time
    tasks[place] = task
    return size + 1


@helper
def _pop(times: Ints, tasks: Ints, size: int) -> int:
    """Remove the first task from a heap of `size` tasks, in both arrays, and return the new size."""
    size -= 1
    time = times[size]
    task = tasks[size]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            times[other] < times[child] or (times[other] == times[child] and tasks[other] < tasks[child])
        ):
            child = other
        if time < times[child] or (time == times[child] and task < tasks[child]):
            break
        times[place] = times[child]
        tasks[place] = tasks[child]
        place = child
    times[place] = time
    tasks[place] = task
    return size


class Lists(NamedTuple):
    """The waits or the signals of tasks: those of task n are number first[n] to first[n + 1] - 1, each with an object
    and a number of tokens."""

    first: Ints
    objects: Ints
    tokens: Ints


class Written(NamedTuple):
    """The results of `run_timeline` by task: when it starts and ends (-1: never); `cause`, the task whose end or
    signal let it start (-1: none); `held_by`, the object for which it waited last (-1: for none, only for its unit)."""

    start: Ints
    end: Ints
    cause: Ints
    held_by: Ints


@helper
def _find_units(units: tuple[Ints, Ints], unit_of: Ints) -> None:
    """Write to `unit_of` the unit of each task. `units`: where the tasks of each unit begin, and the tasks."""
    first, tasks = units
    for unit in range(first.shape[0] - 1):
        for i in range(first[unit], first[unit + 1]):
            unit_of[tasks[i]] = unit


@helper
def _blocking_object(
    first: int, last: int, wait_object: Ints, wait_count: Ints, takes: Flags, level: Ints, total_given: Ints
) -> int:
    """Return the object of the first of the waits `first` to `last` - 1 for which there are too few tokens, or NOBODY.
    A wait that takes tokens needs them at present (`level`), another needs so many given since the start
    (`total_given`)."""
    for i in range(first, last):
        waited = wait_object[i]
        tokens = total_given[waited]
        if takes[i]:
            tokens = level[waited]
        if tokens < wait_count[i]:
            return int(waited)
    return NOBODY


@kernel
def run_timeline(
    units: tuple[Ints, Ints], duration: Ints, waits: Lists, takes: Flags, signals: Lists, level: Ints, written: Written
) -> int:
    """Run every task that can run, write their times and causes to `written`, and return how many have ended, which are
    fewer than all in a deadlock.

    units: (first, tasks); those of unit u are tasks[first[u]] to tasks[first[u + 1] - 1], which run one after the other
    in this order. duration: cycles by task. takes: by wait, whether it takes its tokens away. level[objects]: the
    tokens of each object at the start; it is changed. A wait that does not take is compared with all tokens ever given,
    those at the start among them.
    """
    unit_first, unit_tasks = units
    wait_first, wait_object, wait_count = waits
    signal_first, signal_object, signal_count = signals
    start, end, cause, held_by = written
    unit_count = unit_first.shape[0] - 1
    objects = level.shape[0]
    total_given = level.copy()
    head = unit_first[:-1].copy()
    busy = np.zeros(unit_count, np.bool_)
    times = np.empty(unit_count + 1, np.int64)
    running = np.empty(unit_count + 1, np.int64)
    unit_of = np.empty(duration.shape[0], np.int64)
    _find_units(units, unit_of)
    # units that wait for an object, oldest first
    waiting_first = np.full(objects, NOBODY, np.int64)
    waiting_last = np.full(objects, NOBODY, np.int64)
    waiting_next = np.full(unit_count, NOBODY, np.int64)
    signaller = np.full(objects, NOBODY, np.int64)
    ready = np.empty(2 * unit_count + 1, np.int64)  # units to look at, each once
    is_ready = np.zeros(unit_count, np.bool_)
    woken_by = np.full(unit_count, NOBODY, np.int64)  # the object
    count = 0
    for unit in range(unit_count):
        ready[count] = unit
        is_ready[unit] = True
        count += 1
    size = ended = time = 0
    while True:
        position = 0
        while position < count:
            unit = ready[position]
            position += 1
            is_ready[unit] = False
            if busy[unit] or head[unit] == unit_first[unit + 1]:
                continue
            task = unit_tasks[head[unit]]
            first = int(wait_first[task])
            last = int(wait_first[task + 1])
            blocked = _blocking_object(first, last, wait_object, wait_count, takes, level, total_given)
            if blocked != NOBODY:
                held_by[task] = blocked
                waiting_next[unit] = NOBODY
                if waiting_first[blocked] == NOBODY:
                    waiting_first[blocked] = unit
                else:
                    waiting_next[waiting_last[blocked]] = unit
                waiting_last[blocked] = unit
                continue
            for i in range(first, last):
                if takes[i]:
                    level[wait_object[i]] -= wait_count[i]
            if woken_by[unit] != NOBODY:
                cause[task] = signaller[woken_by[unit]]
            elif head[unit] > unit_first[unit]:
                cause[task] = unit_tasks[head[unit] - 1]
            woken_by[unit] = NOBODY
            start[task] = time
            busy[unit] = True
            size = _push(times, running, size, int(time + duration[task]), int(task))
        count = 0
        if size == 0:
            return ended
        time = times[0]
        while size > 0 and times[0] == time:  # all that end now, before anything starts
            task = running[0]
            size = _pop(times, running, size)
            end[task] = time
            ended += 1
            unit = unit_of[task]
            busy[unit] = False
            head[unit] += 1
            if not is_ready[unit]:
                is_ready[unit] = True
                ready[count] = unit
                count += 1
            for i in range(signal_first[task], signal_first[task + 1]):
                signalled = signal_object[i]
                level[signalled] += signal_count[i]
                total_given[signalled] += signal_count[i]
                signaller[signalled] = task
                other = waiting_first[signalled]
                while other != NOBODY:
                    woken_by[other] = signalled
                    if not is_ready[other]:
                        is_ready[other] = True
                        ready[count] = other
                        count += 1
                    other = waiting_next[other]
                waiting_first[signalled] = waiting_last[signalled] = NOBODY


@kernel
def run_in_order(order: Ints, before_first: Ints, before: Ints, duration: Ints, end: Ints) -> int:
    """Return when the last task ends, and write the end of each to end[tasks]. Task order[n] starts when the tasks
    before[before_first[n]] to before[before_first[n + 1] - 1], which stand before it in `order`, have ended."""
    last = 0
    for n in range(order.shape[0]):
        start = 0
        for i in range(before_first[n], before_first[n + 1]):
            start = max(start, int(end[before[i]]))
        task = order[n]
        end[task] = start + duration[task]
        last = max(last, int(end[task]))
    return last
