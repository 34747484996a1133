"""Compares a compiled model with the model that it was made from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.graph.graph import Array, Graph
from buda_emu.compiler.lower.layout import TILE, Layout
from buda_emu.compiler.place.placement import Placement
from buda_emu.errors import HostError
from buda_emu.netlist.model import Op
from buda_emu.report.terminal.text import correlation, number, table
from buda_emu.runtime.machine.listeners import Listener
from buda_emu.spec.infinity import INFINITE
from buda_emu.spec.precision import Precision
from buda_emu.verify.comparison.moments import Moments
from buda_emu.version import RESULT_VERSION


@dataclass(frozen=True, slots=True)
class Difference:
    """One value of the model, as it is and as it should be. `pcc`: Pearson's correlation, None where one side is
    constant and the other is not; `max_error`: the largest absolute difference; `error`: the root of the mean square
    of the difference, relative to that of the expected values. `not_finite` elements are left out."""

    name: str
    shape: tuple[int, ...]
    pcc: float | None
    max_error: float
    error: float | None
    not_finite: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """`outputs` in the model's order; `layers` in the order in which they run: those whose value one op gives as the
    model has it, without those that only move values."""

    model: str
    tool: str
    precision: str
    outputs: tuple[Difference, ...]
    layers: tuple[Difference, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"schema_version": RESULT_VERSION, **asdict(self)}

    def __str__(self) -> str:
        """Two tables."""
        parts = [f"{self.model}, precision {self.precision}, against {self.tool}"]
        for heading, rows in (("output", self.outputs), ("layer", self.layers)):
            if rows:
                headers = (heading, "shape", "PCC", "error", "max error")
                parts.append(table(headers, (_row(item) for item in rows), right=(2, 3, 4)))
        return "\n\n".join(parts)


def _row(item: Difference) -> tuple[str, ...]:
    error = "-" if item.error is None else f"{item.error:.1e}"
    return item.name, "x".join(map(str, item.shape)), correlation(item.pcc), error, number(item.max_error, 3)


Run = Callable[[Listener], tuple[Array, ...]]


class Compared(Protocol):
    """What is compared: a compiled model."""

    graph: Graph
    placement: Placement
    origin: Any


def compare(
    model: Compared, labels: Sequence[str], inputs: Sequence[Array], precision: Precision, run: Run, *, layers: bool
) -> Comparison:
    """Run both; `labels` of the outputs; `run` gives them, a listener being told what ops give. Raises HostError
    where the source cannot be run, and what a run raises."""
    origin = model.origin
    if origin is None:
        raise HostError("compare: the model was not imported: there is nothing to compare it with")
    places = model.placement.tiles.places if layers else {}
    first: dict[str, str] = {}  # reshapes and transpositions give the same values again
    for name, (op, _) in places.items():
        first.setdefault(op, name)
    wanted = {first[op]: places[first[op]] for op in first if op in model.placement.ops}
    expected, inner = origin.values(inputs, wanted)
    seen = _Seen({name: wanted[name] for name in inner}, inner)
    found = run(seen)
    outputs = [difference(label, want, got) for label, want, got in zip(labels, expected, found, strict=True)]
    return Comparison(model.graph.name, origin.tool, precision, tuple(outputs), tuple(seen.found))


class _Seen(Listener):
    """Compares values of the model when the op that gives them has run."""

    def __init__(self, places: Mapping[str, tuple[str, Layout]], expected: Mapping[str, Array]) -> None:
        self._by_op = {op: (name, layout) for name, (op, layout) in places.items()}
        self._expected = expected
        self.found: list[Difference] = []

    def op_value(self, op: Op, tiles: NDArray[np.float32], inputs: int) -> None:  # noqa: ARG002 - always 1 here
        if op.name in self._by_op:
            name, layout = self._by_op[op.name]
            want = self._expected[name]
            if want.size == prod(layout.shape):
                self.found.append(difference(name, want, value_of(tiles[0], layout).reshape(want.shape)))


def value_of(tiles: NDArray[np.float32], layout: Layout) -> NDArray[np.float32]:
    """The elements of a value, flat in the model's order, from the tiles [tiles, 1024] of the op that gives it."""
    t, rows, columns = layout.extent
    whole = tiles.reshape(t, rows // TILE, columns // TILE, TILE, TILE).transpose(0, 1, 3, 2, 4).reshape(-1)
    return whole[layout.place("zrc").ravel()]


def difference(name: str, expected: Array, observed: Array) -> Difference:
    """Figures over all elements that are finite on both sides."""
    a, b = np.asarray(expected, np.float64).ravel(), np.asarray(observed, np.float64).ravel()
    finite = np.isfinite(a) & np.isfinite(b) & (np.abs(a) < INFINITE) & (np.abs(b) < INFINITE)
    wrong = int(np.count_nonzero(~finite & ~(_infinite(a) & _infinite(b) & (np.sign(a) == np.sign(b)))))
    a, b = a[finite], b[finite]
    moments = Moments()
    moments.add(a, b)
    away = b - a
    size = float(np.sqrt(np.mean(a * a))) if a.size else 0.0
    rms = float(np.sqrt(np.mean(away * away))) if a.size else 0.0
    error = rms / size if size else 0.0 if rms == 0 else None
    largest = float(np.abs(away).max()) if a.size else 0.0
    return Difference(name, tuple(np.shape(expected)), moments.pcc(), largest, error, wrong)


def _infinite(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.abs(values) >= INFINITE
