"""The book of all rules, in order of their ids. Importing the rule files below declares the rules and their checks."""

from collections.abc import Mapping
from typing import Final

from buda_emu.netlist.rules import elsewhere, fused_schedules, fused_sizes, graphs, habits, routing
from buda_emu.netlist.rules.ops import effects, fields, formats, pipes, placement, shapes, tiles, types
from buda_emu.netlist.rules.programs import flow, steps
from buda_emu.netlist.rules.queues import fields as queue_fields
from buda_emu.netlist.rules.queues import memory
from buda_emu.netlist.rules.routing import NET2PIPE, PIPEGEN2
from buda_emu.netlist.rules.rule import DECLARED, STAGES
from buda_emu.support.checker import Rule, RuleBook

SUBJECTS: Final = (
    elsewhere,
    fields,
    types,
    effects,
    tiles,
    formats,
    pipes,
    shapes,
    placement,
    graphs,
    fused_schedules,
    fused_sizes,
    steps,
    flow,
    queue_fields,
    memory,
    habits,
    routing,
)

_CHIP: Final = "the chip's compiler or runtime"
_RUN: Final = "`run`"
REFUSALS: Final[Mapping[str, str]] = {
    "N": _CHIP, "R": _CHIP, "T": "`test`", "X": _RUN,
    "V179": _RUN, "V208": _RUN,  # by `require_runnable` of buda_emu.emulator.inputs.prepared
}  # fmt: skip
"""Who refuses a netlist that `check` only warns about, by stage of a rule or by its id."""

BOOK: Final = RuleBook("netlist", "V", STAGES, REFUSALS)
for _id in sorted(DECLARED):
    BOOK.add(DECLARED[_id])

RULES: Final[Mapping[str, Rule]] = BOOK.rules
"""All rules by id, in order of the ids."""

NOT_CHECKED: Final = frozenset(("V057", "V073", "V075", "V153", "V157", "V163"))
"""Rules that nothing can break, or that cannot be checked from a netlist alone; the text of each gives the reason."""
ROUTED: Final = frozenset(("V081", "V084", "V160")) | {
    name for name, rule in RULES.items() if rule.source.startswith((NET2PIPE, PIPEGEN2))
}
"""Rules that are checked while pipes and streams are made (`buda_emu.performance.routing`), by `check --strict`."""
