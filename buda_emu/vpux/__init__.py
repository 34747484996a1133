"""VPUX: software-layer schedules of an NPU compiler, read, checked, run and timed (docs/vpux.md).

    from buda_emu import vpux

    document = vpux.load("net.mlir")
    print(document.check(arch="37XX"))
    result = vpux.run(document, function="main", inputs={0: array})

Importing this loads no numpy: reader and rules do without, `run` imports it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from buda_emu.vpux import arguments, layout
from buda_emu.vpux.document import load, read

if TYPE_CHECKING:
    from buda_emu.vpux.comparison import compare
    from buda_emu.vpux.execute.run import run
    from buda_emu.vpux.serialized import serialize

_LAZY = {
    "compare": "buda_emu.vpux.comparison",
    "run": "buda_emu.vpux.execute.run",
    "serialize": "buda_emu.vpux.serialized",
}

__all__ = ["arguments", "compare", "layout", "load", "read", "run", "serialize"]


def __getattr__(name: str) -> Any:
    """Import what runs, when it is first asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
