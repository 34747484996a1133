"""The stretch of an epoch that stands for its steady state, and how far the pipeline is filled in it."""

from dataclasses import replace

import pytest

from buda_emu.performance.timing.epoch.pipeline import (
    FIRST_INPUTS,
    INPUTS,
    MOST_INPUTS,
    describe_fill,
    extend_until_full,
    steady,
)
from buda_emu.performance.timing.epoch.result import Cost
from performance.timing.epoch.test_pipeline import chain, timed


def even(length, inputs):
    """A chain of ops that take the same time: the last begins when the first is `length` inputs ahead."""
    return timed(chain(length, inputs=inputs), lambda _: Cost(1000.0, 0.0, ""))


@pytest.mark.parametrize("length", [3, 24, 40])
def test_the_whole_pipeline_is_at_work_in_the_steady_state(length):
    timing = even(length, 10_000)
    assert timing.run.inputs == FIRST_INPUTS
    full = extend_until_full(timing)
    stretch = steady(full)
    assert stretch.working == length
    assert describe_fill(full, stretch) == f"all {length} ops at work"
    assert stretch.last - stretch.first + 1 == INPUTS
    for op in full.ops:
        assert op.first_start <= stretch.start
        assert stretch.end <= op.last_end
    assert full.cycles_per_input == pytest.approx(timing.cycles_per_input)


def test_a_pipeline_that_few_inputs_never_fill_says_how_far_it_is():
    timing = even(40, 20)
    full = extend_until_full(timing)
    stretch = steady(full)
    assert full.run.inputs == 20
    assert stretch.working < 40
    assert describe_fill(full, stretch) == f"{stretch.working} of 40 ops at work"


def test_no_more_inputs_than_are_to_be_drawn():
    timing = even(40, 10_000)
    tasks = len(timing.run.timing.start)
    assert extend_until_full(timing, most_tasks=tasks) is timing
    assert extend_until_full(timing, most_tasks=2 * tasks).run.inputs == 2 * FIRST_INPUTS
    late = replace(timing.ops[0], first_start=10**9)
    never = replace(timing, ops=(*timing.ops, late), again=lambda _: never)
    many = replace(never.run, inputs=MOST_INPUTS)
    assert extend_until_full(replace(never, run=many)).run.inputs == MOST_INPUTS
