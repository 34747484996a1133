"""The numbered rules of the netlist language: the catalogue, the checks, and `verify` which runs them."""

from buda_emu.netlist.rules.registry import RULES
from buda_emu.netlist.rules.rule import STAGES, Rule, Stage
from buda_emu.netlist.rules.verify import verify

__all__ = ["RULES", "STAGES", "Rule", "Stage", "verify"]
