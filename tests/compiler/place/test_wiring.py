"""Ops of an epoch are moved until links carry less: what is kept from move to move is what all paths say anew."""

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from buda_emu.compiler.lower.tiles import InputQueue, TileGraph, TileOp, Use
from buda_emu.compiler.place.blocks import CoreGrid
from buda_emu.compiler.place.candidates import choices
from buda_emu.compiler.place.decision import build_placement
from buda_emu.compiler.search import wiring
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.evaluate import evaluate
from buda_emu.compiler.search.pack import pack_on_chip
from buda_emu.compiler.search.schedule_changes import resize_ops
from buda_emu.compiler.search.starts import first_decisions
from buda_emu.compiler.search.wiring import (
    KindsOfMoves,
    MoveLimits,
    TimedWires,
    Wires,
    WiresOfOne,
    anneal,
    exchange_regions,
    rewire,
)
from buda_emu.compiler.target import ONE_BY_ONE, Target
from buda_emu.netlist.sourced import evolve
from buda_emu.performance.timing.transfers.noc import loads, paths
from buda_emu.spec.devices import device

SHAPE = (1, 2, 3)
REGIONS = KindsOfMoves(regions=True)


@pytest.fixture
def criss_cross():
    """Twelve ops of a few cores each, which read each other criss-cross."""
    ops = {"op0": TileOp("op0", "nop", [Use("a")], SHAPE)}
    for n in range(1, 12):
        ops[f"op{n}"] = TileOp(f"op{n}", "add", [Use(f"op{n - 1}"), Use(f"op{n * 5 % n}")], SHAPE)
    tiles = TileGraph(ops, inputs={"a": InputQueue("a", "a", SHAPE, (1, 64, 96))})
    target = Target.from_names("grayskull", "Float16_b", "HiFi3", "")
    decisions = first_decisions(tiles, target, 1)
    assert {decision.epoch for decision in decisions.values()} == {0}
    return tiles, target, decisions


@pytest.fixture
def epoch(criss_cross):
    tiles, target, decisions = criss_cross
    found = evaluate(build_placement(tiles, target, decisions, ONE_BY_ONE))
    report = found.run.epochs[0]
    return decisions, found.netlist, report.edges


@pytest.fixture
def spots_and_wires(epoch):
    decisions, netlist, edges = epoch
    return decisions, Wires(netlist, edges, device("grayskull"))


def of_one(decisions, tiles, target):
    """The epoch of these spots as one input finds it, and its wires."""
    found = evaluate(build_placement(tiles, target, decisions, ONE_BY_ONE))
    report = found.run.epochs[0]
    return report, TimedWires(found.netlist, report, device("grayskull"))


def test_a_single_input_is_done_when_the_timed_wires_say(criss_cross, monkeypatch):
    """But for the latency of reads, which is that of the places before."""
    monkeypatch.setattr(wiring, "HEAT", 0.0)  # the last places are the best
    tiles, target, decisions = criss_cross
    report, timed = of_one(decisions, tiles, target)
    found = anneal(decisions, timed, (10, 12), 400, REGIONS).decisions
    after, _ = of_one(found, tiles, target)
    said = timed.makespan(timed.durations)
    assert abs(after.timing.total - said) <= 270
    assert after.timing.total < report.timing.total


def test_the_best_places_are_those_found_and_not_the_last_ones(criss_cross, monkeypatch):
    tiles, target, decisions = criss_cross
    good = anneal(decisions, of_one(decisions, tiles, target)[1], (10, 12), 1000, REGIONS).decisions
    report, timed = of_one(good, tiles, target)
    monkeypatch.setattr(wiring, "HEAT", 100.0)  # nearly every move is kept
    after, _ = of_one(anneal(good, timed, (10, 12), 100, REGIONS).decisions, tiles, target)
    assert after.timing.total <= report.timing.total + 270 < timed.weighted_end


def test_ops_of_a_single_input_have_no_cores_that_take_longer_to_load_than_they_save(criss_cross):
    tiles, target, _ = criss_cross
    table = CandidateTable.of(tiles, target)
    most = {
        op.name: [max(own, key=lambda choice: choice.cores)] for op, own in zip(table.ops, table.corrected, strict=True)
    }
    decisions = pack_on_chip(table, range(12), list(most.values()), 0, 0, grid_transpose=False)
    assert decisions is not None
    report, _ = of_one(decisions, tiles, target)
    found = resize_ops(table, decisions, report)
    after, _ = of_one(found, tiles, target)
    assert sum(decision.choice.cores for decision in found.values()) < sum(
        decision.choice.cores for decision in decisions.values()
    )
    assert after.timing.total + after.load.cycles < report.timing.total + report.load.cycles
    assert resize_ops(table, found, after) == {}


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ((1, 0), {"a": (1, 0), "b": (0, 0), "c": (0, 1)}),
        ((2, 0), {"a": (2, 0)}),
        ((1, 1), {}),  # cuts through d
        ((0, 1), {}),  # overlaps its own place
    ],
)
def test_an_op_changes_places_with_all_of_a_rectangle(at, expected):
    places = {"a": (0, 0), "b": (1, 0), "c": (1, 1), "d": (1, 2)}
    sizes = {"a": (1, 2), "b": (1, 1), "c": (1, 1), "d": (1, 2)}
    assert exchange_regions("a", at, places, sizes) == expected


def bytes_over(netlist, edges, chip):
    """The bytes over each link, from the paths of all edges."""
    total = {}
    for edge, way in zip(edges, paths(netlist, edges, chip), strict=True):
        if not edge.once:
            for link, size in way.links.items():
                total[link] = total.get(link, 0.0) + size
    return total


