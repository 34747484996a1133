"""Two runs of a netlist side by side, compared at every tensor: they show which op goes wrong first, and why the
chip's result differs from the ideal one (docs/run/numerics.md)."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import ulp
from buda_emu.arithmetic.tensor.layout import tilize
from buda_emu.emulator.op_errors.numerics import Key, Rendezvous, Side, Tiles, run_both
from buda_emu.emulator.op_errors.op_apart import Moments
from buda_emu.emulator.options import Machine
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.spec.formats import is_raw
from buda_emu.spec.precision import Precision
from buda_emu.support.records import dataclass
from buda_emu.testing.verify.result import FirstBad, OpResult, ValueStats, refusals

Array = NDArray[Any]
_BLOCK: Final = 512  # tiles that are compared together


@dataclass(frozen=True, slots=True)
class PerOp:
    """Results of two runs side by side: figures of every op, the first one past the threshold, None if none is, and the
    outputs of both runs as the host reads them."""

    ops: tuple[OpResult, ...]
    first_bad: FirstBad | None
    observed: Mapping[str, Array]
    expected: Mapping[str, Array]


def run_pair(
    netlist: Netlist,
    fill: Callable[[Emulator], None],
    programs: Sequence[tuple[str, Mapping[str, str]]],
    *,
    precision: Precision,
    expected: Precision = "ideal",
    reference: Callable[[str], Array | None],
    threshold: float,
    note: Callable[[Emulator], None] = lambda _: None,
    **machine: Unpack[Machine],
) -> PerOp:
    """Run the programs in `precision` and in `expected` side by side on the inputs that `fill` pushes.

    `reference` returns an op's results from outside, [inputs, t, rows, cols], or None: they then replace the expected
    ones. `threshold` is the PCC below which an op is bad, `machine` is how each run computes. `note` receives the
    machine that runs in `precision`. Raises the errors of a run.
    """
    tally = _Tallies(netlist, reference, expected)
    meeting = Rendezvous(tally.look)
    outputs: list[Mapping[str, Array]] = [{}, {}]

    def side(number: int, kind: Precision) -> Callable[[], None]:
        """Return the work of one side, number 0 or 1, in a precision."""

        def work() -> None:
            """Run the programs on a machine whose values meet those of the other side, and note its outputs."""
            watch = (_SideWithQueues(meeting, number),)
            with (
                refusals(kind),
                Emulator(netlist, kind, **machine, listeners=watch, inputs_at_once=1) as emulator,
            ):
                if number == 1:
                    note(emulator)
                fill(emulator)
                for name, parameters in programs:
                    emulator.run(name, parameters)
                outputs[number] = emulator.outputs()

        return work

    run_both(side(0, expected), side(1, precision), meeting)
    ops = tally.results()
    return PerOp(ops, tally.first_bad(ops, threshold), observed=outputs[1], expected=outputs[0])


class _SideWithQueues(Side):
    """A side of the rendezvous that brings entries of queues, too, so that figures of an op's operands exist."""

    def queue_value(self, queue: str, tiles: Tiles, inputs: int) -> None:  # noqa: ARG002 - always 1 here
        """Bring the entry of a queue that an epoch reads to the rendezvous, and wait for the other side."""
        self._meeting.meet(self._side, ("queue", queue), tiles)


