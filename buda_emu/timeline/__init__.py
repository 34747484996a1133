"""Time apart from values: tasks on units, counted objects that they wait for and signal, memory that they touch.

Knows nothing of netlists or of any one chip: epochs of BUDA and the schedules of other compilers are replayed on it.
"""

from buda_emu.timeline.memory import Access, Conflict, conflicts
from buda_emu.timeline.result import Timing
from buda_emu.timeline.schedule import Schedule, Wait

__all__ = ["Access", "Conflict", "Schedule", "Timing", "Wait", "conflicts"]
