"""The best epochs of all that were found: of each program, between common ends, and of epochs of like ops."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.graph.spec import FRONT
from buda_emu.compiler.ir.text import Ir
from buda_emu.compiler.lower.layout import Layout, Piece
from buda_emu.compiler.lower.tiles import Constant, State, Store, Use
from buda_emu.compiler.pipeline import PASSES, Context
from buda_emu.compiler.place.decision import build_placement
from buda_emu.compiler.place.routable import is_number
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.improve import Start
from buda_emu.compiler.search.refine import FULL, combine_epochs, quicker_epochs, rank_epochs
from buda_emu.compiler.search.single_input import EpochBounds, SingleInput
from buda_emu.compiler.search.speculative import _without_values
from buda_emu.compiler.search.trials import SearchContext, SearchResult, model_placement, try_start
from buda_emu.compiler.search_record import SearchRecord
from buda_emu.compiler.target import ONE_BY_ONE


def table(programs: int) -> CandidateTable:
    """Of as many programs, each of three products of its own."""
    b = Builder(Graph("g"))
    rng = np.random.default_rng(0)
    owners: dict[str, str] = {}
    for number in range(programs):
        x = b.input(f"x{number}", (32, 256), "float32")
        for _ in range(3):
            before = set(b.graph.nodes)
            x = b.exp(b.matmul(x, rng.standard_normal((256, 256)).astype(np.float32)))
            owners |= dict.fromkeys(set(b.graph.nodes) - before, f"fwd_{number}")
        b.graph.outputs.append(Output(f"y{number}", x.name, "float32"))
        owners[x.name] = f"fwd_{number}"
    forms, context = [Ir(FRONT, b.graph)], Context()
    for step in PASSES:
        if step.name == "search":
            break
        forms = step.run(forms, context)
    tiles = forms[0].tiles
    assert tiles is not None
    for op in tiles.ops.values():
        op.program = owners[op.source if op.source in owners else op.source.partition(".output_nop")[0]]
    tiles.ops = {op.name: op for op in sorted(tiles.ops.values(), key=lambda op: op.program)}
    return CandidateTable.of(tiles, context.target)


def found(own: CandidateTable, *kept: int) -> SearchResult:
    objective = replace(ONE_BY_ONE, record=SearchRecord.begin("default"))
    decisions = SingleInput.of(own, FULL).decisions(EpochBounds(frozenset(kept)))
    return try_start(SearchContext(), own, Start(decisions, objective, "default", 2))


def ends(own: CandidateTable, placed: SearchResult) -> list[int]:
    """The ops with which epochs begin."""
    decisions = placed.decisions or {}
    epochs = [decisions[op.name].epoch for op in own.ops]
    return [n for n, epoch in enumerate(epochs) if n == 0 or epoch != epochs[n - 1]]


def test_the_best_of_each_program_is_taken():
    own = table(2)
    middle = next(n for n, op in enumerate(own.ops) if op.program == own.ops[-1].program)
    first, second = found(own, 2), found(own, middle + 2)  # one program is cut once more than the other one
    both = combine_epochs([first, second], SearchContext())
    assert both.placement.epochs < min(first.placement.epochs, second.placement.epochs)
    assert both.cycles < min(first.cycles, second.cycles)
    assert set(both.decisions or {}) == {op.name for op in own.ops}
    assert sum(both.epochs) == pytest.approx(both.cycles)


def test_within_a_program_the_best_between_two_ends_is_taken():
    own = table(1)
    slow, slower = found(own, 1, 3), found(own, 3, 5)  # both end before op 3
    both = combine_epochs([slow, slower], SearchContext())
    assert both.placement.epochs < min(slow.placement.epochs, slower.placement.epochs)
    assert both.cycles < min(slow.cycles, slower.cycles)


def test_where_one_is_the_best_for_all_it_stays():
    for own in (table(1), table(2)):
        best = found(own)
        assert combine_epochs([found(own, 2), best], SearchContext()) is best


def with_fewest_cores(start: SearchResult, rows: Mapping[int, int]) -> SearchResult:
    """The epochs of `start` with the fewest cores for some ops, each in a row of the chip."""
    own, decisions = start.table, dict(start.decisions or {})
    assert own is not None
    for number, row in rows.items():
        name = own.ops[number].name
        choice = min(own.corrected[number], key=lambda item: item.cores)
        decisions[name] = replace(decisions[name], choice=choice, at=(row, 0))
    placement = build_placement(own.tiles, own.target, decisions, start.objective, 2)
    return SearchResult.of(
        start.objective, model_placement(SearchContext(), start.objective, placement), own, decisions
    )


def test_epochs_of_like_ops_are_as_the_quickest_of_them():
    own = table(2)
    middle = int(own.program_ends[0])
    start = found(own)
    slow = with_fewest_cores(start, {number: number - middle for number in range(middle, len(own.ops))})
    assert slow.cycles > start.cycles
    better = combine_epochs([slow], SearchContext())
    blocks = [(better.decisions or {})[op.name].choice.blocks for op in own.ops]
    assert blocks[:middle] == blocks[middle:]
    assert better.cycles == pytest.approx(start.cycles, rel=0.01)


def test_an_op_that_writes_a_cache_is_not_divided_like_one_that_writes_none():
    plain = table(2)
    middle, last = int(plain.program_ends[0]), plain.ops[-1]
    layout = Layout(((Piece(32, "r", 1),), (Piece(256, "c", 1),)), (1, 32, 256))
    state = State("kept", "kept", (32, 256), "float32", layout, np.zeros((1, 32, 256), np.float32), slots=2)
    tiles = replace(plain.tiles, states={"kept": state}, stores={"kept": Store("kept", last.name, False)})
    own = CandidateTable.of(tiles, plain.target)
    # the first program's last op has fewer cores than one that writes a cache may have, and is the quicker one
    rows = {middle - 1: 7} | {number: number - middle for number in range(middle, len(own.ops) - 1)}
    slow = with_fewest_cores(found(own), rows)
    few = (slow.decisions or {})[own.ops[middle - 1].name].choice.blocks
    assert few not in [choice.blocks for choice in own.corrected[-1]]
    assert slow.epochs[0] < slow.epochs[1]
    assert combine_epochs([slow], SearchContext()).decisions == slow.decisions


def test_ranks_differ_in_where_epochs_end():
    own = table(2)
    middle = int(own.program_ends[0])
    made = [found(own), found(own, 2), found(own, middle + 2), found(own, 2, middle + 2)]
    first, second, third = rank_epochs(made, SearchContext(), 3)[:3] + [None] * (
        3 - len(rank_epochs(made, SearchContext(), 3))
    )
    assert ends(own, first) == ends(own, made[0])
    assert ends(own, second) == ends(own, made[3])  # the next best of both programs
    assert third is None


def test_epochs_that_became_quicker_are_known():
    own = table(2)
    slow = found(own, 2)
    best = found(own)
    assert quicker_epochs(slow, best) == {0}  # which ends elsewhere; the other program's took as long before
    assert quicker_epochs(best, best) == set()


def test_only_the_epochs_that_are_asked_for_are_improved():
    own = table(2)
    first = SingleInput.of(own, FULL).decisions()
    objective = replace(ONE_BY_ONE, record=SearchRecord.begin("default"))
    none = try_start(SearchContext(), own, Start(dict(first), objective, "default", 2, frozenset()))
    assert {name: item.at for name, item in (none.decisions or {}).items()} == {n: d.at for n, d in first.items()}
    one = try_start(SearchContext(), own, Start(dict(first), objective, "default", 2, frozenset({1})))
    changed = {op.program for op in own.ops if (one.decisions or {})[op.name].differs_in_place(first[op.name])}
    assert changed <= {own.ops[-1].program}


def test_workers_know_which_constants_are_single_numbers():
    own = table(1)
    numbers = {"half": Constant("half", np.full((1, 32, 32), 0.5, np.float32))}
    sent = _without_values(replace(own, tiles=replace(own.tiles, constants=own.tiles.constants | numbers)))
    assert is_number(sent.tiles, Use("half"))
    (large, *_) = (item for item in sent.tiles.constants.values() if item.shape != (1, 1, 1))
    assert not hasattr(large.values, "flat")
