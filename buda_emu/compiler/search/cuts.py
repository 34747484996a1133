"""The partition of a model into epochs, for rounds of inputs: a dynamic program over the ops in their order.

An epoch of the ops from i up to j at a pace of T cycles takes each op's fewest cores that keep the pace, on as many
chips as there are. Its time is that of a round of inputs: T for each, but no less than DRAM needs, the way of the first
input through all ops, loading what stays in L1, and loading the epoch itself onto the cores (PERF 5.1).
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.place.cost import speeds
from buda_emu.compiler.search.candidate_table import LEVELS, NEVER, STEP, CandidateTable
from buda_emu.compiler.search_parts import Part
from buda_emu.compiler.target import Objective, Target
from buda_emu.performance.timing.transfers.loading import load_cycles

FULL = 0.94
"""The share of a chip's cores that rectangles are expected to cover. Other shares are in `trials.SHARES`."""
BACK = 12
"""Number of ops by which an epoch may end before the cores are used up, for a cut through less data. Without such ends
MobileNet v3 takes 13 % more cycles (docs/compile/placing.md, "What each part gains"); with ends up to the first op
small ResNet takes as many cycles, and its search 2.7 times as long."""


def cut_epochs(table: CandidateTable, objective: Objective, full: float, step: float = STEP) -> tuple[list[int], float]:
    """Return the epochs that are expected to take the fewest cycles in all: the number of the first op of each,
    followed by the number of ops, and the cycles of a round of inputs. Where few cores are the objective, the epochs
    are as few as possible, and their number is returned as the cycles. `full`: the share of a chip's cores that
    rectangles are expected to cover; `step`, as a share of a pace: how much later each op of a chain begins."""
    count = len(table.ops)
    possible = PossibleEpochs.of(table, objective, full, step)
    best = np.full(count + 1, np.inf)
    best[0] = 0.0
    before = np.zeros(count + 1, np.int64)
    for i in range(count):
        if not np.isfinite(best[i]):
            continue
        ends, times = possible.beginning_with(i)
        total = best[i] + times
        order = np.argsort(-total)  # the best is written last
        ends = ends[order]
        total = total[order]
        better = total < best[ends]
        best[ends[better]] = total[better]
        before[ends[better]] = i
    starts = [count]
    while starts[-1] > 0:
        starts.append(int(before[starts[-1]]))
    return starts[::-1], float(best[count])


@dataclass(frozen=True, slots=True)
class PossibleEpochs:
    """The epochs that the dynamic program chooses from.

    `levels` are the numbers of the paces that are tried; `reach` is, by pace and first op, the op before which an epoch
    has to end; `back`: by how many ops it may end earlier; `used`: by pace, the cores of all ops before each; `dram`:
    the bytes that DRAM moves in a cycle; `load`: the cycles in which an epoch without a kernel is loaded, and those
    that each kernel adds."""

    table: CandidateTable
    objective: Objective
    step: float
    levels: NDArray[np.int64]
    reach: NDArray[np.int64]
    back: NDArray[np.int64]
    used: NDArray[np.int64]
    chips: int
    dram: float
    load: tuple[float, float]

    @staticmethod
    def of(table: CandidateTable, objective: Objective, full: float, step: float) -> "PossibleEpochs":
        """Return all epochs that the table's ops may form on the chips of the objective. `full`: the share of a chip's
        cores that rectangles are expected to cover; `step`, as a share of a pace: how much later each op of a chain
        begins."""
        if table.assigned:
            chips = 1
        else:
            chips = objective.chips
        levels = np.array([LEVELS - 1] if objective.objective == "cores" else range(LEVELS), np.int64)
        return PossibleEpochs(
            table=table,
            objective=objective,
            step=step,
            levels=levels,
            reach=np.minimum(_furthest_ends(table, objective, full), table.program_ends[None, :]),
            back=np.arange(1 if Part.EARLY_ENDS in objective.without else BACK + 1)[None, :],
            used=table.used[levels],
            chips=chips,
            dram=speeds(table.target.chip).dram * chips,
            load=epoch_load(table.target),
        )

    def beginning_with(self, i: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return two parallel arrays for the epochs that begin with op i: the op after each, and the cycles of a round
        of inputs at some pace, infinite where there is no such epoch. The same epoch may be there several times. Where
        few cores are the objective, each counts as one cycle and hardly more by the bytes that DRAM moves."""
        table = self.table
        reach = self.reach[self.levels, i]
        ends = np.maximum(reach[:, None] - self.back, i + 1)
        moved = table.dram_bytes(i, ends, self.levels)
        if self.objective.objective == "cores":
            times = 1.0 + moved * 1e-15
        else:
            pace = np.maximum(table.paces[self.levels][:, None], moved / self.dram)
            depth = table.level[ends] - table.level[i]
            kernels = np.take_along_axis(self.used, ends, axis=1) - self.used[:, i, None]
            begin, per_kernel = self.load
            load = (table.loaded[ends] - table.loaded[i]) / self.dram + begin + per_kernel * kernels / self.chips
            times = (self.objective.microbatch + self.step * depth) * pace + load
        times[reach <= i] = np.inf  # an op that never keeps this pace
        times[table.next_ends[ends] != ends] = np.inf
        return ends.ravel(), times.ravel()


def _furthest_ends(table: CandidateTable, objective: Objective, full: float) -> NDArray[np.int64]:
    """Return [pace, i]: the op before which an epoch that begins with op i has to end at each pace, when rectangles
    cover a share `full` of the cores of all chips. It is i itself where op i cannot keep the pace."""
    count = len(table.ops)
    room = prod(table.target.arch.grid) * full
    reached = np.zeros((LEVELS, count + 1), np.int64)
    for level in range(LEVELS):
        used: NDArray[np.int64] = table.used[level]
        chip_end = np.searchsorted(used, used + room, side="right") - 1
        chip_end = np.minimum(chip_end, count)
        # One op may take all cores, more than `full` of them.
        fills_chip = (chip_end == np.arange(count + 1)) & (
            np.append(table.need[level], NEVER) <= prod(table.target.arch.grid)
        )
        chip_end = np.where(fills_chip, table.next_ends[np.minimum(np.arange(count + 1) + 1, count)], chip_end)
        pipeline_end = chip_end
        for _ in range(0 if table.assigned else objective.chips - 1):
            pipeline_end = chip_end[pipeline_end]
        reached[level] = pipeline_end
    return reached


def epoch_load(target: Target) -> tuple[float, float]:
    """Return the cycles in which a chip loads an epoch without a kernel, and those that each kernel adds."""
    chip = target.chip
    cores = prod(chip.grid)
    begin = load_cycles(chip, 0)
    return begin, (load_cycles(chip, cores) - begin) / cores
