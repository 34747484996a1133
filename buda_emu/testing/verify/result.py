"""The results of testing a netlist: the objects that every report is made from. Plain data, cheap to send between
processes.

Elements and places: an output is [entries, t, rows, cols]; a tile is one `tile_dim` block of it. "Expected" is a
run in another precision or a tensor from outside, "observed" the run under test. Errors are observed - expected over
the elements where both are finite, None where there are none.
"""

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from buda_emu.emulator.inputs.input_used import InputUsed
from buda_emu.spec.precision import Precision
from buda_emu.spec.test_config import Comparison
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import StochasticRoundingWarning, UnsupportedError
from buda_emu.support.records import dataclass
from buda_emu.support.warned import collected_warnings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Status = Literal["passed", "failed", "rejected", "unsupported", "stopped", "timeout", "crashed", "error", "skipped"]
STATUSES: Final[Mapping[Status, str]] = {
    "passed": "every compared output holds",
    "failed": "an output does not hold",
    "rejected": "the netlist, its test-config or the given tensors are wrong (exit code 2)",
    "unsupported": "uses something that is not emulated (exit code 3)",
    "stopped": "the emulated program failed: deadlock, empty queue, ... (exit code 4)",
    "timeout": "took longer than allowed",
    "crashed": "its worker process died",
    "error": "a bug of buda-emu (exit code 101)",
    "skipped": "not for the asked architecture or program, or nothing to compare",
}


INLINED: Final = MappingProxyType({"inlined": True})
"""Metadata of a field whose value is a record that JSON shows with the fields around it, not as an object inside."""


@dataclass(frozen=True, slots=True)
class TilePlace:
    """The position of a tile in an output: the entry, and t, row and column of tiles."""

    entry: int
    t: int
    row: int
    col: int

    def __str__(self) -> str:
        return f"entry {self.entry}, t {self.t}, tile [{self.row}, {self.col}]"


@dataclass(frozen=True, slots=True)
class OutputDetail:
    """The data of the pictures of one output.

    `tile_error` float64[R, C] is the largest absolute error of each tile position over all entries and t, NaN where
    nothing is finite; each cell covers `cell` (rows, cols) tiles where an output has more than 64 positions in a
    direction. `histogram` has (lower bound, count) of absolute errors, in decades; lower bound 0 counts exact
    equality.
    """

    tile_error: "NDArray[np.float64]"
    cell: tuple[int, int]
    histogram: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFigures:
    """The figures of one compared output. A tile is bad when it does not hold by itself."""

    pcc: float | None  # over the whole output; None where it is not defined
    match: float  # share of elements within atol + rtol
    max_error: float | None
    mean_error: float | None
    max_error_at: tuple[int, ...] | None
    not_finite_expected: int
    not_finite_observed: int
    tiles: int
    bad_tiles: int
    first_bad_tile: TilePlace | None
    all_zero: bool = False  # on both sides
    detail: OutputDetail | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputResult:
    """One compared output. `reason` is "" when it passed, else one line that names the failed check, the place and the
    amount."""

    queue: str
    kind: str  # "queue" or "ram"
    format: str
    shape: tuple[int, ...]
    tile_dim: tuple[int, int]
    expected_from: str  # the precision of the expected run, or the files
    comparison: Comparison
    passed: bool
    reason: str
    figures: OutputFigures = field(metadata=INLINED)
    model_shape: tuple[int, ...] = ()
    """The shape of the model's own tensor, of a compiled image, with the entries in front if there are several."""
    uncompared_entries: int = 0  # of the side that holds more

    def __repr__(self) -> str:
        verdict = self.reason
        if self.passed:
            verdict = "passed"
        return f"<OutputResult of {self.kind} {self.queue}: {verdict}>"

    @property
    def shown_shape(self) -> tuple[int, ...]:
        """The shape to show to people: that of the model's own tensor, or else of the queue's entries."""
        return self.model_shape or self.shape


@dataclass(frozen=True, slots=True)
class ValueStats:
    """The figures of a tensor in the observed run, and its distance from the expected one."""

    name: str
    kind: str  # "queue", "ram" or "op"
    format: str
    shape: tuple[int, ...]  # [t, rows, cols] in elements
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    zeros: float  # share of elements
    not_finite: float  # share of elements
    pcc: float | None


