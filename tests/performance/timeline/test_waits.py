"""Where the time of units goes, and what makes a run so long."""

from hypothesis import given, settings

from buda_emu.performance.timeline import Schedule, critical_steps, idle, time_by_category
from buda_emu.support.errors import ProgramError
from performance.timeline.test_order import schedules


def fed():
    """A core that waits for data of 10 and weights of 25, works, and is waited for by a store."""
    schedule = Schedule()
    loader, weights, core, store = (schedule.unit(name) for name in ("load", "weights", "core", "store"))
    data, kernel, done = (schedule.object(name) for name in ("data", "kernel", "done"))
    schedule.task(loader, 10, signals=[(data, 1)])
    schedule.task(weights, 25, signals=[(kernel, 1)])
    schedule.task(core, 5, [(data, 1)])
    schedule.task(core, 7, [(kernel, 1)], [(done, 1)])
    schedule.task(store, 3, [(done, 1)])
    return schedule.run(), {data: "load", kernel: "weights"}


def test_idle_time_is_put_down_to_what_came_last():
    timing, words = fed()
    assert time_by_category(timing, words) == [
        {"busy": 10, "end": 25},
        {"busy": 25, "end": 10},
        {"busy": 12, "load": 10, "weights": 10, "end": 3},
        {"busy": 3, "done": 32},  # an object without a word stands for itself
    ]
    gaps = [gap for gap in idle(timing, words) if gap.unit == 2]
    assert [(gap.start, gap.end, gap.task, gap.category) for gap in gaps] == [
        (0, 10, 2, "load"),
        (15, 25, 3, "weights"),
        (32, 35, -1, "end"),
    ]


def test_the_critical_path_says_what_was_waited_for():
    timing, words = fed()
    steps = critical_steps(timing, words)
    assert [(step.task, step.start, step.end, step.category) for step in steps] == [
        (1, 0, 25, "busy"),
        (3, 25, 32, "weights"),
        (4, 32, 35, "done"),
    ]


@settings(max_examples=200)
@given(schedules())
def test_everything_adds_up_to_the_makespan(schedule):
    try:
        timing = schedule.run()
    except ProgramError:
        return
    for unit, times in enumerate(time_by_category(timing)):
        assert sum(times.values()) == timing.makespan
        assert times["busy"] == timing.busy()[unit]
    for gap in idle(timing):
        assert gap.start < gap.end
        assert (gap.task < 0) or timing.start[gap.task] == gap.end
    steps = critical_steps(timing)
    assert [step.start for step in steps] == [0, *(step.end for step in steps[:-1])][: len(steps)]
    assert (steps[-1].end if steps else 0) == timing.makespan
