"""Jobs for workers, and the choice of workers."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Literal, cast

from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.progress import do_nothing
from buda_emu.support.records import dataclass

Work = Callable[[Any], Any]
"""One item in, its result out."""
JOBS: Final = frozenset(
    (
        "buda_emu.performance.advice.evaluate:modeller",
        "buda_emu.app.api.sweep:modeller",
        "buda_emu.app.api.sweep_boards:modeller",
        "buda_emu.compiler.search.speculative:worker",
        "buda_emu.foreign.gemini.sweep:timer",
        "buda_emu.testing.injection.campaign:injector",
        "buda_emu.emulator.distributed.part:holder",
        "buda_emu.emulator.op_errors.numerics:analyse_op_job",
        "buda_emu.testing.verify.runs.run_case:runner",
    )
)
"""All functions that a job may name. Both the sender of a job and the process that runs it look here."""


@dataclass(frozen=True, slots=True)
class Job:
    """Work given by name, so that no code travels.

    `make`, "module:function" and one of `JOBS`, is called once in each worker process with `about`, and returns the
    function that takes the items. `files` are paths that the work reads; on a cluster their contents travel. `about`,
    items and results are values that `wire.py` can send. With `reports`, `make` also gets a function that sends such
    values to the caller while an item is worked on; on a cluster nothing is reported.
    """

    make: str
    about: Any = None
    files: tuple[str, ...] = ()
    reports: bool = False

    def check(self) -> None:
        """Raise HostError for a job that is not one of `JOBS`."""
        if self.make not in JOBS:
            raise HostError(f"{self.make} is no work of buda-emu")

    def load(self) -> Callable[..., Work]:
        """Import and return the function that `make` names. Raises HostError as `check` does, before any import."""
        self.check()
        module, _, name = self.make.partition(":")
        return getattr(import_module(module), name)

    def work(self, report: Callable[[Any], object] = do_nothing) -> Work:
        """Return the function that takes the items, and reports to `report`. Raises the errors of `make`, and of
        `load`."""
        make = self.load()
        if self.reports:
            return make(self.about, report)
        return make(self.about)


@dataclass(frozen=True, slots=True)
class Shared:
    """A placeholder in an item, which is a tuple, for a value that many items have; the value goes to each worker once
    (`JobPool.share`)."""

    number: int


def insert_shared_values(work_item: Any, values: Mapping[int, Any]) -> Any:
    """Return an item with the shared values in place of their placeholders."""
    if not isinstance(work_item, tuple):
        return work_item
    parts = cast("tuple[Any, ...]", work_item)
    return tuple(values[part.number] if isinstance(part, Shared) else part for part in parts)


def shares(work_item: Any) -> list[int]:
    """Return the numbers of the shared values in an item."""
    if not isinstance(work_item, tuple):
        return []
    parts = cast("tuple[Any, ...]", work_item)
    return [part.number for part in parts if isinstance(part, Shared)]


@dataclass(frozen=True, slots=True)
class Workers:
    """A choice of workers: `count` processes of this machine, or those of the Dask cluster whose scheduler is at `dask`
    (tcp://host:8786, tls://host:8786)."""

    count: int = 1
    dask: str | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise HostError(f"workers={self.count}: at least 1")

    @property
    def alone(self) -> bool:
        """True where there is one worker only, this machine's."""
        return self.count == 1 and self.dask is None

    @property
    def title(self) -> str:
        """The workers in words: `2 workers`, or `on tcp://host:8786`."""
        if self.dask is not None:
            return f"on {self.dask}"
        return plural(self.count, "worker")


def workers_of(options: Mapping[str, Any]) -> Workers:
    """Return the workers that options state, this process alone by default (`emulator.options.SharedWork`)."""
    count = options.get("workers")
    if count is None:
        count = 1
    return Workers(count, options.get("dask"))


@dataclass(frozen=True, slots=True)
class Lost:
    """An item without a result, because its worker died or took too long."""

    kind: Literal["crashed", "timeout"]
    text: str
    seconds: float
