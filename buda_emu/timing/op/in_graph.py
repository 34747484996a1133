"""The additional cost of an op in a graph, compared with the op alone.

Sweeps measure single ops between DRAM queues. The `performance-check` of three public netlists states silicon figures
of whole graphs on grayskull whose pace a vector op sets: netlist_bert_base (exp takes 1.55 times what the sweeps give
it), netlist_encoder_device_tilize (approximate exp in a fused op: 1.59) and netlist_encoder_grid (at most 1.64). Why is
not known. One factor for the vector unit explains all three; nothing states such figures for other chips.
"""

from collections.abc import Mapping
from typing import Final

from buda_emu.timing.op.call import OpCall

VECTOR_UNIT: Final[Mapping[str, float]] = {"grayskull": 1.59}
"""Cycles of a vector op that other ops feed, in cycles of the op alone."""


def in_graph(call: OpCall) -> float:
    """By which factor an op is slower when another op feeds it."""
    return VECTOR_UNIT.get(call.arch, 1.0) if call.is_sfpu else 1.0
