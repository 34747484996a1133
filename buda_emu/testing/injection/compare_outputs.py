"""Compares the outputs of a faulty run with those of the clean run."""

from collections.abc import Mapping
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from buda_emu.spec.blocking import Blocking
from buda_emu.support.records import dataclass
from buda_emu.testing.injection.fault import Fault
from buda_emu.testing.injection.machines import Left
from buda_emu.testing.injection.result import Effect, Outcome
from buda_emu.testing.injection.trace import Trace
from buda_emu.testing.injection.values import Value
from buda_emu.testing.verify.comparison import cleaned, pcc

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What an output entry must keep to be tolerable: a PCC, and the place of the largest element of each row."""

    least_pcc: float = 0.99
    top1: bool = False


class OutputComparison:
    """Holds outputs against those of the clean run."""

    def __init__(self, trace: Trace, tolerance: Tolerance) -> None:
        self._trace, self._tolerance = trace, tolerance
        self.outputs = trace.outputs()
        self._places = {number: place for place, number in self.outputs.items()}

    def of_values(self, fault: Fault, differ: Mapping[int, Value], computed: int = 0) -> Effect:
        """Where some values of the run differ, by the number of the clean ones."""
        differ = {number: value for number, value in differ.items() if number in self._places}
        if not differ:
            return Effect(fault, "masked", computed=computed)
        worst, error, output, strange, kept, tiles = 1.0, 0.0, "", False, 1.0, 0
        maps: dict[str, int] = {}
        for number, value in differ.items():
            queue = self._places[number][0]
            clean = self._trace.arithmetic.floats(self._trace.nodes[number].value)
            found = self._trace.arithmetic.floats(value)
            changed = np.flatnonzero((clean.view(np.uint32) != found.view(np.uint32)).any(axis=-1)[0])
            tiles += len(changed)
            maps[queue] = maps.get(queue, 0) | sum(1 << tile for tile in changed.tolist())
            strange |= bool((~np.isfinite(found) & np.isfinite(clean)).any())
            kept = min(kept, self._same_largest(queue, clean, found))
            likeness = _likeness(clean, found)
            if likeness <= worst:
                worst, output = likeness, queue
            error = max(error, _error(clean, found))
        tolerable = worst >= self._tolerance.least_pcc and (kept == 1.0 or not self._tolerance.top1)
        outcome: Outcome = "not finite" if strange else "tolerable" if tolerable else "corrupt"
        return Effect(
            fault,
            outcome,
            worst,
            error if isfinite(error) else None,
            tiles,
            output,
            computed,
            top1=kept,
            maps={queue: f"{bits:x}" for queue, bits in maps.items()},
        )

    def of_machine(self, fault: Fault, left: Left) -> Effect:
        """What another run left. Entries that the host does not find, or finds and should not, are corrupt, too."""
        equal = self._trace.arithmetic.equal
        nodes = self._trace.nodes
        differ = {number: value for number, value in left.values.items() if not equal(value, nodes[number].value)}
        found = self.of_values(fault, differ)
        missing = {self._places[number] for number in self._places.keys() - left.values.keys()}
        wrong = [f"{queue}: entry in slot {slot} was never written" for queue, slot in sorted(missing)]
        for queue in sorted({queue for queue, _ in self.outputs} & left.windows.keys()):
            clean, now = self._trace.left[queue], left.windows[queue]
            if clean != now:
                wrong.append(
                    f"{queue}: the host finds {len(now)} entries, not {len(clean)}"
                    if len(clean) != len(now)
                    else f"{queue}: the host finds other entries"
                )
        if not wrong or found.outcome == "not finite":
            return found
        return Effect(
            fault,
            "corrupt",
            0.0,
            found.max_error,
            found.tiles,
            found.output or wrong[0].partition(":")[0],
            0,
            "; ".join(wrong),
            found.top1,
            found.maps,
        )

    def _same_largest(self, queue: str, clean: Floats, found: Floats) -> float:
        """The share of an entry's rows whose largest element is where it was."""
        blocking = self._trace.netlist.queues[queue].blocking
        with np.errstate(all="ignore"):
            before = np.nan_to_num(rows_of(clean, blocking)).argmax(axis=-1)
            after = np.nan_to_num(rows_of(found, blocking)).argmax(axis=-1)
        return int((before == after).sum()) / before.size


def rows_of(tiles: Floats, blocking: Blocking) -> Floats:
    """An entry float32[1, tiles, 1024] as float32[t, rows, columns]."""
    t, rows, cols = blocking.shape
    height, width = blocking.tile_dim
    whole = tiles.reshape(t, rows, cols, 32, 32)[..., :height, :width]
    return whole.swapaxes(2, 3).reshape(t, rows * height, cols * width)


def _likeness(clean: Floats, found: Floats) -> float:
    """PCC of an entry, as comparisons of tests have it (NETLIST 5.3)."""
    with np.errstate(all="ignore"):
        rows = [cleaned(values.reshape(1, -1).astype(np.float64), nan_is_zero=True) for values in (clean, found)]
    value, rounded = pcc(rows[0], rows[1], rows[0].shape[1])
    return 1.0 if rounded[0] else float(value[0]) if isfinite(value[0]) else 0.0


def _error(clean: Floats, found: Floats) -> float:
    """The largest difference, relative to the root mean square of the clean entry."""
    with np.errstate(all="ignore"):
        size = float(np.sqrt(np.mean(clean.astype(np.float64) ** 2)))
        return float(np.abs(found.astype(np.float64) - clean).max()) / (size or 1.0)
