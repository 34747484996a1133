"""Analyses one op of a netlist alone, on operands of the ideal run: the size of its error, its causes, and a change of
the netlist that would repair it."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.op_errors.numerics_result import CAUSES, WORTH_REPAIRING, Cause, NewValue, OpError, Repair
from buda_emu.emulator.op_errors.op_variants import (
    Ideal,
    Switch,
    VariantChange,
    WatchingUnits,
    changes,
    compute_op,
    largest,
    switch_off,
    switches,
)
from buda_emu.emulator.ops.base import Parallel, Tiles
from buda_emu.emulator.ops.on_device.base import DeviceCall
from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits
from buda_emu.netlist.model import Op
from buda_emu.spec.formats import is_raw
from buda_emu.spec.precision import INFINITE
from buda_emu.support.errors import ProgramError, UnsupportedError
from buda_emu.support.records import dataclass


@dataclass(slots=True)
class Moments:
    """Counts, means and central sums of pairs (a, b). Blocks are merged pairwise in the order in which they come, so
    the same blocks in the same order give the same bits."""

    count: int = 0
    mean_a: float = 0.0
    mean_b: float = 0.0
    square_a: float = 0.0
    square_b: float = 0.0
    product: float = 0.0

    def add(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> None:
        """Add a block of pairs (a[i], b[i]), which must be finite; nothing for an empty block."""
        count = a.size
        if not count:
            return
        mean_a = float(a.mean())
        mean_b = float(b.mean())
        da = a - mean_a
        db = b - mean_b
        self._merge(count, mean_a, mean_b, float((da * da).sum()), float((db * db).sum()), float((da * db).sum()))

    def _merge(
        self, count: int, mean_a: float, mean_b: float, square_a: float, square_b: float, product: float
    ) -> None:
        """Merge the moments of another block: its count, means, sums of squared deviations, and the sum of products of
        deviations."""
        total = self.count + count
        weight = self.count * count / total
        off_a = mean_a - self.mean_a
        off_b = mean_b - self.mean_b
        self.square_a += square_a + off_a * off_a * weight
        self.square_b += square_b + off_b * off_b * weight
        self.product += product + off_a * off_b * weight
        self.mean_a += off_a * count / total
        self.mean_b += off_b * count / total
        self.count = total

    def pcc(self) -> float | None:
        """Return Pearson's correlation; 1 for two equal constants, None without pairs, and where a side is constant and
        they differ."""
        if not self.count:
            return None
        scale = (self.square_a * self.square_b) ** 0.5
        if scale > 0:
            return max(-1.0, min(1.0, self.product / scale))
        same = self.mean_a == self.mean_b and self.square_a == self.square_b == 0
        return 1.0 if same else None


_MATTERS: Final = 0.9  # a cause without which no more than this share of the error is left
_MOST_CHANGES: Final = 4  # that make one repair: each more is another round of runs
_TOGETHER: Final = 0.5  # causes that matter only together leave no more than this share
_AS_GOOD: Final = 2.0  # a change as good as the best: at most this many times its error


Elements = NDArray[np.bool_]
"""A mask of the numbers of a result that are elements of its tensor, not padding: bool[tiles, 1024]."""


class ErrorSum:
    """The error of an op's results, summed block after block. Only `elements`, and of each tile only `part`
    (bool[1024]), are compared where these are given."""

    def __init__(self, op: Op, part: NDArray[np.bool_] | None = None, elements: Elements | None = None) -> None:
        if elements is None:
            self._part = part
        else:
            self._part = _elements_in(part, elements)
        self._tile_dim = op.blocking.tile_dim
        self._raw = is_raw(op.out_df)
        self._square = self._error_square = self._largest = 0.0
        self._moments = Moments()
        self._not_finite = 0

    def add(self, expected: Tiles, observed: Tiles) -> None:
        """Add the expected and the observed tiles of a block, float32[..., 1024] each."""
        a = self._compared_elements(expected)
        b = self._compared_elements(observed)
        finite = np.isfinite(a) & np.isfinite(b)
        self._not_finite += int(np.count_nonzero(~finite & (a != b) & ~(np.isnan(a) & np.isnan(b))))
        finite &= ~_are_infinite(a, b)
        a = a[finite]
        b = b[finite]
        if a.size:
            error = a - b
            self._square += float((a * a).sum())  # not np.dot: BLAS adds up by how many threads it has
            self._error_square += float((error * error).sum())
            self._largest = max(self._largest, float(np.abs(error).max()))
            self._moments.add(a, b)

    def _compared_elements(self, tiles: Tiles) -> NDArray[np.float64]:
        """Return the elements of a block that are compared, without padding, as float64; raw words as integers."""
        height, width = self._tile_dim
        if self._raw:
            values = np.ascontiguousarray(tiles).view(np.uint32)
        else:
            values = tiles
        if self._part is not None and self._part.ndim == 2:
            return values.reshape(-1, *self._part.shape)[:, self._part].astype(np.float64)
        if self._part is not None:
            return values[..., self._part].astype(np.float64)
        return values.reshape(-1, 32, 32)[:, :height, :width].astype(np.float64)

    def result(self) -> OpError:
        """Return the error over all blocks added so far."""
        rms = None if self._error_square else 0.0
        spread = None
        if self._square:
            rms = (self._error_square / self._square) ** 0.5
            spread = (self._moments.square_a / self._square) ** 0.5
        return OpError(
            rms=rms, pcc=self._moments.pcc(), max_error=self._largest, not_finite=self._not_finite, spread=spread
        )


def _are_infinite(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a mask of the pairs in which both values stand for the same infinity, being so large, as beside the
    elements of a maximum. Beside them ordinary elements, and their errors, would vanish, so they are not counted."""
    return (np.minimum(a, b) >= INFINITE) | (np.maximum(a, b) <= -INFINITE)


