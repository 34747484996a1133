"""What the checker found about a netlist that is good enough to be used, said by the verbs that use it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from buda_emu.cli.output import complain

if TYPE_CHECKING:
    from buda_emu.checker import Diagnostic

_MOST = 3  # findings that are said one by one


def tell_findings(diagnostics: "Sequence[Diagnostic]", file: str) -> None:
    """A line on standard error for each finding; for more than three their number and how to see them."""
    if not diagnostics:
        return
    for item in diagnostics[: _MOST if len(diagnostics) <= _MOST else 0]:
        complain(f"{item.path}:{item.where}: {item.severity}[{item.rule}]: {item.message}")
    if len(diagnostics) > _MOST:
        complain(f"buda-emu: {len(diagnostics)} warnings about {file}: `buda-emu check {file}` shows them")
