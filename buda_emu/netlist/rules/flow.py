"""What the walk of a program notices (buda_emu.netlist.flow): V126, V270-V276, V278, V282-V287, V289, V290, V292."""

from collections.abc import Callable
from typing import Final

from buda_emu.netlist.flow import notes_of
from buda_emu.netlist.model import Program
from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.registry import Finding, Findings, program_check

WALKED: Final = (
    "V126", "V270", "V271", "V272", "V273", "V274", "V275", "V276", "V278",
    "V282", "V283", "V284", "V285", "V286", "V287", "V289", "V290", "V292",
)  # fmt: skip
_FOLLOWS: Final = {"V290": ("V283",)}  # a queue that is never popped, from one that gets full


def _noted(rule: str) -> Callable[[Context, Program], Findings]:
    def noted(ctx: Context, program: Program) -> Findings:
        if not ctx.notes:
            ctx.notes.update(notes_of(ctx.netlist))
        for note in ctx.notes[program.name]:
            if note.rule == rule:
                yield Finding(note.place, note.message, note.hint)

    return noted


for _rule in WALKED:
    program_check(_rule, unless=_FOLLOWS.get(_rule, ()))(_noted(_rule))
