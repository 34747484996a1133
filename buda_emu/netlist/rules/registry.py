"""What a rule is, and the two ways a check is attached to one (NETLIST 2).

A rule is an id, one line, an explanation (the catalogue) and, unless the reader finds it while reading, one function.
Checks are generators of `Finding`; who runs them and in what order is `rules.verify`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from buda_emu.netlist.diagnostics import Diagnostic, Severity
from buda_emu.netlist.nodes import Mark
from buda_emu.netlist.rules.catalogue import CATALOGUE
from buda_emu.netlist.rules.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from buda_emu.netlist.model import Op, Program, Queue
    from buda_emu.netlist.rules.context import Context

RULES: "Mapping[str, Rule]" = CATALOGUE


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check yields: where, what is wrong, what to do. `verify` adds the rule and the file."""

    mark: Mark
    message: str
    hint: str = ""


Findings: TypeAlias = Iterator[Finding]
OpCheck: TypeAlias = "Callable[[Context, Op], Findings]"
QueueCheck: TypeAlias = "Callable[[Context, Queue], Findings]"
ProgramCheck: TypeAlias = "Callable[[Context, Program], Findings]"
NetlistCheck: TypeAlias = "Callable[[Context], Findings]"
