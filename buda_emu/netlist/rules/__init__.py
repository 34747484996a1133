"""The numbered rules of the netlist language, each declared with the functions that check it; `verify` runs them."""

from buda_emu.checker import Rule
from buda_emu.netlist.rules.book import BOOK, NOT_CHECKED, ROUTED, RULES
from buda_emu.netlist.rules.rule import STAGES, Stage
from buda_emu.netlist.rules.verify import verify

__all__ = ["BOOK", "NOT_CHECKED", "ROUTED", "RULES", "STAGES", "Rule", "Stage", "verify"]
