"""All rule files: importing them declares rules and checks. The book of them, in order of their ids."""

from collections.abc import Mapping
from typing import Final

from buda_emu.checker import Rule, RuleBook
from buda_emu.netlist.rules import graphs, habits
from buda_emu.netlist.rules.elsewhere import document, testing
from buda_emu.netlist.rules.elsewhere.routing import NET2PIPE, PIPEGEN2, chips, cores, edges, epochs, warned
from buda_emu.netlist.rules.fused import formats as fused_formats
from buda_emu.netlist.rules.fused import life, schedules, sizes, tms
from buda_emu.netlist.rules.ops import dest, fields, formats, integers, pipes, placement, shapes, tiles, types, untilize
from buda_emu.netlist.rules.programs import flow, steps
from buda_emu.netlist.rules.programs import habits as program_habits
from buda_emu.netlist.rules.queues import aliases, constants, memory
from buda_emu.netlist.rules.queues import fields as queue_fields
from buda_emu.netlist.rules.rule import DECLARED, STAGES

SUBJECTS: Final = (
    document, queue_fields, aliases, fields, types, dest, graphs, untilize, tiles, formats, integers, schedules, tms,
    life, sizes, fused_formats, steps, pipes, shapes, placement, memory, constants, habits, flow, program_habits,
    edges, epochs, chips, cores, warned, testing,
)  # fmt: skip

BOOK: Final = RuleBook("netlist", "V", STAGES)
for _id in sorted(DECLARED):
    BOOK.add(DECLARED[_id])

RULES: Final[Mapping[str, Rule]] = BOOK.rules
"""All rules by id, in order of the ids."""

NOT_CHECKED: Final = frozenset(("V057", "V073", "V075", "V153", "V157", "V163"))
"""What cannot happen, or cannot be said from a netlist alone; each says why."""
ROUTED: Final = frozenset(("V081", "V084", "V160")) | {
    name for name, rule in RULES.items() if rule.source.startswith((NET2PIPE, PIPEGEN2))
}
"""What is found where pipes and streams are made (`buda_emu.routing`): `check --strict` asks for it."""
