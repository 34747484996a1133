"""Schedules of the Gemini scheduler: load, check, time, execute and allocate them.

    from buda_emu.foreign import gemini

    ir = gemini.load("schedule.json.gz")
    for finding in ir.check():
        print(finding.where, finding.message)
    print(gemini.simulate(ir).total, "cycles")

Nothing heavy is loaded before something is timed or executed.
"""

from typing import TYPE_CHECKING

from buda_emu.support.lazy import lazy_names

if TYPE_CHECKING:
    from buda_emu.foreign.gemini.allocation import allocate, peak
    from buda_emu.foreign.gemini.document import load
    from buda_emu.foreign.gemini.execution import Execution, execute
    from buda_emu.foreign.gemini.model import IR
    from buda_emu.foreign.gemini.time.schedule import Timeline, simulate

_LAZY = {
    "Execution": "buda_emu.foreign.gemini.execution",
    "IR": "buda_emu.foreign.gemini.model",
    "Timeline": "buda_emu.foreign.gemini.time.schedule",
    "allocate": "buda_emu.foreign.gemini.allocation",
    "execute": "buda_emu.foreign.gemini.execution",
    "load": "buda_emu.foreign.gemini.document",
    "peak": "buda_emu.foreign.gemini.allocation",
    "simulate": "buda_emu.foreign.gemini.time.schedule",
}

__all__ = ["IR", "Execution", "Timeline", "allocate", "execute", "load", "peak", "simulate"]

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
