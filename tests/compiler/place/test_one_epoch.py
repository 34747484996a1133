"""A placement in which only one epoch differs from another: its queues are as the whole placement has them."""

import random
from dataclasses import replace

import numpy as np
import pytest

from buda_emu.compiler.lower.tiles import Constant, InputQueue, OutputQueue, TileGraph, TileOp, Use
from buda_emu.compiler.place.decision import OneEpoch, build_placement
from buda_emu.compiler.place.placement import Detour
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.improve import isolate_epoch
from buda_emu.compiler.search.pack import pack, pack_epochs, pack_on_chip
from buda_emu.compiler.target import ONE_BY_ONE, Objective, Target

SHAPE = (1, 4, 8)
FEW = 8  # cores of an op, so that twelve ops find room
TARGET = Target.from_names("wormhole_b0", "Float16_b", "HiFi3", "")


@pytest.fixture(scope="module")
def table():
    """Products by constants, some of them shared, and sums of what is near and far, in several epochs."""
    draw, ops, constants = random.Random(3), {}, {}
    before = "x"
    for n in range(36):
        name = f"op{n}"
        if n % 3 == 0:
            held = f"c{n % 12}"
            constants[held] = Constant(held, np.zeros((1, 32 * SHAPE[2], 32 * SHAPE[2]), np.float32))
            ops[name] = TileOp(name, "matmul", [Use(before), Use(held)], SHAPE, inner=SHAPE[2])
        else:
            other = f"op{draw.randrange(max(0, n - 12), n)}"
            ops[name] = TileOp(name, "add", [Use(before), Use(other)], SHAPE)
        before = name
    tiles = TileGraph(
        ops,
        inputs={"x": InputQueue("x", "x", SHAPE, (1, 128, 256))},
        constants=constants,
        outputs={"y": OutputQueue("y", "y", before, SHAPE, (1, 128, 256), "float32")},
    )
    return CandidateTable.of(tiles, TARGET)


def shown(found, epoch):
    """All that the timing model is told of an epoch: channels, not addresses."""
    part = isolate_epoch(found, epoch)
    detours = {edge: way for edge, way in found.detours.items() if found.ops[edge[0]].epoch == epoch}
    queues = [
        replace(queue, addresses=tuple((channel, 0) for channel, _ in queue.addresses))
        for queue in part.queues.values()
    ]
    return part.ops, queues, detours


@pytest.mark.parametrize("objective", [ONE_BY_ONE, Objective(microbatch=16)], ids=["one by one", "in rounds"])
def test_an_epoch_alone_has_the_queues_and_channels_that_it_has_in_the_whole(table, objective):
    decisions = pack_epochs(
        table, range(0, len(table.ops) + 1, 12), lambda start, stop, epoch: pack(table, start, stop, epoch, 1)
    )
    base = build_placement(table.tiles, TARGET, decisions, objective)
    assert base.epochs == 3
    draw, changed = random.Random(1), 0
    for epoch in range(base.epochs):
        names = [name for name, decision in decisions.items() if decision.epoch == epoch]
        for _ in range(4):
            numbers = [table.index[name] for name in names]
            few = [[choice for choice in table.corrected[number] if choice.cores <= FEW] for number in numbers]
            wished = [[draw.choice(own)] for own in few]
            mine = pack_on_chip(table, numbers, wished, epoch, 0, grid_transpose=False)
            if mine is None:
                continue
            changed += 1
            whole = build_placement(table.tiles, TARGET, {**decisions, **mine}, objective)
            alone = build_placement(
                table.tiles, TARGET, {**decisions, **mine}, objective, only=OneEpoch.of(table.tiles, base, epoch)
            )
            if objective is ONE_BY_ONE:  # other epochs keep the channels of what this one shares with them
                assert without_channels(alone, epoch) == without_channels(whole, epoch)
            else:
                assert shown(alone, epoch) == shown(whole, epoch)
            assert len(alone.queues) < len(whole.queues)
    assert changed > base.epochs


def without_channels(found, epoch):
    """The same, with the number of each queue's buffers."""
    ops, queues, detours = shown(found, epoch)
    return ops, [replace(queue, addresses=((0, 0),) * len(queue.addresses)) for queue in queues], detours


@pytest.mark.parametrize("objective", [ONE_BY_ONE, Objective(microbatch=16)], ids=["one by one", "in rounds"])
def test_an_epoch_that_stays_as_it_is_has_the_channels_of_the_whole(table, objective):
    decisions = pack_epochs(
        table, range(0, len(table.ops) + 1, 12), lambda start, stop, epoch: pack(table, start, stop, epoch, 1)
    )
    base = build_placement(table.tiles, TARGET, decisions, objective)
    for epoch in range(base.epochs):
        alone = build_placement(table.tiles, TARGET, decisions, objective, only=OneEpoch.of(table.tiles, base, epoch))
        assert shown(alone, epoch) == shown(base, epoch)


def test_a_detour_of_a_reader_elsewhere_whose_source_is_far_is_left_out(table):
    """What another epoch sends through DRAM does not count, though both read the same constants."""
    decisions = pack_epochs(
        table, range(0, len(table.ops) + 1, 12), lambda start, stop, epoch: pack(table, start, stop, epoch, 1)
    )
    base = build_placement(table.tiles, TARGET, decisions, ONE_BY_ONE)
    near = OneEpoch.of(table.tiles, base, 0).near.ops
    pairs = [(op.name, use.source) for op in near.values() for use in op.uses if use.source in table.tiles.ops]
    far = [(reader, source) for reader, source in pairs if source not in near and base.ops[reader].epoch != 0]
    assert far
    base.detours = {edge: Detour("streams", "few") for edge in far}
    alone = build_placement(table.tiles, TARGET, decisions, ONE_BY_ONE, only=OneEpoch.of(table.tiles, base, 0))
    assert alone.detours == {}
