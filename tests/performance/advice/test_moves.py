"""What moves propose for the examples, on a whole chip and on one that has no core to spare.

`PYTHONPATH=tests:tests/helpers python tests/performance/advice/test_moves.py` writes them anew, after a change that is
meant.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from buda_emu.emulator.inputs.entries import default_parameters
from buda_emu.netlist.load import check, check_text
from buda_emu.performance.advice.evaluate import Evaluator
from buda_emu.performance.advice.layout import Layout
from buda_emu.performance.advice.moves import MOVES, cores
from buda_emu.performance.advice.moves.move import Situation, Target
from buda_emu.performance.timing.transfers.flows import channel_name
from shared_files import ROOT
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

KEPT = Path(__file__).with_name("moves.txt")
SHOWN = [move for move in MOVES if move.name not in ("format", "fidelity")]  # every op has those
NETLISTS = ("attention", "matmul", "softmax", "training", "two_chips")


def targets(here: Situation) -> Iterator[Target]:
    """All that could hold an epoch back: ops, transfers, channels, and one channel that the chip has not."""
    yield from (Target("op", name, 1.0) for name in here.ops)
    yield from (Target("transfer", f"{edge.source} > {edge.target}", 1.0) for edge in here.report.edges)
    chips = sorted({op.target_device for op in here.ops.values()})
    for chip in chips:
        for number in range(here.evaluator.chip.dram_channels + 1):
            yield Target("memory", channel_name(number, chip), 1.0)


def proposals(name: str, grid: tuple[int, int] | None) -> Iterator[str]:
    """A line for each, without what it is expected to gain. `grid`: of the chip, where it is another than usual."""
    netlist = check(ROOT / f"netlists/{name}.yaml").netlist
    assert netlist is not None
    programs = list(netlist.programs.values())
    evaluator = Evaluator(netlist, programs, default_parameters(programs, {}))
    start = evaluator.start
    if grid is not None:
        rows, columns = evaluator.chip.worker_rows[: grid[0]], evaluator.chip.worker_columns[: grid[1]]
        evaluator.chip = replace(evaluator.chip, worker_rows=rows, worker_columns=columns)
    for epoch in range(len(start.reports)):
        some = Situation(evaluator, start, epoch, Target("op", "", 1.0))
        for target in targets(some):
            here = replace(some, target=target)
            for move in SHOWN:
                for item in move.proposals(here):
                    edits = "; ".join(
                        f"{edit.name} {'.'.join(map(str, edit.path))}: {edit.value}" for edit in item.edits
                    )
                    yield f"{name} {grid or 'chip'} {epoch} {target.name}: {move.name}: {item.sentence}: {edits}"


def today() -> list[str]:
    """Small grids are those that the ops of an example fill."""
    return [line for name in NETLISTS for grid in (None, (2, 4), (2, 3)) for line in proposals(name, grid)]


def test_the_proposals_are_those_of_today() -> None:
    assert today() == KEPT.read_text(encoding="utf-8").splitlines()


def test_at_most_six_shapes_are_tried() -> None:
    """144 blocks can be cut for 2, 3, 4, 6, 8, 9, 12 or 16 cores."""
    source = text(
        [
            queue("a", mblock=(12, 12), df="Bfp8_b"),
            queue("o", "n", mblock=(12, 12), df="Bfp8_b"),
        ],
        [graph("g", op("n", "exp", ["a"], mblock=(12, 12), df="Bfp8_b"))],
        [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
    )
    netlist = check_text(source).netlist
    assert netlist is not None
    evaluator = Evaluator(netlist, list(netlist.programs.values()), {})
    here = Situation(evaluator, evaluator.start, 0, Target("op", "n", 1.0))
    assert len(list(cores.MOVE.proposals(here))) == 6


@pytest.mark.parametrize("place", [(2, 0), (0, 3), (1, 1)])
def test_an_op_that_has_room_stays_where_it_is(place: tuple[int, int]) -> None:
    own = *place, 1, 1
    assert Layout((4, 4), {"a": own}).room_for("a", 1, 1) == {"a": own}


if __name__ == "__main__":
    KEPT.write_text("\n".join(today()) + "\n", encoding="utf-8")
