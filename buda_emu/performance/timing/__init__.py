"""Cycles (docs/timing/timing.md): what an op costs a core (`op`), what moves between cores and memory (`transfers`),
how both overlap in an epoch (`epoch`), and what programs take in total. Uses `timeline` to schedule the tasks.
"""

from buda_emu.performance.timing.op.call import OpCall
from buda_emu.performance.timing.op.cost import op_cost, op_cycles
from buda_emu.performance.timing.transfers.collectives import Collective, collective_cycles, collective_interval
from buda_emu.performance.timing.transfers.transactions import Transactions, transfer_cycles, transfer_interval

__all__ = [
    "Collective",
    "OpCall",
    "Transactions",
    "collective_cycles",
    "collective_interval",
    "op_cost",
    "op_cycles",
    "transfer_cycles",
    "transfer_interval",
]
