"""BUDA netlists: load, check and run them, with the reference model's exact bits.

    import buda_emu as be

    net = be.load("net.yaml", arch="wormhole_b0")
    with be.Emulator(net) as emu:
        emu.push("q_in", array)
        emu.run("run_fwd", {"$p_loop_count": 4})
        out = emu.pop("q_out", count=4)

Importing the package is cheap: numpy, numba and PyYAML are imported with the first name that needs them.
"""

from typing import TYPE_CHECKING

from buda_emu.support.errors import (
    BudaError,
    DocumentError,
    HostError,
    HostTimeoutError,
    InternalError,
    NetlistError,
    NetlistWarning,
    PackageError,
    ProgramError,
    RunCancelledError,
    ScheduleError,
    UnsupportedError,
    VpuxError,
)
from buda_emu.support.lazy import lazy_names
from buda_emu.support.moved import keep_old_names
from buda_emu.support.version import __version__

if TYPE_CHECKING:
    from buda_emu.app.api.advise import advise
    from buda_emu.app.api.faults import faults
    from buda_emu.app.api.load import load
    from buda_emu.app.api.load_model import LoadedModel, load_model
    from buda_emu.app.api.numerics import Explained, numerics
    from buda_emu.app.api.perf import Perf, perf
    from buda_emu.app.api.reduce import reduce
    from buda_emu.app.api.test import Tested, test
    from buda_emu.app.debugger.session import debug
    from buda_emu.compiler.compilation import CompileOptions
    from buda_emu.compiler.compile import compile  # noqa: A004
    from buda_emu.compiler.generate import Program, compile_programs
    from buda_emu.compiler.parted import compile_in_parts
    from buda_emu.compiler.train.compile_training import compile_training
    from buda_emu.emulator.image.load import load_image
    from buda_emu.emulator.runtime.emulator import Emulator
    from buda_emu.emulator.runtime.machine.listeners import Listener
    from buda_emu.emulator.runtime.machine.running import Progress, Run
    from buda_emu.netlist.load import check
    from buda_emu.performance.advice.result import Advice
    from buda_emu.support.progress import Activity

_LAZY = {
    "faults": "buda_emu.app.api.faults",
    "load": "buda_emu.app.api.load",
    "check": "buda_emu.netlist.load",
    "compile": "buda_emu.compiler.compile",
    "compile_in_parts": "buda_emu.compiler.parted",
    "compile_programs": "buda_emu.compiler.generate",
    "compile_training": "buda_emu.compiler.train.compile_training",
    "debug": "buda_emu.app.debugger.session",
    "CompileOptions": "buda_emu.compiler.compilation",
    "Emulator": "buda_emu.emulator.runtime.emulator",
    "load_model": "buda_emu.app.api.load_model",
    "LoadedModel": "buda_emu.app.api.load_model",
    "load_image": "buda_emu.emulator.image.load",
    "Listener": "buda_emu.emulator.runtime.machine.listeners",
    "Program": "buda_emu.compiler.generate",
    "Progress": "buda_emu.emulator.runtime.machine.running",
    "Activity": "buda_emu.support.progress",
    "Advice": "buda_emu.performance.advice.result",
    "advise": "buda_emu.app.api.advise",
    "Explained": "buda_emu.app.api.numerics",
    "numerics": "buda_emu.app.api.numerics",
    "Perf": "buda_emu.app.api.perf",
    "perf": "buda_emu.app.api.perf",
    "reduce": "buda_emu.app.api.reduce",
    "test": "buda_emu.app.api.test",
    "Tested": "buda_emu.app.api.test",
    "Run": "buda_emu.emulator.runtime.machine.running",
}

__all__ = [
    "Activity",
    "Advice",
    "BudaError",
    "CompileOptions",
    "DocumentError",
    "Emulator",
    "Explained",
    "HostError",
    "HostTimeoutError",
    "InternalError",
    "Listener",
    "LoadedModel",
    "NetlistError",
    "NetlistWarning",
    "PackageError",
    "Perf",
    "Program",
    "ProgramError",
    "Progress",
    "Run",
    "RunCancelledError",
    "ScheduleError",
    "Tested",
    "UnsupportedError",
    "VpuxError",
    "__version__",
    "advise",
    "check",
    "compile",
    "compile_in_parts",
    "compile_programs",
    "compile_training",
    "debug",
    "faults",
    "load",
    "load_image",
    "load_model",
    "numerics",
    "perf",
    "reduce",
    "test",
]

_RUN = "buda_emu.app.api.run_netlist.run_netlist runs a netlist in one call, Emulator in steps"
_ELSEWHERE = {
    "run": _RUN,
    "run_netlist": _RUN,
    "graph": "a notebook draws a netlist that load returns, `buda-emu graph` writes the picture to a file",
    "explain": "`buda-emu explain RULE` on the command line",
    "diff": "buda_emu.app.api.diff.diff",
    "sweep": "buda_emu.app.api.sweep.sweep",
    "new": "buda_emu.app.api.new.new returns the text",
    "example": "`buda-emu example NAME` on the command line writes one",
    "gemini": "from buda_emu.foreign import gemini",
    "vpux": "from buda_emu.foreign import vpux",
    "darwinn": "from buda_emu.foreign import darwinn",
}
"""Verbs of the command that are no functions of this package, and where a notebook finds what they do."""

keep_old_names()
__getattr__, _ = lazy_names(__name__, _LAZY, _ELSEWHERE)


def __dir__() -> list[str]:
    """Return the public names, without the packages below this one, so that completion shows what a user calls."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
