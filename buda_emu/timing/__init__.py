"""Cycles: what one op costs one core, from its declaration and dimensions (docs/timing.md)."""

from buda_emu.timing.op_call import OpCall
from buda_emu.timing.op_cost import OpCost, op_cost, op_cycles

__all__ = ["OpCall", "OpCost", "op_cost", "op_cycles"]
