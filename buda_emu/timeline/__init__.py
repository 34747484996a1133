"""Time apart from values: tasks on units, counted objects that they wait for and signal, memory that they touch.

Knows nothing of netlists or of any one chip: epochs of BUDA and the schedules of other compilers are replayed on it.
`Schedule.run` says when everything happens, `happens_before` what comes before what in any run; `order_conflicts`
and `unwritten_reads` look at the bytes that tasks touch, `occupancy` at what memory holds, `idle` and
`critical_steps` at where the time went.
"""

from buda_emu.timeline.hazards import Hazard, order_conflicts, unwritten_reads
from buda_emu.timeline.memory import Access
from buda_emu.timeline.occupancy import Live, Occupancy, live_ranges, occupancy
from buda_emu.timeline.order import Order, happens_before
from buda_emu.timeline.ranges import Ring
from buda_emu.timeline.result import Timing
from buda_emu.timeline.schedule import Schedule
from buda_emu.timeline.tasks import Wait
from buda_emu.timeline.waits import BUSY, critical_steps, idle, time_by_category

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
