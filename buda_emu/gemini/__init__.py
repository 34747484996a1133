"""Schedules of the Gemini scheduler: load, check, time, execute and allocate them.

    from buda_emu import gemini

    ir = gemini.load("schedule.json.gz")
    for finding in ir.check():
        print(finding.where, finding.message)
    print(gemini.simulate(ir).total, "cycles")

Nothing heavy is loaded before something is timed or executed.
"""

from typing import TYPE_CHECKING

from buda_emu.lazy import lazy_names

if TYPE_CHECKING:
    from buda_emu.gemini.allocation import allocate, peak
    from buda_emu.gemini.document import load
    from buda_emu.gemini.execution import Execution, execute
    from buda_emu.gemini.model import IR
    from buda_emu.gemini.time.schedule import Timeline, simulate

_LAZY = {
    "Execution": "buda_emu.gemini.execution",
    "IR": "buda_emu.gemini.model",
    "Timeline": "buda_emu.gemini.time.schedule",
    "allocate": "buda_emu.gemini.allocation",
    "execute": "buda_emu.gemini.execution",
    "load": "buda_emu.gemini.document",
    "peak": "buda_emu.gemini.allocation",
    "simulate": "buda_emu.gemini.time.schedule",
}

__all__ = ["IR", "Execution", "Timeline", "allocate", "execute", "load", "peak", "simulate"]

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
