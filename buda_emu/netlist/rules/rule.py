"""Declaration of the rules of netlists. The stage of a rule says who refuses the netlist, and whether a finding is
an error or a warning (NETLIST 2)."""

from collections.abc import Mapping
from typing import Final, Literal

from buda_emu.support.checker import Rule, Severity
from buda_emu.support.errors import InternalError

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


def rule(
    id: str, stage: Stage, summary: str, why: str, wrong: str = "", right: str = "", source: str = "NETLIST 2"
) -> Rule:
    """Declare a rule. `stage` says who refuses the netlist (NETLIST 2); `wrong` and `right` are a line of a netlist
    each. Raises InternalError for an id that is declared already."""
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