def moved_netlist(netlist, places, turned):
    """The netlist with ops at other places, one of them transposed."""
    graphs = {
        name: evolve(
            graph,
            ops=tuple(
                evolve(op, grid_loc=places[op.name], grid_transpose=op.grid_transpose != (op.name == turned))
                for op in graph.ops
            ),
        )
        for name, graph in netlist.graphs.items()
    }
    return replace(netlist, graphs=graphs)


def test_wires_take_those_moves_that_the_links_of_all_paths_gain_by(epoch):
    """Places and turns are drawn, also such as overlap: what the wires say is what all paths say anew, exactly."""
    decisions, netlist, edges = epoch
    chip = device("grayskull")
    wires = Wires(netlist, edges, chip)
    draw = random.Random(1)
    places = {name: tuple(op.grid_loc) for name, op in netlist.ops.items()}
    taken = 0
    for _ in range(300):
        name = draw.choice(sorted(decisions))
        turned = name if draw.random() < 0.3 else ""
        wished = {**places, name: (draw.randrange(8), draw.randrange(9))}
        after = moved_netlist(netlist, wished, turned)
        before_loads, loads_after = (bytes_over(other, edges, chip) for other in (netlist, after))
        difference = sum(Fraction(size) ** 4 for size in loads_after.values())
        difference -= sum(Fraction(size) ** 4 for size in before_loads.values())
        assert wires.try_move({name: wished[name]}, turned) == (difference < 0)
        if difference < 0:
            taken += 1
            places = wished
            netlist = after
        assert {item: wires.paths.at(item) for item in places} == places
        assert wires.paths.is_transposed(name) == netlist.ops[name].grid_transpose
        assert wires.cost == max(bytes_over(netlist, edges, chip).values())
    assert 0 < taken < 300


def test_transfers_of_one_input_are_after_every_move_what_paths_say(epoch):
    _, netlist, edges = epoch
    chip = device("grayskull")
    wires = WiresOfOne(netlist, edges, chip)
    draw, kept = random.Random(1), 0
    places = {name: tuple(op.grid_loc) for name, op in netlist.ops.items()}
    for _ in range(200):
        name, before = draw.choice(sorted(places)), wires.cost
        at = (draw.randrange(8), draw.randrange(9))
        if wires.try_move({name: at}):
            kept += 1
            assert wires.cost < before
            places[name] = at
        assert {item: wires.paths.at(item) for item in places} == places
        graphs = {
            name: evolve(graph, ops=tuple(evolve(op, grid_loc=places[op.name]) for op in graph.ops))
            for name, graph in netlist.graphs.items()
        }
        ways = paths(replace(netlist, graphs=graphs), edges, chip)
        pairs = list(zip(edges, ways, strict=True))
        takes = [as_the_paths_say(way, edge, pairs, wires) for edge, way in pairs]
        assert wires.paths.takes == pytest.approx(np.maximum(takes, wires.paths.least), abs=1)
        assert wires.cost == pytest.approx(wires.paths.takes.sum())
    assert 0 < kept < 200


def as_the_paths_say(way, edge, edges, wires):
    """Cycles of the fullest link or port of a path."""
    total = loads(edges, once=edge.once)
    return max(total[item] / wires.rates.over(item) for item, _ in way.loads())


def test_no_two_ops_come_to_stand_on_one_core(spots_and_wires):
    decisions, wires = spots_and_wires
    before = wires.cost
    found = rewire(decisions, wires, (10, 12), MoveLimits(400)).decisions
    assert wires.cost < before
    cores = np.zeros((10, 12), int)
    for name, decision in found.items():
        assert wires.paths.at(name) == decision.at
        cores[
            decision.at[0] : decision.at[0] + decision.size[0], decision.at[1] : decision.at[1] + decision.size[1]
        ] += 1
    assert cores.max() == 1


def test_a_column_that_takes_much_in_is_turned_and_loads_are_those_of_the_turned_op(criss_cross):
    """What each core of a column reads comes down one link, whichever place the column has."""
    _, target, _ = criss_cross
    shape = (1, 8, 8)
    ops = {name: TileOp(name, "nop", [Use(source)], shape) for name, source in (("x", "a"), ("y", "x"))}
    tiles = TileGraph(ops, inputs={"a": InputQueue("a", "a", shape, (1, 256, 256))})
    table = CandidateTable.of(tiles, target)
    chosen = [
        next(item for item in choices(target, tiles, op) if item.blocks.grid == grid)
        for op, grid in zip(table.ops, ((1, 8), (8, 1)), strict=True)
    ]
    decisions = pack_on_chip(table, [0, 1], [[choice] for choice in chosen], 0, 0, grid_transpose=False)
    before = wires_of(decisions, tiles, target)
    plain = rewire(decisions, wires_of(decisions, tiles, target), (10, 12), MoveLimits(600)).decisions
    wires = wires_of(decisions, tiles, target)
    found = rewire(decisions, wires, (10, 12), MoveLimits(600), KindsOfMoves(turns=True)).decisions
    assert any(decision.grid_transpose for decision in found.values())
    after = wires_of(found, tiles, target)
    assert after.cost == wires.cost
    assert after.cost < wires_of(plain, tiles, target).cost <= before.cost


def wires_of(decisions, tiles, target):
    found = evaluate(build_placement(tiles, target, decisions, ONE_BY_ONE))
    report = found.run.epochs[0]
    return Wires(found.netlist, report.edges, device("grayskull"))


def test_a_room_takes_back_what_it_gave():
    room = CoreGrid(3, 4)
    first = room.places((2, 2))
    room.block((1, 1), (2, 2))
    assert room.places((2, 2)) == []
    assert room.free == 8
    room.release((1, 1), (2, 2))
    assert room.places((2, 2)) == first
