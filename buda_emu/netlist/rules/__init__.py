"""The numbered rules of the netlist language: the catalogue, the checks, and `verify` which runs them."""

from buda_emu.checker import Rule
from buda_emu.netlist.rules.catalogue import BOOK
from buda_emu.netlist.rules.registry import RULES
from buda_emu.netlist.rules.rule import STAGES, Stage
from buda_emu.netlist.rules.verify import verify

__all__ = ["BOOK", "RULES", "STAGES", "Rule", "Stage", "verify"]
