"""What a run gave, as one object: the printed table and the JSON file are made from it."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.verify.inputs.input_used import InputUsed

SCHEMA_VERSION: Final = 1
"""Of the JSON form. Fields are only added within one version; a field that changes or goes raises it."""


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
    """A whole run. `arrays` holds the outputs themselves and is not part of the JSON form."""

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

    def as_json(self) -> dict[str, Any]:
        """Plain data for a JSON file."""
        rest = {name: value for name in self.__slots__ if not isinstance(value := getattr(self, name), Mapping | tuple)}
        lists = {name: [asdict(item) for item in getattr(self, name)] for name in ("inputs", "programs", "outputs")}
        return {"schema_version": SCHEMA_VERSION, **rest, **lists}


def summarise(queue: str, kind: str, df: str, array: NDArray[Any]) -> OutputSummary:
    """The figures of one output."""
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array.reshape(-1)
    low = high = mean = None
    if finite.size:
        low, high, mean = float(finite.min()), float(finite.max()), float(finite.mean(dtype=np.float64))
    return OutputSummary(
        queue, kind, df, tuple(array.shape), low, high, mean, int(array.size - finite.size),
        int(array.size - np.count_nonzero(array)), digest(array),
    )  # fmt: skip


def digest(array: NDArray[Any]) -> str:
    """SHA-256 of the elements (see OutputSummary)."""
    words = np.ascontiguousarray(array).astype("<u4" if array.dtype.kind == "u" else "<f4", copy=False)
    if words.dtype.kind == "f":
        missing = np.isnan(words)
        words = words.view("<u4")
        if missing.any():
            words = np.where(missing, np.uint32(0x7FC00000), words)
    return hashlib.sha256(np.ascontiguousarray(words).data).hexdigest()
