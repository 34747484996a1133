"""The description of a test run: a netlist, and everything else that decides its verdict."""

import shlex
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any

from buda_emu.records import dataclass
from buda_emu.spec.precision import Precision
from buda_emu.verify.result import CaseResult, Status

if TYPE_CHECKING:  # who hands out cases does not compute
    from buda_emu.verify.comparison.compare import Mode
    from buda_emu.verify.inputs.reference import Files


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything beside the netlist that decides a verdict."""

    precision: Precision = "device"  # of the run under test
    expected: Precision = "ideal"  # of the run that it is compared with
    compare: "Mode" = "vendor"
    seed: int = 0
    arch: str | None = None
    programs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    threads: int = 1  # never changes results
    memory_limit: int | None = None  # bytes of one case; None: a share of what its machine has available
    cache: bool = True  # take netlists from the user's caches; never changes results
    per_op: bool = False
    detail: bool = False  # what pictures need
    perf: bool = False  # also hold `performance-check` against modelled cycles
    threshold: float = 0.99  # PCC below which an op counts as the first to go wrong
    allow_pickle: bool = False  # load pickled tensors of images
    coverage: bool = False  # note what the netlist exercises

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def arguments(self) -> list[str]:
        """Of the command line, those that are not the default."""
        found: list[str] = []
        for option in ("precision", "expected", "compare", "seed", "arch", "threshold"):
            value = getattr(self, option)
            if value != getattr(_DEFAULTS, option):
                found += [f"--{option}", str(value)]
        for name in self.programs:
            found += ["--program", name]
        if self.perf:
            found.append("--perf")
        if self.allow_pickle:
            found.append("--allow-pickle")
        for name, value in self.parameters:
            found += ["--param", f"{name.removeprefix('$')}={value}"]
        return found


_DEFAULTS = Settings()


@dataclass(frozen=True, slots=True)
class Case:
    """One netlist to test, by path or by content. `defaults`: name and content of a defaults file (NETLIST 5)."""

    name: str
    path: str
    text: bytes | None = None
    reference: "Files | None" = None
    defaults: tuple[str, bytes] | None = None
    settings: Settings = field(default_factory=Settings)

    @property
    def command(self) -> str:
        """How to run this one again."""
        words = ["buda-emu", "test", self.name, *self.settings.arguments()]
        if self.reference is not None:
            words += ["--reference", self.reference.where]
        if self.defaults is not None:
            words += ["--defaults", self.defaults[0]]
        return shlex.join(words)


def unfinished(case: Case, status: Status, text: str, seconds: float) -> CaseResult:
    """The result of a case whose process gave none."""
    settings = case.settings
    return CaseResult(
        case.name,
        status,
        text,
        settings.arch or "",
        precision=settings.precision,
        compare=settings.compare,
        expected=case.reference.where if case.reference is not None else settings.expected,
        seed=settings.seed,
        seconds=seconds,
        command=case.command,
    )