class _Tally:
    """Figures of one op's results or one queue's entries, added up input by input."""

    def __init__(self, format_name: str, tile_dim: tuple[int, int], expected_from: str) -> None:
        self.format = format_name
        self.expected_from = expected_from
        self.inputs = 0
        self.size = 0
        self.moments = Moments()
        self.largest_expected = 0.0
        self.error = _LargestAndMean()
        self.ulps = _LargestAndMean()
        self.not_finite = [0, 0]
        self.zeros = 0
        self.range: tuple[float, float] | None = None
        self._tile_dim = tile_dim

    def add(self, expected: Tiles, observed: Tiles) -> None:
        """Add the tiles of one more input to the figures, float32[..., 1024] of both sides."""
        self.inputs += 1
        a = expected.reshape(-1, 32, 32)
        b = observed.reshape(-1, 32, 32)
        for first in range(0, len(a), _BLOCK):
            self._add_block(a[first : first + _BLOCK], b[first : first + _BLOCK])

    def _add_block(self, expected: Tiles, observed: Tiles) -> None:
        """Add a block of tiles [tiles, 32, 32] of both sides to the figures."""
        height, width = self._tile_dim
        larger = np.where(np.abs(observed) > np.abs(expected), observed, expected)
        unit = ulp(larger, self.format)[:, :height, :width]
        a = _as_float64(expected[:, :height, :width], self.format)
        b = _as_float64(observed[:, :height, :width], self.format)
        finite_a = np.isfinite(a)
        finite_b = np.isfinite(b)
        self.size += a.size
        self.not_finite[0] += a.size - int(np.count_nonzero(finite_a))
        self.not_finite[1] += a.size - int(np.count_nonzero(finite_b))
        self.zeros += b.size - int(np.count_nonzero(b))
        finite = finite_a & finite_b
        finite_observed = b
        if not finite.all():
            finite_observed = b[finite_b]
            a = a[finite]
            b = b[finite]
            unit = unit[finite]
        if finite_observed.size:
            self._extend_range(float(finite_observed.min()), float(finite_observed.max()))
        if a.size:
            self.moments.add(a, b)
            self.largest_expected = max(self.largest_expected, float(np.abs(a).max()))
            error = np.abs(a - b)
            self.error.add(error)
            self.ulps.add(error / unit)

    def _extend_range(self, low: float, high: float) -> None:
        """Widen `range`, the finite observed values from smallest to largest, so that it contains `low` and `high`."""
        if self.range is not None:
            low = min(low, self.range[0])
            high = max(high, self.range[1])
        self.range = (low, high)

    def stats(self, name: str, kind: str, shape: tuple[int, ...]) -> ValueStats:
        """Return the figures of the observed side as a record, with the given name, kind and shape of the tensor."""
        low, high = self.range or (None, None)
        count = self.moments.count
        return ValueStats(
            name=name,
            kind=kind,
            format=self.format,
            shape=shape,
            min=low,
            max=high,
            mean=self.moments.mean_b if count else None,
            std=(self.moments.square_b / count) ** 0.5 if count else None,
            zeros=self.share(self.zeros),
            not_finite=self.share(self.not_finite[1]),
            pcc=self.moments.pcc(),
        )

    def share(self, number: int) -> float:
        """Return `number` elements as a share of all; 0 where results from outside had no entry to compare with."""
        if self.size:
            return number / self.size
        return 0.0


class _LargestAndMean:
    """The largest and the mean of numbers that are added array by array; both None before the first."""

    def __init__(self) -> None:
        self.max: float | None = None
        self._sum = 0.0
        self._count = 0

    def add(self, values: NDArray[np.float64]) -> None:
        """Count an array of numbers, which must not be empty."""
        largest = float(values.max())
        if self.max is None:
            self.max = largest
        else:
            self.max = max(self.max, largest)
        self._sum += float(values.sum())
        self._count += values.size

    @property
    def mean(self) -> float | None:
        """The mean of all numbers; None where there are none."""
        if not self._count:
            return None
        return self._sum / self._count


def _as_float64(tiles: Tiles, format_name: str) -> NDArray[np.float64]:
    """Return tiles as float64: their numbers, or for raw formats their words as integers."""
    if is_raw(format_name):
        return np.ascontiguousarray(tiles).view(np.uint32).astype(np.float64)
    return tiles.astype(np.float64)


