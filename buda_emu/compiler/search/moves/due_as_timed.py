"""By when each op of an epoch of a single input has to begin, as the timing model has it. What it keeps in L1 is loaded
in time then: data that is due first lies in channels that move little else (`place/channels.py`).
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.timing.result import EpochReport
from buda_emu.timing.transfers.flows import channel_name, through


def due_as_timed(decisions: Mapping[str, PlacementDecision], report: EpochReport) -> dict[str, PlacementDecision]:
    """The decisions with the cycle by which each op that keeps something in L1 has to begin. All times are maxima of
    sums of durations, so that one run in which an op begins last says what follows its beginning."""
    schedule, timing = report.timing.schedule, report.timing.timing
    makespan, readers = schedule.makespans(), _readers(report)
    reader = np.array([readers.get(unit, "") for unit in timing.units])[timing.unit]
    at_once = schedule.durations
    at_once[reader != ""] = 0
    shortest, found = makespan(at_once), dict(decisions)
    for name in dict.fromkeys(readers.values()):
        late = at_once.copy()
        late[reader == name] = shortest
        found[name] = replace(decisions[name], begin_by=float(2 * shortest - makespan(late)))
    return found


def _readers(report: EpochReport) -> dict[str, str]:
    """Of each unit that takes something out of a channel of DRAM before the first input, the op that keeps it."""
    return {
        through(channel_name(number, edge.chip), edge.name): edge.target
        for edge in report.edges
        if edge.once and edge.memory == "dram"
        for number in edge.memory_bytes
    }
