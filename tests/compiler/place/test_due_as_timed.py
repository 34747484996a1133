"""What ops keep in L1 is due when the timing model says so."""

from dataclasses import replace

import numpy as np
import pytest

from buda_emu.compiler.compilation import Compilation, CompileOptions
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.pipeline import DEFAULT
from buda_emu.compiler.place.decision import PlacementDecision, build_placement
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.evaluate import evaluate
from buda_emu.compiler.search.schedule_changes import set_deadlines
from buda_emu.compiler.search.single_input import SingleInput
from buda_emu.compiler.target import ONE_BY_ONE
from buda_emu.performance.timing.result import EpochReport

Made = tuple[CandidateTable, dict[str, PlacementDecision]]
PRODUCTS = [f"p{n}.matmul" for n in range(3)]


@pytest.fixture(scope="module")
def made() -> Made:
    """Three products one after the other, each by a constant that is kept in L1, in one epoch."""
    b, rng = Builder(Graph("products")), np.random.default_rng(0)
    x = b.input("x", (1, 32, 512), "float32")
    for n in range(3):
        weights = b.constant(rng.standard_normal((512, 512)).astype(np.float32))
        x = b.alias(b.matmul(b.exp(x), weights), f"p{n}")
    b.graph.outputs = [Output("y", x.name, "float32")]
    (form,) = Compilation.of(CompileOptions()).run_until(b.graph, "state_formats").forms
    assert form.tiles is not None
    table = CandidateTable.of(form.tiles, DEFAULT)
    decisions = SingleInput.of(table, 0.94).decisions()
    assert {decision.epoch for decision in decisions.values()} == {0}
    return table, decisions


def timed(made: Made, decisions: dict[str, PlacementDecision]) -> tuple[Placement, EpochReport]:
    table, _ = made
    found = build_placement(table.tiles, DEFAULT, decisions, ONE_BY_ONE)
    return found, evaluate(found).run.epochs[0]


def test_an_epoch_takes_as_much_longer_as_an_op_begins_later_than_it_has_to(made: Made) -> None:
    _, report = timed(made, made[1])
    due = set_deadlines(made[1], report)
    by = [round(due[name].begin_by or 0) for name in PRODUCTS]
    assert 0 < by[0] < by[1] < by[2]
    schedule, timing = report.timing.run.schedule, report.timing.run.timing
    channels = [
        [unit.startswith("DRAM") and unit.endswith(f"> {name}, once") for unit in timing.units] for name in PRODUCTS
    ]
    loads = np.array(channels)[:, timing.unit]  # of each product, whether a task is one of a channel for it
    at_once = schedule.durations
    at_once[loads.any(0)] = 0
    shortest = schedule.run(at_once).makespan
    for own, cycle in zip(loads, by, strict=True):
        for late in (0, 700):
            durations = at_once.copy()
            durations[own] = cycle + late
            assert schedule.run(durations).makespan == shortest + late


@pytest.mark.parametrize("order", [1, -1])
def test_what_is_due_last_lies_in_the_channels_that_move_most(made: Made, order: int) -> None:
    due = set_deadlines(made[1], timed(made, made[1])[1])
    by = [due[name].begin_by for name in PRODUCTS][::order]
    wished = {name: replace(due[name], begin_by=cycle) for name, cycle in zip(PRODUCTS, by, strict=True)}
    found, _ = timed(made, {**due, **wished})
    moved = [0.0] * DEFAULT.arch.dram_channels
    channels: list[list[int]] = []
    for name in PRODUCTS:
        queue = found.queues[found.ops[name].op.uses[1].source]
        channels.append([channel for channel, _ in queue.addresses])
        for channel in channels[-1]:
            moved[channel] += 1 / len(queue.addresses)
    first, _, last = ([max(moved[channel] for channel in own) for own in channels])[::order]
    assert first < last
