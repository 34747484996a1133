"""What a rule is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from buda_emu.netlist.diagnostics import Severity

Stage = Literal["P", "F", "G", "N", "R", "T", "W"]

STAGES: Mapping[Stage, str] = {
    "P": "The netlist is refused when it is loaded.",
    "F": "A netlist that uses the fused op is refused when it is loaded.",
    "G": "The netlist is refused when its graphs are built.",
    "N": "The device's compiler refuses it: a warning here, an error with --strict.",
    "R": "The device's runtime refuses it: a warning here, an error with --strict.",
    "T": "A test of the netlist refuses it: a warning here, an error with --strict.",
    "W": "A warning, nothing refuses it.",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `stage` says who refuses the netlist (NETLIST 2); `wrong` and `right` are a line of a netlist each."""

    id: str
    stage: Stage
    summary: str
    why: str
    wrong: str = ""
    right: str = ""
    source: str = "NETLIST 2"

    @property
    def explanation(self) -> str:
        """What `explain` prints below summary and stage, in paragraphs: reason, example, where the rule stands."""
        example = [f"Wrong: {self.wrong}", f"Right: {self.right}"] if self.wrong else []
        return "\n\n".join([self.why, *example, f"Stated in {self.source}."])

    def severity(self, strict: bool = False) -> Severity:
        """Errors refuse the netlist. Device and test rules (N, R, T) are errors only with `strict`."""
        if self.stage in ("P", "F", "G"):
            return "error"
        return "error" if strict and self.stage != "W" else "warning"
