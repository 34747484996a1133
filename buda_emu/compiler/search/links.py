"""Checks whether the transfers of a placement between chips fit on the Ethernet links, as the router lays pipes over
them (docs/timing/route.md).
"""

from dataclasses import replace

from buda_emu.compiler.emit.netlist import netlist_of
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.target import Objective
from buda_emu.errors import UnsupportedError
from buda_emu.routing.pipes.build import build
from buda_emu.routing.pipes.epoch import epochs

_OF_LINKS = ("V362", "V363", "V364")


def overfull(placement: Placement, objective: Objective) -> str:
    """Why links have no room for what a placement sends over them, "" where they have. Chips that no file describes
    stand in a row."""
    if placement.stages == 1:
        return ""
    own = replace(placement, ids=objective.ids, cluster=objective.cluster)
    for epoch in epochs(netlist_of(own, "placement"), own.links):
        if len({op.target_device for op in epoch.ops.values()}) == 1:
            continue
        try:
            refusals = build(epoch).refusals
        except UnsupportedError as error:
            return str(error)
        for refusal in refusals:
            if refusal.rule in _OF_LINKS:
                return f"op {refusal.op}: {refusal.what}"
    return ""