class _Tallies:
    """Figures of all ops, and of all queues that the graphs read, over a pair of runs."""

    def __init__(self, netlist: Netlist, reference: Callable[[str], Array | None], expected: Precision) -> None:
        self._netlist = netlist
        self._reference = reference
        self._expected = expected
        self._outside: dict[str, Array | None] = {}
        self._tallies: dict[Key, _Tally] = {}

    def look(self, key: Key, expected: Tiles, observed: Tiles) -> None:
        """Add a tensor of both runs to the figures of its op or queue; `Rendezvous` calls it when both sides have it.
        `key` is ("op" or "queue", name). Where an op has results from outside, these stand for `expected`, and inputs
        beyond them are left out."""
        tally = self._tallies.get(key)
        outside = self._expected_from_outside(key)
        if tally is None:
            record: Op | Queue = self._netlist.ops[key[1]] if key[0] == "op" else self._netlist.queues[key[1]]
            if outside is not None:
                source = "reference"
            else:
                source = self._expected
            if isinstance(record, Op):
                format_name = record.out_df
            else:
                format_name = record.df
            tally = self._tallies[key] = _Tally(format_name, record.blocking.tile_dim, source)
        if outside is not None:
            if tally.inputs >= len(outside):
                return  # further inputs have nothing to compare with
            entry = np.ascontiguousarray(outside[tally.inputs : tally.inputs + 1]).view(np.float32)
            expected = tilize(entry, self._netlist.ops[key[1]].blocking.tile_dim)
        tally.add(expected, observed)

    def _expected_from_outside(self, key: Key) -> Array | None:
        """Return an op's results from outside, loaded at the first call; None for a queue, and where there are none."""
        if key[0] != "op":
            return None
        if key[1] not in self._outside:
            self._outside[key[1]] = self._reference(key[1])
        return self._outside[key[1]]

    def results(self) -> tuple[OpResult, ...]:
        """Return the figures of every op that ran, in the order of the first results."""
        graphs: dict[str, str] = {}
        for graph in self._netlist.graphs.values():
            graphs |= dict.fromkeys((op.name for op in graph.ops), graph.name)
        tallies = [(name, tally) for (kind, name), tally in self._tallies.items() if kind == "op"]
        return tuple(self._op_result(index, name, graphs[name], tally) for index, (name, tally) in enumerate(tallies))

    def _op_result(self, index: int, name: str, graph: str, tally: _Tally) -> OpResult:
        """Make the record of one op's figures; `index` is its place in the order of execution."""
        op = self._netlist.ops[name]
        return OpResult(
            index=index,
            name=name,
            type=op.type,
            graph=graph,
            format=tally.format,
            shape=op.blocking.element_shape,
            inputs=tally.inputs,
            operands=tuple(op.inputs),
            expected_from=tally.expected_from,
            pcc=tally.moments.pcc(),
            max_error=tally.error.max,
            mean_error=tally.error.mean,
            max_ulp=tally.ulps.max,
            mean_ulp=tally.ulps.mean,
            not_finite_expected=tally.share(tally.not_finite[0]),
            not_finite_observed=tally.share(tally.not_finite[1]),
        )

    def first_bad(self, ops: Sequence[OpResult], threshold: float) -> FirstBad | None:
        """Return the first of `ops` that is past the threshold, with the reason and figures of its operands; None if
        none is."""
        for op in ops:
            reason = self._reason_past_threshold(op, threshold)
            if reason:
                operands = (self._operand_stats(name) for name in op.operands)
                return FirstBad(
                    op=op.name,
                    index=op.index,
                    threshold=threshold,
                    reason=reason,
                    inputs=tuple(stats for stats in operands if stats),
                )
        return None

    def _reason_past_threshold(self, op: OpResult, threshold: float) -> str:
        """Return why an op is past the threshold, "" if it is not: more values that are not finite than expected, a PCC
        that is too low, or a constant that is off."""
        if op.not_finite_observed > op.not_finite_expected:
            return (
                f"{100 * op.not_finite_observed:.4g} % of its values are not finite, "
                f"{100 * op.not_finite_expected:.4g} % expected"
            )
        if op.pcc is not None:
            if op.pcc < threshold:
                return f"PCC {op.pcc:.6g} is below {threshold:.6g}"
            return ""
        largest = self._tallies["op", op.name].largest_expected
        if op.max_error is not None and op.max_error > (1 - threshold) * largest:
            return f"a constant is off by {op.max_error:.4g}, the largest expected magnitude is {largest:.4g}"
        return ""

    def _operand_stats(self, name: str) -> ValueStats | None:
        """Return the figures of an op's operand: of the queue that was read, or of the op that fills it. None where
        neither was compared."""
        queue = self._netlist.queues.get(name)
        if queue is not None and ("queue", name) in self._tallies:
            return self._tallies["queue", name].stats(name, queue.type, queue.blocking.element_shape)
        if queue is not None:
            feeder = queue.input
        else:
            feeder = name
        tally = self._tallies.get(("op", feeder))
        if tally is None or not prod(self._netlist.ops[feeder].blocking.element_shape):
            return None
        return tally.stats(name, "op", self._netlist.ops[feeder].blocking.element_shape)
