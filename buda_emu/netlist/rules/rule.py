"""What a rule is."""

from dataclasses import dataclass
from typing import Literal

from buda_emu.netlist.diagnostics import Severity

Stage = Literal["P", "F", "G", "N", "R", "W"]

STAGES: dict[Stage, str] = {
    "P": "found when the netlist is loaded",
    "F": "found when the netlist is loaded, in fused ops",
    "G": "found when the netlist is loaded, by building the graphs",
    "N": "found by the device compiler; a warning unless strict",
    "R": "found by the device runtime; a warning unless strict",
    "W": "always a warning",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `stage` says who refuses the netlist (NETLIST 2); `explanation` is what `explain` prints."""

    id: str
    stage: Stage
    summary: str
    explanation: str

    def severity(self, strict: bool = False) -> Severity:
        """Errors refuse the netlist. Device rules (N, R) are errors only with `strict`."""
        if self.stage in ("P", "F", "G"):
            return "error"
        return "error" if strict and self.stage != "W" else "warning"
