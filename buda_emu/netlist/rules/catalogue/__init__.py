"""Every rule with its explanation, by subject, also those that are found while reading or not checked at all."""

from collections.abc import Mapping
from typing import Final

from buda_emu.checker import Rule, RuleBook
from buda_emu.netlist.rules.catalogue import (
    device,
    document,
    flow,
    formats,
    fused,
    habits,
    ops,
    performance_check,
    programs,
    queues,
    routing,
    test_config,
    tiles,
)
from buda_emu.netlist.rules.rule import STAGES

_SUBJECTS = (
    document,
    queues,
    ops,
    tiles,
    formats,
    programs,
    fused,
    device,
    routing,
    test_config,
    performance_check,
    habits,
    flow,
)

BOOK: Final = RuleBook("netlist", "V", STAGES)
for _rule in sorted((rule for subject in _SUBJECTS for rule in subject.RULES), key=lambda one: one.id):
    BOOK.add(_rule)

CATALOGUE: Mapping[str, Rule] = BOOK.rules
"""All rules by id, in order of the ids."""
