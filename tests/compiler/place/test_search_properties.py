"""Properties of the search: partitions are the best under their own cost, refused moves leave no trace, figures that
are looked up are those of the model, and nothing undercuts a bound."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from buda_emu.compiler.lower.tiles import Constant, InputQueue, OutputQueue, TileGraph, TileOp, Use
from buda_emu.compiler.place.decision import build_placement
from buda_emu.compiler.search.candidate_table import STEP, CandidateTable
from buda_emu.compiler.search.cuts import FULL, PossibleEpochs, cut_epochs
from buda_emu.compiler.search.evaluate import EpochCache, EpochEvaluation, evaluate, evaluate_figures
from buda_emu.compiler.search.improve import Start, improve_epochs, no_result
from buda_emu.compiler.search.single_input import EVERYWHERE, EpochBounds, SingleInput
from buda_emu.compiler.search.starts import first_decisions, searched_decisions
from buda_emu.compiler.search.wiring import TimedWires
from buda_emu.compiler.search_record import SearchRecord
from buda_emu.compiler.target import ONE_BY_ONE, Objective, Target

SHAPE = (1, 4, 8)
TARGET = Target.from_names("wormhole_b0", "Float16_b", "HiFi3", "")
Segments = Callable[[int], Iterator[tuple[int, float]]]


def graph(seed: int, count: int = 7) -> TileGraph:
    """Products by constants, and sums of what is near and far."""
    draw = random.Random(seed)
    ops: dict[str, TileOp] = {}
    constants: dict[str, Constant] = {}
    before = "x"
    for n in range(count):
        name = f"op{n}"
        if draw.random() < 0.5:
            factor = f"c{draw.randrange(3)}"
            constants[factor] = Constant(factor, np.zeros((1, 32 * SHAPE[2], 32 * SHAPE[2]), np.float32))
            ops[name] = TileOp(name, "matmul", [Use(before), Use(factor)], SHAPE, inner=SHAPE[2])
        else:
            other = f"op{draw.randrange(n)}" if n else "x"
            ops[name] = TileOp(name, "add", [Use(before), Use(other)], SHAPE)
        before = name
    return TileGraph(
        ops,
        inputs={"x": InputQueue("x", "x", SHAPE, (1, 128, 256))},
        constants=constants,
        outputs={"y": OutputQueue("y", "y", before, SHAPE, (1, 128, 256), "float32")},
    )


def fewest_of_all(segments: Segments, start: int, stop: int) -> float:
    """Return the cost of the best of all partitions of the items from `start` up to `stop`, each of which is tried."""
    if start == stop:
        return 0.0
    cost = inf
    for end, cycles in segments(start):
        if start < end <= stop:
            cost = min(cost, cycles + fewest_of_all(segments, end, stop))
    return cost


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("objective", [Objective(microbatch=16), Objective(microbatch=1), Objective(chips=2)])
def test_epochs_of_rounds_are_the_best_of_all_under_their_cost(seed: int, objective: Objective) -> None:
    table = CandidateTable.of(graph(seed), TARGET)
    possible = PossibleEpochs.of(table, objective, FULL, STEP)

    def segments(start: int) -> Iterator[tuple[int, float]]:
        ends, times = possible.beginning_with(start)
        for end in np.unique(ends).tolist():
            yield end, float(times[ends == end].min())

    ends, cycles = cut_epochs(table, objective, FULL)
    assert ends[0] == 0
    assert ends[-1] == len(table.ops)
    assert cycles == pytest.approx(fewest_of_all(segments, 0, len(table.ops)), rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cut", [EVERYWHERE, EpochBounds(frozenset({3})), EpochBounds(within=frozenset({2, 4}))])
def test_epochs_of_a_single_input_are_the_best_of_all_under_their_cost(seed: int, cut: EpochBounds) -> None:
    single = SingleInput.of(CandidateTable.of(graph(seed), TARGET), FULL)

    def segments(start: int) -> Iterator[tuple[int, float]]:
        for end, cycles in single.epochs[start]:
            passes_an_end = any(start < kept < end for kept in cut.kept)
            if end not in cut.within and not passes_an_end:
                yield end, cycles

    _, cycles = single.fewest_cycles(cut)
    assert cycles == pytest.approx(fewest_of_all(segments, 0, len(single.epochs)), rel=1e-12)


def test_a_move_that_is_refused_leaves_every_bit_as_it_was() -> None:
    tiles = graph(5, 6)
    decisions = first_decisions(tiles, TARGET, 1)
    placement = build_placement(tiles, TARGET, decisions, ONE_BY_ONE)
    evaluation = EpochEvaluation(placement, EpochCache())
    wires = TimedWires(evaluation.netlist, evaluation.report, TARGET.chip)
    draw = random.Random(1)
    refused = 0

    def state() -> list[bytes]:
        arrays = [wires.paths.busy, wires.paths.takes, wires.durations]
        places = [repr(sorted((name, wires.paths.at(name)) for name in decisions)).encode()]
        return [array.tobytes() for array in arrays] + places + [repr((wires.weighted_end, wires.cost)).encode()]

    rows, columns = TARGET.arch.grid
    for _ in range(200):
        name = draw.choice(sorted(decisions))
        height, width = decisions[name].size
        before = state()
        if not wires.try_move({name: (draw.randrange(rows - height + 1), draw.randrange(columns - width + 1))}):
            refused += 1
            assert state() == before
    assert 0 < refused < 200


@pytest.mark.parametrize("objective", [Objective(microbatch=16), ONE_BY_ONE])
@pytest.mark.parametrize("seed", range(2))
def test_what_is_known_of_epochs_changes_no_decision(seed: int, objective: Objective) -> None:
    tiles = graph(seed, 24)
    table = CandidateTable.of(tiles, TARGET)

    def improved(cache: EpochCache) -> tuple[object, int]:
        recorded = replace(objective, record=SearchRecord.begin("default"))
        start = Start(searched_decisions(table, recorded, FULL), recorded, "default", 2)
        return improve_epochs(table, start, no_result, cache), recorded.record.modelled

    cache = EpochCache()
    first = improved(cache)
    count = len(cache.figures), len(cache.moved)
    assert improved(cache) == first  # all is looked up
    assert (len(cache.figures), len(cache.moved)) == count
    assert improved(EpochCache()) == first


@pytest.mark.parametrize("objective", [Objective(microbatch=16), ONE_BY_ONE])
@pytest.mark.parametrize("seed", range(3))
def test_no_placement_undercuts_its_bound_and_figures_are_those_of_the_model(seed: int, objective: Objective) -> None:
    tiles = graph(seed, 20)
    table = CandidateTable.of(tiles, TARGET)
    cache = EpochCache()
    for decisions in (first_decisions(tiles, TARGET, 1), searched_decisions(table, objective, FULL)):
        placement = build_placement(tiles, TARGET, decisions, objective)
        for _ in range(2):  # modelled, then looked up
            figures = evaluate_figures(placement, cache.figures)
            assert figures.cycles == evaluate(placement).cycles
            assert figures.bound <= figures.cycles