@dataclass(frozen=True, slots=True)
class OpResult:
    """The results of one op in the observed run against the expected ones, over all inputs of all epochs that ran it.

    `max_ulp` and `mean_ulp` are distances in units of the last place of `format` at the value of larger magnitude (1
    for integers).
    """

    index: int  # in execution order, from 0
    name: str
    type: str
    graph: str
    format: str
    shape: tuple[int, ...]  # [t, rows, cols] in elements
    inputs: int  # how many inputs went into the figures
    operands: tuple[str, ...]
    expected_from: str
    pcc: float | None
    max_error: float | None
    mean_error: float | None
    max_ulp: float | None
    mean_ulp: float | None
    not_finite_expected: float  # share of elements
    not_finite_observed: float


@dataclass(frozen=True, slots=True)
class FirstBad:
    """The first op in execution order past the threshold, the reason, and the figures of its inputs."""

    op: str
    index: int
    threshold: float
    reason: str
    inputs: tuple[ValueStats, ...]


@dataclass(frozen=True, slots=True)
class PerformanceResult:
    """One figure of `performance-check` against the modelled one (`buda-emu perf`)."""

    config: str
    graph: str
    target: str
    metric: str
    expected: str
    modelled: float | None
    passed: bool


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of testing one netlist. `message` explains every status but passed and failed, and may have several
    lines; "" for those two."""

    netlist: str  # as given on the command line: can be pasted back
    status: Status
    message: str = ""
    arch: str = ""
    precision: str = ""  # of the observed run
    expected: str = ""  # precision of the expected run, or the reference directory
    compare: str = ""  # "vendor" or "strict"
    seed: int = 0
    seconds: float = 0.0
    programs: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    inputs: tuple[InputUsed, ...] = ()
    outputs: tuple[OutputResult, ...] = ()
    not_compared: Mapping[str, str] = field(default_factory=dict[str, str])  # output -> why
    ops: tuple[OpResult, ...] = ()
    first_bad: FirstBad | None = None
    performance: tuple[PerformanceResult, ...] = ()
    warnings: tuple[str, ...] = ()  # differences of the observed run from a run on the chip
    doubts: tuple[str, ...] = ()  # why the verdict says less than it seems
    stopped: Mapping[str, Any] | None = None  # where and why a program stopped (docs/run/stopped-programs.md)
    exercised: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The exercised features by list of docs/stress/coverage.md, where that was asked for."""
    command: str = ""  # how to run this one again
    from_cache: bool = False  # nothing changed since it was tested; `seconds` are of that time

    def __repr__(self) -> str:
        reason = self.message.partition("\n")[0] or plural(len(self.outputs), "output")
        return f"<CaseResult of {self.netlist}: {self.status}, {reason}>"

    @property
    def failed_outputs(self) -> tuple[OutputResult, ...]:
        """The outputs that do not hold."""
        return tuple(output for output in self.outputs if not output.passed)


@dataclass(frozen=True, slots=True)
class TestRun:
    """All results of one invocation, in the order of collection."""

    __test__ = False  # not a class of tests

    cases: tuple[CaseResult, ...]
    version: str
    seconds: float
    settings: Mapping[str, Any]  # the settings of the invocation, JSON-ready
    not_run: int = 0  # netlists without a result, because the run was ended or --maxfail was reached

    def __repr__(self) -> str:
        return f"<TestRun of {plural(len(self.cases), 'netlist')}, {self.seconds:.1f} s>"


@contextmanager
def refusals(precision: Precision) -> Generator[None, None, None]:
    """Within the block, complete an UnsupportedError of a run in precision "device" with a line of advice: where the
    checker finds what the chip refuses, too, else another precision. Other errors and precisions pass unchanged."""
    try:
        yield
    except UnsupportedError as error:
        if precision != "device":
            raise
        if error.rule:
            hint = f"the chip refuses it, too: `buda-emu check --strict` shows where ({error.rule})"
        else:
            hint = "precision device does not run it; --precision format tests what the reference computes instead"
        raise UnsupportedError(f"{error}\n{hint}", error.what, error.rule) from error


def rounding_warnings() -> AbstractContextManager[list[str]]:
    """Collect StochasticRoundingWarnings that are raised within the block: the list that it gives is filled at its end,
    each text once. Other warnings are passed on."""
    return collected_warnings(StochasticRoundingWarning)
