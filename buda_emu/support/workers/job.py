"""Jobs for workers, and the choice of workers."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Literal, cast

from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass

Work = Callable[[Any], Any]
"""One item in, its result out."""
JOBS: Final = frozenset(
    (
        "buda_emu.performance.advice.evaluate:modeller",
        "buda_emu.app.api.sweep:modeller",
        "buda_emu.compiler.search.speculative:worker",
        "buda_emu.foreign.gemini.sweep:timer",
        "buda_emu.testing.injection.campaign:injector",
        "buda_emu.emulator.distributed.part:holder",
        "buda_emu.emulator.op_errors.numerics:analyse_op_job",
        "buda_emu.testing.verify.runs.run_case:runner",
    )
)
"""All that a worker can be asked to do: who sends a job, and the process that does it, look here."""


@dataclass(frozen=True, slots=True)
class Job:
    """Work by name, so that no code travels: `make`, "module:function" and one of `JOBS`, is called once in each worker
    process with `about`, and gives the function that takes the items. `files`: paths that the work reads; on a cluster
    they travel by content (`files.py`). `about`, items and results are what `wire.py` lets pass."""

    make: str
    about: Any = None
    files: tuple[str, ...] = ()

    def check(self) -> None:
        """Raises HostError for a job that is not one of `JOBS`."""
        if self.make not in JOBS:
            raise HostError(f"{self.make} is no work of buda-emu")

    def load(self) -> Callable[[Any], Work]:
        """What `make` names. Raises HostError as `check`; nothing is imported before."""
        self.check()
        module, _, name = self.make.partition(":")
        return getattr(import_module(module), name)

    def work(self) -> Work:
        """The function that takes the items. Raises what `make` does, and as `load`."""
        return self.load()(self.about)


@dataclass(frozen=True, slots=True)
class Shared:
    """In an item, a tuple, in place of a value that many items have: it goes to each worker once
    (`JobPool.share`)."""

    number: int


def insert_shared_values(item: Any, values: Mapping[int, Any]) -> Any:
    """An item with the shared values in place of what stands for them."""
    if not isinstance(item, tuple):
        return item
    parts = cast("tuple[Any, ...]", item)
    return tuple(values[part.number] if isinstance(part, Shared) else part for part in parts)


def shares(item: Any) -> list[int]:
    """The numbers of the shared values in an item."""
    if not isinstance(item, tuple):
        return []
    parts = cast("tuple[Any, ...]", item)
    return [part.number for part in parts if isinstance(part, Shared)]


@dataclass(frozen=True, slots=True)
class Workers:
    """`count` processes of this machine, or those of the Dask cluster whose scheduler is at `dask`
    (tcp://host:8786, tls://host:8786)."""

    count: int = 1
    dask: str | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise HostError(f"workers={self.count}: at least 1")

    @property
    def alone(self) -> bool:
        """Nothing to share work with."""
        return self.count == 1 and self.dask is None

    @property
    def title(self) -> str:
        """As printed."""
        return f"on {self.dask}" if self.dask is not None else plural(self.count, "worker")


@dataclass(frozen=True, slots=True)
class Lost:
    """An item whose worker gave no result: it died, or took too long."""

    kind: Literal["crashed", "timeout"]
    text: str
    seconds: float
