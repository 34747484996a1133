"""By when each op of an epoch of a single input has to begin, as the timing model has it, so that what it keeps in L1
is loaded in time: data that is due first then lies in channels that move little else (`place/channels.py`).
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.timing.result import EpochReport
from buda_emu.timing.transfers.flows import channel_name


def due_as_timed(
    decisions: Mapping[str, PlacementDecision], report: EpochReport
) -> dict[str, PlacementDecision]:
    """The decisions with the cycle by which each op that keeps something in L1 has to begin. The schedule is a maximum
    of sums of durations: what an op holds up, when it begins late, follows from a single run in which it begins last.
    """
    timing = report.timing
    runs, durations = timing.schedule.runs(), timing.schedule.durations
    loads = _loads(report)
    unit_of = np.asarray([loads.get(name, "") for name in timing.timing.units], dtype=object)[timing.timing.unit]
    at_once = durations.copy()
    at_once[unit_of != ""] = 0
    shortest = float(runs(at_once).makespan)
    found = dict(decisions)
    for name in sorted(set(loads.values())):
        late = at_once.copy()
        late[unit_of == name] = round(shortest)
        found[name] = replace(decisions[name], begin_by=2 * shortest - float(runs(late).makespan))
    return found


def _loads(report: EpochReport) -> dict[str, str]:
    """Of each unit that takes something out of a channel of DRAM before the first input, the op that keeps it."""
    found: dict[str, str] = {}
    for edge in report.edges:
        if edge.once and edge.memory == "dram":
            found |= {f"{channel_name(n, edge.chip)}: {edge.source} > {edge.target}, once": edge.target for n in edge.memory_bytes}
    return found
