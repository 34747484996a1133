"""The timeline engine: small schedules by hand, and what holds for all."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.arithmetic.kernels.timeline import run_timeline
from buda_emu.performance.timeline import Schedule, Wait
from buda_emu.performance.timeline.occupancy import Live
from buda_emu.performance.timeline.picture import Memory
from buda_emu.performance.timeline.tasks import TokenCounts
from buda_emu.support.errors import HostError, ProgramError


def times(timing):
    return list(zip(timing.start.tolist(), timing.end.tolist(), strict=True))


def test_a_unit_works_in_order():
    schedule = Schedule()
    a, b = schedule.unit("a"), schedule.unit("b")
    schedule.task(a, 5)
    schedule.task(b, 2)
    schedule.task(a, 3)
    timing = schedule.run()
    assert times(timing) == [(0, 5), (0, 2), (5, 8)]
    assert timing.busy().tolist() == [8, 2]
    assert timing.utilisation().tolist() == [1.0, 0.25]
    assert timing.critical_path() == [0, 2]
    assert timing.makespan == 8


def test_a_prepared_schedule_runs_with_other_durations():
    schedule = Schedule()
    a, b = schedule.unit("a"), schedule.unit("b")
    done = schedule.object("done")
    schedule.task(a, 5, (), [(done, 1)])
    schedule.task(b, 2, [(done, 1)])
    run = schedule.runs()
    assert times(run(np.array([1, 4]))) == [(0, 1), (1, 5)]
    assert times(run(schedule.durations)) == times(schedule.run()) == [(0, 5), (5, 7)]


def pipeline(stages, items, room):
    """Stages of given durations with a buffer of `room` items between each two."""
    schedule = Schedule()
    units = [schedule.unit(f"stage {i}") for i in range(len(stages))]
    full = [schedule.object(f"full {i}") for i in range(len(stages))]
    free = [schedule.object(f"free {i}", room) for i in range(len(stages))]
    for _ in range(items):
        for i, duration in enumerate(stages):
            waits, signals = [], []
            if i > 0:
                waits.append((full[i - 1], 1))
                signals.append((free[i - 1], 1))
            if i < len(stages) - 1:
                waits.append((free[i], 1))
                signals.append((full[i], 1))
            schedule.task(units[i], duration, waits, signals)
    return schedule


def test_a_pipeline_runs_at_the_pace_of_its_slowest_stage():
    timing = pipeline([3, 10, 4], 50, 2).run()
    assert timing.makespan == 3 + 50 * 10 + 4
    assert timing.busy().tolist() == [150, 500, 200]
    # stage 0 fills the buffer of two and then waits for stage 1
    first = times(timing)[::3]
    assert first[:5] == [(0, 3), (3, 6), (13, 16), (23, 26), (33, 36)]
    assert timing.waiting_times()[6] == 7
    assert timing.held_by[6] >= 0


def test_a_wait_that_does_not_take_leaves_the_tokens():
    schedule = Schedule()
    units = [schedule.unit(name) for name in "abc"]
    barrier = schedule.object("barrier")
    for unit, duration in zip(units, (5, 9, 2), strict=True):
        schedule.task(unit, duration, signals=[(barrier, 1)])
    for unit in units:
        schedule.task(unit, 1, [Wait(barrier, 3, takes=False)])
    assert times(schedule.run())[3:] == [(9, 10)] * 3


def test_several_tokens_at_once_and_zero_durations():
    schedule = Schedule()
    a, b = schedule.unit("a"), schedule.unit("b")
    tokens = schedule.object("tokens", 1)
    schedule.task(b, 0, [(tokens, 3)], label="join")
    schedule.task(a, 4, signals=[(tokens, 1)])
    schedule.task(a, 0, signals=[(tokens, 1)])
    timing = schedule.run()
    assert times(timing) == [(4, 4), (0, 4), (4, 4)]
    assert timing.tokens.tolist() == [0]
    assert schedule.label(0) == "join"
    assert schedule.label(1) == "a #1"


def test_occupancy_over_time():
    schedule = pipeline([2, 5], 3, 4)
    timing = schedule.run()
    moments, tokens = schedule.changes_of(0, timing)  # "full 0"
    assert moments.tolist() == [0, 2, 4, 6, 7, 12]
    assert tokens.tolist() == [0, 0, 1, 2, 1, 0]


def test_a_circle_is_found_and_told():
    schedule = Schedule()
    a, b = schedule.unit("a"), schedule.unit("b")
    x, y = schedule.object("x"), schedule.object("y")
    schedule.task(a, 1, label="fine")
    schedule.task(a, 1, [(x, 1)], [(y, 1)], label="first")
    schedule.task(b, 1, [(y, 1)], [(x, 1)], label="second")
    with pytest.raises(ProgramError) as caught:
        schedule.run()
    assert caught.value.kind == "deadlock"
    said = str(caught.value)
    assert "2 of 3 tasks wait for ever" in said
    assert "first waits for 1 of x, which has 0: second would give it" in said
    assert "second waits for 1 of y, which has 0: first would give it" in said
    assert "closes the circle" in said


def test_tokens_that_nobody_gives_are_told():
    schedule = Schedule()
    unit, nothing = schedule.unit("u"), schedule.object("nothing", 2)
    schedule.task(unit, 1, [(nothing, 3)], label="hungry")
    with pytest.raises(ProgramError, match="waits for 3 of nothing, which has 2: no task that is left gives any"):
        schedule.run()


def test_a_server_behind_another_task_is_told():
    schedule = Schedule()
    a, b = schedule.unit("a"), schedule.unit("b")
    x = schedule.object("x")
    schedule.task(a, 1, [(x, 1)], label="waits")
    schedule.task(b, 1, [(x, 1)], label="in front")
    schedule.task(b, 1, signals=[(x, 2)], label="server")
    with pytest.raises(ProgramError, match="server would give it, which comes after in front"):
        schedule.run()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda s: s.task(1, 1), lambda s: s.task(-1, 1), lambda s: s.task(0, -1), lambda s: s.task(0, 1, [(1, 1)]),
        lambda s: s.task(0, 1, [(0, -1)]), lambda s: s.task(0, 1, signals=[(7, 1)]), lambda s: s.object("x", -1),
        lambda s: s.task(0, 1 << 62),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(wrong):
    schedule = Schedule()
    schedule.unit("u")
    schedule.object("o")
    with pytest.raises(HostError):
        wrong(schedule)


def test_an_empty_schedule_takes_no_time():
    assert Schedule().run().makespan == 0
    assert Schedule().run().critical_path() == []


@st.composite
def schedules(draw):
    """Tasks in a global order, each waiting only for what earlier ones give: these always end."""
    schedule = Schedule()
    for i in range(draw(st.integers(1, 4))):
        schedule.unit(f"u{i}")
    objects = draw(st.integers(1, 4))
    ever, left = [0] * objects, [0] * objects
    for i in range(objects):
        ever[i] = left[i] = draw(st.integers(0, 2))
        schedule.object(f"o{i}", ever[i])
    for _ in range(draw(st.integers(1, 25))):
        number = draw(st.integers(0, objects - 1))
        takes = draw(st.booleans())
        count = draw(st.integers(0, left[number] if takes else ever[number]))
        other, gives = draw(st.integers(0, objects - 1)), draw(st.integers(0, 3))
        unit = draw(st.integers(0, len(schedule.units) - 1))
        schedule.task(unit, draw(st.integers(0, 9)), [Wait(number, count, takes)], [(other, gives)])
        left[number] -= count if takes else 0
        ever[other] += gives
        left[other] += gives
    return schedule


@given(schedules())
def test_what_holds_for_every_schedule(schedule):
    try:
        timing = schedule.run()
    except ProgramError:
        return  # another unit took the tokens first
    tasks = range(len(schedule))
    # units: in order, one at a time, nothing lost
    for unit in range(len(schedule.units)):
        own = [task for task in tasks if timing.unit[task] == unit]
        for before, after in pairwise(own):
            assert timing.end[before] <= timing.start[after]
        assert timing.busy()[unit] == sum(timing.end[task] - timing.start[task] for task in own)
    # no task starts before what it waits for is there, and no object goes below zero
    for number in range(len(schedule.objects)):
        moments, tokens = schedule.changes_of(number, timing)
        assert (tokens >= 0).all()
        assert (np.diff(moments) > 0).all()
        for task in tasks:
            for wait in schedule.waits_of(task):
                if wait.object == number and not wait.takes:
                    given_before = schedule.tokens_at_first(number) + sum(
                        count
                        for other in tasks
                        for item, count in schedule.signals_of(other)
                        if item == number and timing.end[other] <= timing.start[task]
                    )
                    assert given_before >= wait.tokens
    # a start has its cause, and the critical path leads from the beginning to the end without a gap
    for task in tasks:
        cause = timing.cause[task]
        assert timing.start[task] == (timing.end[cause] if cause >= 0 else 0)
    path = timing.critical_path()
    assert sum(timing.end[task] - timing.start[task] for task in path) == timing.makespan
    # equal schedules, equal times
    again = schedule.run()
    assert (again.start == timing.start).all()


@given(schedules(), st.data())
def test_when_all_is_done_is_known_for_other_durations(schedule, data):
    """Whether or not it depends on these who waits for whom."""
    runs, makespan = schedule.runs(), None
    for _ in range(3):
        durations = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(schedule), max_size=len(schedule))))
        try:
            makespan = makespan or schedule.makespans()
            done = runs(durations).makespan
        except ProgramError:
            return
        assert makespan(durations) == done


@given(st.integers(1, 4), st.integers(1, 12), st.integers(1, 3), st.data())
def test_when_a_pipeline_is_done_is_known_for_other_durations(stages, items, room, data):
    schedule = pipeline([1] * stages, items, room)
    makespan, runs = schedule.makespans(), schedule.runs()
    for _ in range(3):
        durations = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(schedule), max_size=len(schedule))))
        assert makespan(durations) == runs(durations).makespan


def test_who_waits_for_whom_is_always_the_same_where_each_object_has_one_giver_and_one_taker(monkeypatch):
    one, several = pipeline([2, 3], 4, 1), Schedule()
    units, shared = [several.unit(name) for name in "abc"], several.object("given by two")
    for unit in units[:2]:
        several.task(unit, 1, signals=[(shared, 1)])
    several.task(units[2], 1, [(shared, 1)])
    quick, slow, done = one.makespans(), several.makespans(), one.run().makespan
    asked, runs = [], run_timeline
    monkeypatch.setattr(
        "buda_emu.performance.timeline.schedule.run_timeline", lambda *given: asked.append(1) or runs(*given)
    )
    assert quick(one.durations) == done
    assert not asked
    assert slow(several.durations) == 2
    assert len(asked) == 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 12), st.integers(1, 3))
def test_more_room_and_faster_stages_never_slow_a_pipeline(stages, items, room):
    base = pipeline(stages, items, room).run().makespan
    assert pipeline(stages, items, room + 1).run().makespan <= base
    assert pipeline([max(1, stage - 1) for stage in stages], items, room).run().makespan <= base


def test_who_takes_of_an_object_twice_needs_both():
    schedule = Schedule()
    unit, other = schedule.unit("u"), schedule.unit("other")
    tokens = schedule.object("tokens", 2)
    schedule.task(unit, 1, [(tokens, 2), (tokens, 1)])
    schedule.task(other, 5, signals=[(tokens, 1)])
    timing = schedule.run()
    assert timing.start.tolist() == [5, 0]
    assert timing.tokens.tolist() == [0]


def test_who_takes_twice_waits_for_other_objects_too():
    schedule = Schedule()
    unit, other = schedule.unit("u"), schedule.unit("other")
    twice, once = schedule.object("twice", 2), schedule.object("once")
    schedule.task(unit, 1, [(twice, 1), (once, 1), (twice, 1)])
    schedule.task(other, 5, signals=[(once, 1)])
    timing = schedule.run()
    assert timing.start.tolist() == [5, 0]
    assert timing.tokens.tolist() == [0, 0]


def test_durations_are_bounded_in_their_sum():
    schedule = Schedule()
    unit = schedule.unit("u")
    schedule.task(unit, 1 << 61)
    schedule.task(unit, (1 << 61) - 1)
    with pytest.raises(HostError, match=r"more than 2\^62"):
        schedule.run()


def test_who_only_looks_is_told_what_was_there_and_what_came():
    schedule = Schedule()
    unit, other = schedule.unit("u"), schedule.unit("other")
    seen = schedule.object("seen", 1)
    schedule.task(other, 5, signals=[(seen, 2)])
    schedule.task(unit, 1, [Wait(seen, 4, takes=False)], label="looking")
    with pytest.raises(ProgramError, match="looking waits for 4 of seen, which has 3"):
        schedule.run()


def test_a_memory_without_a_size_ends_with_its_last_byte():
    lives = [Live("m", 64, 32, 0, 1), Live("m", 0, 16, 0, 1)]
    assert Memory("m", lives).span == 96
    assert Memory("m", lives, 4096).span == 4096


def test_many_tasks_at_once_are_as_one_after_the_other():
    made = []
    for at_once in (False, True):
        schedule = Schedule()
        a, b = schedule.unit("a"), schedule.unit("b")
        done, room = schedule.object("done"), schedule.object("room")
        gives, needs = np.array([1, 0, 2, 1]), np.array([0, 1, 3, 4])
        if at_once:
            waits = [room], TokenCounts.of(4, [np.array([0, 0, 1, 2])])
            assert schedule.tasks(a, 3, waits, ([done], TokenCounts.of(4, [gives]))) == range(4)
            waits = [done], TokenCounts.of(4, [needs])
            schedule.tasks(b, 2, waits, ([room], TokenCounts.of(4, [np.ones(4, np.int64)])))
        else:
            for number, tokens in enumerate(gives.tolist()):
                waits = [Wait(room, number - 1, takes=False)] if number > 1 else []
                schedule.task(a, 3, waits, [(done, tokens)] if tokens else [])
            for tokens in needs.tolist():
                schedule.task(b, 2, [Wait(done, tokens, takes=False)] if tokens else [], [(room, 1)])
        assert (schedule.waits_of(2), schedule.waits_of(0)) == ([Wait(room, 1, takes=False)], [])
        assert schedule.signals_of(1) == []
        made.append((times(schedule.run()), schedule.run().held_by.tolist()))
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("unit", "duration", "number", "tokens"), [(1, 1, 0, 1), (0, -1, 0, 1), (0, 1, 1, 1), (0, 1, 0, -1)]
)
def test_many_tasks_of_what_is_not_there_are_refused(unit, duration, number, tokens):
    schedule = Schedule()
    schedule.unit("a")
    schedule.object("o")
    with pytest.raises(HostError, match="not possible"):
        schedule.tasks(
            unit, duration, ([number], TokenCounts.of(2, [np.array([0, tokens])])), ([], TokenCounts.of(2, []))
        )
