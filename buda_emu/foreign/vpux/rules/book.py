"""The registry of the X rules. Every file of this room declares its own."""

from typing import Final

from buda_emu.foreign.vpux.model import Op
from buda_emu.foreign.vpux.program import Program
from buda_emu.support.checker import Finding, RuleBook

BOOK: Final = RuleBook(
    kind="vpux document",
    prefix="X",
    stages={
        "public": "The public compiler's verifier refuses it, too.",
        "text": "Found while the text is read.",
        "emulator": "Decided here: the emulator cannot give it a meaning.",
        "limit": "The public compiler's tests do it, and the hardware has less.",
        "run": "Found while the function runs.",
    },
)


def finding(program: Program, op: Op, message: str, hint: str = "") -> Finding:
    """Make a finding at the name of an op. It is about that op: of a group of rules only the first that finds something
    reports it."""
    return Finding(program.function.document.place(op.offset, op.end), message, hint, about=op.offset)
