"""The report of a run: the object from which the printed table and the JSON file are made."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.inputs.input_used import InputUsed
from buda_emu.support.checker.text import plural
from buda_emu.support.records import dataclass
from buda_emu.support.version import RESULT_VERSION


@dataclass(frozen=True, slots=True)
class ProgramSummary:
    """A program of a run, its parameters, and the seconds that it took without the compilation of kernels."""

    name: str
    parameters: Mapping[str, str]
    seconds: float


@dataclass(frozen=True, slots=True)
class OutputSummary:
    """The figures of an output, which is an op-fed queue or ram. Range and mean are over the finite elements, None
    where there are none.

    `sha256` is over the elements as little-endian float32 (uint32 for RawUInt), every NaN written as 0x7fc00000. For an
    output that is all zero or not finite, `began` is the op or queue where that began.
    """

    queue: str
    type: str
    format: str
    shape: tuple[int, ...]
    min: float | None
    max: float | None
    mean: float | None
    not_finite: int
    zeros: int
    sha256: str
    began: str = ""


@dataclass(frozen=True, slots=True)
class RunReport:
    """The settings and results of a run. `arrays` holds the outputs that no sink took, [entries, t, rows, cols] each;
    it is not part of the JSON form."""

    netlist: str
    arch: str
    precision: str
    readout: str
    threads: int
    seed: int
    version: str
    load_seconds: float
    push_seconds: float
    inputs: tuple[InputUsed, ...]
    programs: tuple[ProgramSummary, ...]
    outputs: tuple[OutputSummary, ...]
    arrays: Mapping[str, NDArray[Any]]

    def __repr__(self) -> str:
        outputs = plural(len(self.outputs), "output")
        return f"<Run of {self.netlist} for {self.arch}, precision {self.precision}: {outputs}>"

    def _repr_html_(self) -> str:
        """Return the table of outputs that a notebook shows."""
        from buda_emu.app.api.shown import html_table  # only a notebook needs it

        rows = [
            {**asdict(output), "shape": "x".join(map(str, output.shape)), "sha256": output.sha256[:12]}
            for output in self.outputs
        ]
        return html_table(repr(self)[1:-1], rows)

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data for a JSON file, with `schema_version`."""
        content: dict[str, Any] = {"schema_version": RESULT_VERSION}
        for name in self.__slots__:
            value = getattr(self, name)
            if not isinstance(value, Mapping | tuple):
                content[name] = value
        for name in ("inputs", "programs", "outputs"):
            content[name] = [asdict(record) for record in getattr(self, name)]
        return content


class Summariser:
    """A collector of the figures of an output that comes in parts."""

    def __init__(self) -> None:
        self._low = np.inf
        self._high = -np.inf
        self._sum = 0.0
        self._finite = self._size = self._zeros = 0
        self._digest = hashlib.sha256()

    def add(self, part: NDArray[Any]) -> None:
        """Add the next elements of the output, in their order, to the figures and to the digest."""
        finite = part.reshape(-1)
        if part.dtype.kind == "f":
            is_finite = np.isfinite(finite)
            if not is_finite.all():
                finite = finite[is_finite]
        if finite.size:
            self._low = min(self._low, float(finite.min()))
            self._high = max(self._high, float(finite.max()))
            self._sum += float(finite.sum(dtype=np.float64))
        self._finite += finite.size
        self._size += part.size
        self._zeros += int(part.size - np.count_nonzero(part))
        self._digest.update(_words_to_digest(part).data)

    def summary(self, queue: str, kind: str, df: str, shape: tuple[int, ...]) -> OutputSummary:
        """Return the figures of all elements that were added; `shape` is the shape of the whole output."""
        low = high = mean = None
        if self._finite:
            low = self._low
            high = self._high
            mean = self._sum / self._finite
        return OutputSummary(
            queue=queue,
            type=kind,
            format=df,
            shape=shape,
            min=low,
            max=high,
            mean=mean,
            not_finite=self._size - self._finite,
            zeros=self._zeros,
            sha256=self._digest.hexdigest(),
        )


def summarise(queue: str, kind: str, df: str, array: NDArray[Any]) -> OutputSummary:
    """Return the figures of an output that is one whole array. `kind` is the queue's type, `df` its format."""
    figures = Summariser()
    figures.add(array)
    return figures.summary(queue, kind, df, tuple(array.shape))


def _words_to_digest(array: NDArray[Any]) -> NDArray[Any]:
    """Return the elements as little-endian 32-bit words for SHA-256. Every NaN becomes 0x7fc00000, since its sign and
    payload may differ between hosts."""
    if array.dtype.kind == "u":
        return np.ascontiguousarray(array).astype("<u4", copy=False)
    floats = np.ascontiguousarray(array).astype("<f4", copy=False)
    words = floats.view("<u4")
    is_nan = np.isnan(floats)
    if is_nan.any():
        words = np.where(is_nan, np.uint32(0x7FC00000), words)
    return np.ascontiguousarray(words)
