"""Cycles: what one op costs one core, from its declaration and dimensions (docs/timing.md)."""

from buda_emu.timing.op.call import OpCall
from buda_emu.timing.op.cost import OpCost, op_cost, op_cycles

__all__ = ["OpCall", "OpCost", "op_cost", "op_cycles"]
