"""Paths of ops that move, as the kernel makes them, beside those that are made one by one."""

import random
from dataclasses import replace
from math import fsum
from pathlib import Path

import numpy as np
import pytest

from buda_emu.netlist.load import load
from buda_emu.netlist.sourced import evolve
from buda_emu.performance.timing.epoch.tasks import step_cycles
from buda_emu.performance.timing.model import epochs
from buda_emu.performance.timing.transfers.flows import flows
from buda_emu.performance.timing.transfers.moving import MovingPaths, steps_of
from buda_emu.performance.timing.transfers.noc import ends_of, loads, path
from buda_emu.performance.timing.transfers.rates import speed
from buda_emu.spec.devices import device

NETLISTS = Path(__file__).parents[4] / "netlists"
PARAMETERS = {"$p_loop_count": "1", "$p_zero_grad": "true"}
STEPS = 3
ADDED = 2.0  # no transfer is that fast by itself


def ways(ops, queues, edges, chip):
    """One by one."""
    return [path(edge, *ends_of(edge, ops, queues), chip) for edge in edges]


def check(moving, ops, queues, edges, chip, rates):
    found = ways(ops, queues, edges, chip)
    busy = {
        (once, way): size / rates.over(way)
        for once in (False, True)
        for way, size in loads(zip(edges, found, strict=True), once=once).items()
    }
    assert sorted(moving.busy[moving.busy > 1e-9]) == pytest.approx(sorted(busy.values()))
    takes = [
        max((busy[edge.once, way] for way, _ in own.loads()), default=0.0)
        for edge, own in zip(edges, found, strict=True)
    ]
    assert moving.takes == pytest.approx(np.maximum(takes, ADDED))
    return found


@pytest.mark.tiny
@pytest.mark.parametrize("name", ["attention", "matmul", "training", "two_chips"])
def test_after_every_move_paths_are_those_of_ops_that_stand_there(name):
    netlist = load(NETLISTS / f"{name}.yaml")
    chip, draw = device(netlist.arch_name), random.Random(1)
    rates = speed(chip, {}).rates()
    epoch = epochs(netlist, list(netlist.programs.values()), PARAMETERS)[0]
    edges = flows(netlist, epoch.temporal, epoch.executes)
    edges[0] = replace(edges[0], once=True)
    ops = {
        op.name: evolve(op, grid_loc=(0, 0), grid_transpose=draw.random() < 0.5)
        for graph in epoch.temporal.graphs
        for op in netlist.graphs[graph].ops
    }
    moving = MovingPaths(ops, netlist.queues, edges, chip, rates)
    moving.with_least(np.full(len(edges), ADDED))
    steps = steps_of(edges, [range(STEPS * n, STEPS * (n + 1)) for n in range(len(edges))], [ADDED] * len(edges), rates)
    for number in range(60):
        chosen = draw.sample(sorted(ops), min(len(ops), 1 + number % 3))
        places = {
            item: (draw.randrange(chip.grid[0] - max(size) + 1), draw.randrange(chip.grid[1] - max(size) + 1))
            for item in chosen
            for size in [ops[item].blocking.grid_size]
        }
        before = moving.busy.copy(), moving.takes.copy(), {item: moving.at(item) for item in ops}
        turned = draw.choice(["", chosen[0]])
        change = moving.weigh(places, 0.0, turned)
        assert change is not None
        durations = np.full(STEPS * len(edges), -1)
        moving.time(steps, durations)
        if draw.random() < 0.5:
            moving.take_back()
            assert (moving.busy == before[0]).all()
            assert (moving.takes == before[1]).all()
            assert {item: moving.at(item) for item in ops} == before[2]
            check(moving, ops, netlist.queues, edges, chip, rates)
            continue
        moving.keep()
        assert change == fsum([*moving.takes.tolist(), *(-before[1]).tolist()])
        ops |= {
            item: evolve(ops[item], grid_loc=at, grid_transpose=ops[item].grid_transpose != (item == turned))
            for item, at in places.items()
        }
        found = check(moving, ops, netlist.queues, edges, chip, rates)
        for edge in sorted({place // STEPS for place in np.flatnonzero(durations != -1).tolist()}):
            one = edges[edge]
            if one.operand >= 0 and one.memory == "none":
                a, b = ops[one.source].grid_loc, ops[one.target].grid_loc
                one = replace(one, hops=abs(a[0] - b[0]) + abs(a[1] - b[1]))
            first, each = step_cycles(one, found[edge], moving.takes[edge], STEPS, rates)
            own = durations[STEPS * edge : STEPS * (edge + 1)]
            assert own.tolist() == pytest.approx([first, *[each] * (STEPS - 1)], abs=1)
            durations[STEPS * edge : STEPS * (edge + 1)] = -1
        assert (durations == -1).all()
