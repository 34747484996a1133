"""How checks are attached to rules (NETLIST 2): one decorator for each kind of object that a rule speaks about.

A check is a generator of `Finding` over one object of the model and a `Context`. What the reader finds while it reads
has a rule in the catalogue but no check here. `rules.verify` runs the checks.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Final, Generic, TypeAlias, TypeVar

from buda_emu.checker import Check, Finding, Rule
from buda_emu.netlist.model import Graph, Netlist, Op, Program, Queue
from buda_emu.netlist.rules.catalogue import CATALOGUE
from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.fused_use import FusedUse
from buda_emu.records import dataclass

RULES: Mapping[str, Rule] = CATALOGUE
"""The whole catalogue by id."""

T = TypeVar("T")
Findings: TypeAlias = Iterator[Finding]


@dataclass(slots=True, eq=False)
class Checks(Generic[T]):
    """The checks of one kind of object."""

    all: list[Check] = field(default_factory=list[Check])

    def __call__(
        self, rule: str, *types: str, basic: bool = False, unless: tuple[str, ...] = ()
    ) -> Callable[[Callable[[Context, T], Findings]], Callable[[Context, T], Findings]]:
        """Decorator that attaches a check to `rule`. `types`: op types, families or traits (`spec.ops`); none: all."""

        def register(function: Callable[[Context, T], Findings]) -> Callable[[Context, T], Findings]:
            kinds = frozenset(types) or None
            self.all.append(Check(RULES[rule], function, basic, frozenset(unless), kinds))
            return function

        return register


TWICE: Final = ("V009", "V020")
"""A name that stands twice: a name that is missing beside it is most likely the one that was meant."""

# Filled while the rule files are imported, only read afterwards.
queue_check: Checks[Queue] = Checks()
op_check: Checks[Op] = Checks()
graph_check: Checks[Graph] = Checks()
program_check: Checks[Program] = Checks()
netlist_check: Checks[Netlist] = Checks()
fused_check: Checks[FusedUse] = Checks()
