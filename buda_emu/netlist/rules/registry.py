"""Declaration of the rules of netlists and registration of their checks (NETLIST 2).

The stage of a rule says who refuses the netlist, and whether a finding is an error or a warning. A check is a generator
of `Finding` over one object of the model and a `Context`; its rule is declared with it, by one decorator for each kind
of object that a rule is about. Rules that the reader checks while it reads are declared without a check. `rules.book`
runs the checks.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from buda_emu.netlist.model import Graph, Netlist, Op, Program, Queue
from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.fused_use import FusedUse
from buda_emu.support.checker import Check, Finding, Rule, Severity
from buda_emu.support.errors import InternalError
from buda_emu.support.records import dataclass

Stage = Literal["P", "F", "G", "N", "R", "T", "X", "W"]

STAGES: Mapping[str, str] = {
    "P": "The netlist is refused when it is loaded.",
    "F": "A netlist that uses the fused op is refused when it is loaded.",
    "G": "The netlist is refused when its graphs are built.",
    "N": "The device's compiler refuses it: a warning here, an error with --strict.",
    "R": "The device's runtime refuses it: a warning here, an error with --strict.",
    "T": "A test of the netlist refuses it: a warning here, an error with --strict.",
    "X": "Its programs are certain to fail when they run: a warning here, an error with --strict.",
    "W": "A warning, nothing refuses it.",
}
_SEVERITY: Mapping[Stage, tuple[Severity, Severity]] = {  # without and with --strict
    "P": ("error", "error"),
    "F": ("error", "error"),
    "G": ("error", "error"),
    "N": ("warning", "error"),
    "R": ("warning", "error"),
    "T": ("warning", "error"),
    "X": ("warning", "error"),
    "W": ("warning", "warning"),
}

DECLARED: Final[dict[str, Rule]] = {}
"""All rules by id; filled while the rule files are imported, only read afterwards."""


def rule(id: str, stage: Stage, summary: str, why: str, wrong: str = "", right: str = "", source: str = "") -> Rule:
    """Declare a rule of a netlist and return it. `stage` says who refuses the netlist (`STAGES`), `summary` names
    the fault, `why` explains the rule, and `wrong` and `right` are a line of a netlist each. `source` says who states
    the rule: sections of the facts (`NETLIST 2`, `OPS 8.3`), a program of the vendor's, or the page of these docs
    (`docs/netlists/ci.md`) for a rule of this project. Raises InternalError for an id that is declared already, and
    without a source.
    """
    if not source:
        raise InternalError(f"rule {id} does not say who states it: source=...")
    severity, strict = _SEVERITY[stage]
    if id in DECLARED:
        raise InternalError(f"rule {id} is declared twice")
    DECLARED[id] = Rule(
        id=id,
        severity=severity,
        summary=summary,
        why=why,
        wrong=wrong,
        right=right,
        source=source,
        stage=stage,
        strict=strict,
    )
    return DECLARED[id]


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
            """Store the check, and return it unchanged."""
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
