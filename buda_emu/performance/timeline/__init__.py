"""Time apart from values: tasks on units, counted objects that they wait for and signal, memory that they touch.

Knows nothing of netlists or of any one chip: epochs of BUDA and the schedules of other compilers are replayed on it.
`Schedule.run` computes when every task starts and ends, `happens_before` which order of tasks holds in every run.
`order_conflicts` and `unwritten_reads` find conflicts in the bytes that tasks touch, `occupancy` computes the contents
of a memory over time, and `idle` and `critical_steps` say where the time went.
"""

from buda_emu.performance.timeline.occupancy import Live, Occupancy, live_ranges, occupancy
from buda_emu.performance.timeline.order import Hazard, Order, happens_before, order_conflicts, unwritten_reads
from buda_emu.performance.timeline.schedule import BUSY, Schedule, Timing, critical_steps, idle, time_by_category
from buda_emu.performance.timeline.tasks import Access, Ring, Wait

__all__ = [
    "BUSY",
    "Access",
    "Hazard",
    "Live",
    "Occupancy",
    "Order",
    "Ring",
    "Schedule",
    "Timing",
    "Wait",
    "critical_steps",
    "happens_before",
    "idle",
    "live_ranges",
    "occupancy",
    "order_conflicts",
    "time_by_category",
    "unwritten_reads",
]
