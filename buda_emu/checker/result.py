"""Options and results of a check: the same for every kind of document."""

from typing import Generic, TypeVar

from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.records import dataclass

D = TypeVar("D", covariant=True)


@dataclass(frozen=True, slots=True)
class Options:
    """What a check may be asked for; each kind of document looks at what means something to it.

    `arch`: one of the kind's architectures; `cache`: take what a netlist was read as from the user's caches, and keep
    it there; `cluster`: path of the description of a netlist's chips, for `strict` alone; `frontend`: path of the
    network that a schedule computes; `runtime`: the driver's version that judges a package.
    """

    strict: bool = False
    arch: str | None = None
    cache: bool = True
    frontend: str | None = None
    runtime: int | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class CheckResult(Generic[D]):
    """What was found, sorted by place. `document`: what was read, None where it could not be read, and for netlists
    where a rule refuses it."""

    document: D | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        """Whether the document is accepted: no finding is an error."""
        return not any(item.severity == "error" for item in self.diagnostics)

    @property
    def verdict(self) -> str:
        """In the words of what takes such documents, a driver's for instance; "" where accepted or not says all."""
        return ""
