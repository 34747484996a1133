"""Each program has the epochs that it is quickest with, of all that were found."""

from dataclasses import replace

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.graph.spec import FRONT
from buda_emu.compiler.ir.text import Ir
from buda_emu.compiler.pipeline import PASSES, Context
from buda_emu.compiler.search.by_program import combined
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.improve import Start
from buda_emu.compiler.search.refine import FULL
from buda_emu.compiler.search.single_input import SingleInput
from buda_emu.compiler.search.trials import Found, try_start
from buda_emu.compiler.target import ONE_BY_ONE
from buda_emu.compiler.work import Work


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


def found(own: CandidateTable, *kept: int) -> Found:
    objective = replace(ONE_BY_ONE, work=Work.of("default"))
    decisions = SingleInput.of(own, FULL).decisions(kept)
    return try_start(own, Start(decisions, objective, "default", 2))


def test_the_best_of_each_program_is_taken():
    own = table(2)
    middle = next(n for n, op in enumerate(own.ops) if op.program == own.ops[-1].program)
    first, second = found(own, 2), found(own, middle + 2)  # one program is cut once more than the other one
    (both,) = combined([first, second], 2)
    assert both.placement.epochs < min(first.placement.epochs, second.placement.epochs)
    assert both.cycles < min(first.cycles, second.cycles)
    assert set(both.decisions or {}) == {op.name for op in own.ops}


def test_one_program_or_one_that_is_best_for_all_has_nothing_to_combine():
    one, two = table(1), table(2)
    assert combined([found(one), found(one, 2)], 2) == []
    assert combined([found(two), found(two, 2)], 2) == []
