"""Registration of checks, with one decorator for each kind of object that a rule is about (NETLIST 2).

A check is a generator of `Finding` over one object of the model and a `Context`; its rule is declared with it. Rules
that the reader checks while it reads are declared without a check. `rules.verify` runs the checks.
"""

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Final, Generic, TypeAlias, TypeVar

from buda_emu.netlist.model import Graph, Netlist, Op, Program, Queue
from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.fused_use import FusedUse
from buda_emu.netlist.rules.rule import DECLARED
from buda_emu.support.checker import Check, Finding, Rule
from buda_emu.support.records import dataclass

T = TypeVar("T")
Findings: TypeAlias = Iterator[Finding]
Attached: TypeAlias = tuple[Rule | str, Callable[..., Findings], bool, frozenset[str], frozenset[str] | None]


@dataclass(slots=True, eq=False)
class Checks(Generic[T]):
    """The checks of one kind of object, in the order of their declaration."""

    _added: list[Attached] = field(default_factory=list[Attached])

    def __call__(
        self, rule: Rule | str, *types: str, basic: bool = False, unless: tuple[str, ...] = ()
    ) -> Callable[[Callable[[Context, T], Findings]], Callable[[Context, T], Findings]]:
        """Return a decorator that attaches a check to `rule`, which is declared here or, by its id, elsewhere.

        `types` are op types, families or traits (`spec.ops`) to which the check is restricted. A `basic` check is
        about an object's own fields. The check is left out where a rule in `unless` is broken.
        """

        def register(function: Callable[[Context, T], Findings]) -> Callable[[Context, T], Findings]:
            self._added.append((rule, function, basic, frozenset(unless), frozenset(types) or None))
            return function

        return register

    @property
    def all(self) -> list[Check]:
        """Return the checks in the order of their declaration."""
        return [
            Check(
                rule=DECLARED[rule] if isinstance(rule, str) else rule,
                run=function,
                basic=basic,
                unless=unless,
                kinds=kinds,
            )
            for rule, function, basic, unless, kinds in self._added
        ]


TWICE: Final = ("V009", "V020")
"""Rules about a name that occurs twice: a name that is missing in such a netlist is most likely one of the two."""

# Filled while the rule files are imported, only read afterwards.
queue_check: Checks[Queue] = Checks()
op_check: Checks[Op] = Checks()
graph_check: Checks[Graph] = Checks()
program_check: Checks[Program] = Checks()
netlist_check: Checks[Netlist] = Checks()
fused_check: Checks[FusedUse] = Checks()
EVERY_KIND: Final = (netlist_check, graph_check, queue_check, op_check, fused_check, program_check)