def _elements_in(part: NDArray[np.bool_] | None, elements: Elements) -> Elements:
    """Return the mask of elements, restricted to `part` (bool[1024]) of each tile where that is not None."""
    return elements if part is None else elements & part


@dataclass(frozen=True, slots=True)
class OpFindings:
    """The findings of running an op by itself."""

    in_df: tuple[str, ...]
    local: OpError | None = None
    without: dict[Cause, float | None] = field(default_factory=dict[Cause, float | None])
    cause: str = ""
    repair: Repair | None = None
    note: str = ""
    largest: float | None = None
    beyond: int = 0


@dataclass(frozen=True, slots=True)
class OpAnalysis:
    """The analysis of one op on ideal operands."""

    op: Op
    call: DeviceCall
    ideal: Sequence[Ideal]
    expected: Tiles
    parallel: Parallel
    elements: Elements | None = None

    def parts(self) -> OpFindings:
        """Run the op as it stands, without each cause of error, and with changes, and return the findings. Where it
        cannot run by itself, these have only a note with the reason."""
        units = WatchingUnits(self.call.core)
        try:
            local = self._measure_error(self.call, units)
        except (UnsupportedError, ProgramError) as error:
            return OpFindings(self.call.dfs, note=str(error))
        without: dict[Cause, float | None] = dict.fromkeys(CAUSES)
        cause = ""
        repair = None
        if local.rms:
            causes = list(switches(self.call, units.used))
            without.update({switch.cause: self._error_without((switch,)) for switch in causes})
            cause = self._main_cause(local.rms, causes, without)
            repair = None
            if local.rms >= WORTH_REPAIRING:
                repair = self._find_repair(local.rms, units.used)
        limit = largest(self.call)
        if self.elements is None:
            counted = self.expected
        else:
            counted = self.expected[:, self.elements]
        beyond = int(np.count_nonzero(np.isfinite(counted) & (np.abs(counted) > limit)))
        return OpFindings(
            in_df=self.call.dfs,
            local=local,
            without=without,
            cause=cause,
            repair=repair,
            note="",
            largest=limit if beyond else None,
            beyond=beyond,
        )

    def _measure_error(self, call: DeviceCall, units: KernelUnits, part: NDArray[np.bool_] | None = None) -> OpError:
        """Run the op as `call` on these units and ideal operands, and return its error. Of each tile only `part`,
        bool[1024], counts where it is given. Raises UnsupportedError, ProgramError."""
        total = ErrorSum(self.op, part, self.elements)
        total.add(self.expected, compute_op(call, self.ideal, units, self.parallel))
        return total.result()

    def _rms_or_none(self, call: DeviceCall, units: KernelUnits, part: NDArray[np.bool_] | None = None) -> float | None:
        """Return the relative rms error of the op run as `call`, None where it cannot run or the ideal values are all
        zero."""
        try:
            return self._measure_error(call, units, part).rms
        except (UnsupportedError, ProgramError):
            return None

    def _error_without(self, chosen: Sequence[Switch]) -> float | None:
        """Return the relative rms error that is left with the causes of the chosen switches off, None where the op
        cannot run so."""
        part = next((switch.part for switch in chosen if switch.part is not None), None)
        return self._rms_or_none(*switch_off(self.call, chosen), part)

    def _main_cause(self, error: float, causes: Sequence[Switch], without: Mapping[Cause, float | None]) -> str:
        """Return the cause without which the least error is left. Where none makes a difference by itself, return the
        fewest that do together, joined by "+"; "" where none do, or the error is too small to search on."""
        single = [(rms, switch) for switch in causes if (rms := without[switch.cause]) is not None]
        if not single:
            return ""
        single.sort(key=lambda pair: pair[0])
        if single[0][0] <= _MATTERS * error:
            return single[0][1].cause
        if error < WORTH_REPAIRING:
            return ""
        chosen = self._fewest_causes([switch for _, switch in single], _TOGETHER * error)
        return "+".join(cause for cause in CAUSES if any(switch.cause == cause for switch in chosen))

    def _fewest_causes(self, switches_by_error: Sequence[Switch], limit: float) -> Sequence[Switch]:
        """Return the fewest switches that together leave no more than `limit` of error, empty where even all leave
        more. `switches_by_error` has those that help most first; the last are left out first."""
        chosen = list(switches_by_error)
        error = self._error_without(chosen)
        if error is None or error > limit:
            return ()
        for switch in reversed(switches_by_error):
            fewer = [candidate for candidate in chosen if candidate is not switch]
            error = self._error_without(fewer) if fewer else None
            if error is not None and error <= limit:
                chosen = fewer
        return chosen

    def _find_repair(self, error: float, used: set[str]) -> Repair | None:
        """Return one change that halves the error, the cheapest of those about as good as the best, or several that do
        so together; None where nothing does. While no change halves it, the best one is applied and the search goes on
        from there. `used`: names of lossy units that the op uses."""
        changes_so_far: list[VariantChange] = []
        call = self.call
        current_error = error
        for _ in range(_MOST_CHANGES):
            tried = self._try_changes(call, used)
            best = min((error_left for _, error_left in tried), default=current_error)
            good = [pair for pair in tried if pair[1] <= _AS_GOOD * best and pair[1] <= error / 2]
            if not good and best > _MATTERS * current_error:
                return self._combine_changes(error, [change for change, _ in tried], changes_so_far, used)
            change, current_error = next(iter(good), min(tried, key=lambda pair: pair[1]))
            changes_so_far.append(change)
            if good:
                return _repair_record(changes_so_far, current_error)
            call = change.call
        return None

    def _combine_changes(
        self, error: float, tried: Sequence[VariantChange], changes_so_far: Sequence[VariantChange], used: set[str]
    ) -> Repair | None:
        """Apply the widest value of each field at once, and return as few of these changes as halve the error; None
        where even all do not. The dearest are left out first. `tried`, `changes_so_far`: the changes that name the
        fields."""
        fields = [*dict.fromkeys(change.field for change in (*changes_so_far, *tried))]
        chosen = self._widest_changes(fields, used)
        if (current_error := self._error_after(chosen)) is None or current_error > error / 2:
            return None
        for name in reversed(fields):
            fewer = self._widest_changes([other.field for other in chosen if other.field != name], used)
            left = self._error_after(fewer)
            if left is not None and left <= min(_AS_GOOD * current_error, error / 2):
                chosen = fewer
        return _repair_record(chosen, self._error_after(chosen) or current_error)

    def _widest_changes(self, fields: Sequence[str], used: set[str]) -> list[VariantChange]:
        """Return a change for each of these fields to the widest value it can have, each made to the op after those
        before it. `used`: names of lossy units that the op uses."""
        chosen: list[VariantChange] = []
        for name in fields:
            call = chosen[-1].call if chosen else self.call
            candidates = [change for change in changes(call, used) if change.field == name]
            chosen += candidates[-1:]
        return chosen

    def _error_after(self, chosen: Sequence[VariantChange]) -> float | None:
        """Return the relative rms error after the chosen changes, of which each includes those before it; None without
        changes, or where the op cannot run so."""
        if chosen:
            return self._rms_or_none(chosen[-1].call, KernelUnits(self.call.core))
        return None

    def _try_changes(self, call: DeviceCall, used: set[str]) -> list[tuple[VariantChange, float]]:
        """Return the single changes of the op that can be run, each with the error that it leaves. `used`: names of
        lossy units that the op uses."""
        units = KernelUnits(call.core)
        candidates = ((change, self._rms_or_none(change.call, units)) for change in changes(call, used))
        return [(change, error) for change, error in candidates if error is not None]


def _repair_record(chosen: Sequence[VariantChange], error: float) -> Repair:
    """Return the chosen changes as a repair, which leaves `error`."""
    return Repair(tuple(NewValue(change.field, change.before, change.after) for change in chosen), error)
