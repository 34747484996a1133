"""Options and results of a check: the same for every kind of document; which findings are reported and which of them
are errors.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import Generic, TypeAlias, TypeVar

from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.records import dataclass

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


@dataclass(frozen=True, slots=True)
class Choice:
    """Ids of rules, or their beginnings.

    `select`: only these, all where it is empty; `ignore`: not these; `error`: these are errors. What refuses a document
    is told in any case.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    error: tuple[str, ...] = ()

    def filter_findings(self, found: Iterable[Diagnostic], refuses: Callable[[str], bool]) -> list[Diagnostic]:
        """The findings that are told. `refuses`: whether a rule's findings are errors even where nobody is strict."""
        if not (self.select or self.ignore or self.error):
            return list(found)
        return [
            replace(item, severity="error") if _begins(item.rule, self.error) else item
            for item in found
            if refuses(item.rule)
            or ((not self.select or _begins(item.rule, self.select)) and not _begins(item.rule, self.ignore))
        ]


def _begins(rule: str, beginnings: Iterable[str]) -> bool:
    return any(rule.startswith(word) for word in beginnings)


T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""What is iterated for its steps; its result is what it returns."""


def run_steps(steps: Steps[T]) -> T:
    """The result, all steps being made at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
