"""The result of a run as one object, from which the printed table and the JSON file are made."""

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
    """One run of a program, without the compilation of kernels."""

    name: str
    parameters: Mapping[str, str]
    seconds: float


@dataclass(frozen=True, slots=True)
class OutputSummary:
    """One op-fed queue or ram. Range and mean are over the finite elements, None where there are none.

    `sha256` is over the elements as little-endian float32 (uint32 for RawUInt), every NaN written as 0x7fc00000.
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
    began: str = ""  # of an output that is all zero or not finite: the op or queue where that began


@dataclass(frozen=True, slots=True)
class RunReport:
    """A whole run. `arrays` holds the outputs themselves, but those that went to a sink, and is not part of the JSON
    form."""

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
        from buda_emu.app.api.shown import html_table  # what only a notebook asks for

        rows = [
            {**asdict(item), "shape": "x".join(map(str, item.shape)), "sha256": item.sha256[:12]}
            for item in self.outputs
        ]
        return html_table(repr(self)[1:-1], rows)

    def as_json(self) -> dict[str, Any]:
        """Plain data for a JSON file."""
        rest = {name: value for name in self.__slots__ if not isinstance(value := getattr(self, name), Mapping | tuple)}
        lists = {name: [asdict(item) for item in getattr(self, name)] for name in ("inputs", "programs", "outputs")}
        return {"schema_version": RESULT_VERSION, **rest, **lists}


class Summariser:
    """The figures of one output that comes in parts."""

    def __init__(self) -> None:
        self._low = np.inf
        self._high = -np.inf
        self._sum = 0.0
        self._finite = self._size = self._zeros = 0
        self._digest = hashlib.sha256()

    def add(self, part: NDArray[Any]) -> None:
        """The next elements."""
        finite = part.reshape(-1)
        if part.dtype.kind == "f" and not (whole := np.isfinite(finite)).all():
            finite = finite[whole]
        if finite.size:
            self._low = min(self._low, float(finite.min()))
            self._high = max(self._high, float(finite.max()))
            self._sum += float(finite.sum(dtype=np.float64))
        self._finite += finite.size
        self._size += part.size
        self._zeros += int(part.size - np.count_nonzero(part))
        self._digest.update(_words(part).data)

    def summary(self, queue: str, kind: str, df: str, shape: tuple[int, ...]) -> OutputSummary:
        """Of all elements that were added; `shape` is theirs."""
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
    """The figures of one output."""
    figures = Summariser()
    figures.add(array)
    return figures.summary(queue, kind, df, tuple(array.shape))


def _words(array: NDArray[Any]) -> NDArray[Any]:
    words = np.ascontiguousarray(array).astype("<u4" if array.dtype.kind == "u" else "<f4", copy=False)
    if words.dtype.kind == "f":
        missing = np.isnan(words)
        words = words.view("<u4")
        if missing.any():
            words = np.where(missing, np.uint32(0x7FC00000), words)
    return np.ascontiguousarray(words)
