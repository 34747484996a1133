"""A finding about a netlist: what rule, where, why, and the likely fix (DESIGN: errors)."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. Line and column count from 1; `hint` is a suggestion such as "did you mean 'queue'?"."""

    path: str
    line: int
    column: int
    rule: str
    severity: Severity
    message: str
    end_column: int = 0
    source_line: str = ""
    hint: str = ""
