"""VPUX: software-layer schedules of an NPU compiler, read, checked, run and timed (docs/other-compilers/vpux.md).

    from buda_emu.foreign import vpux

    document = vpux.load("net.mlir")
    print(document.check(arch="37XX"))
    result = vpux.run(document, function="main", inputs={0: array})

Importing this loads no numpy: reader and rules do without, `run` imports it.
"""

from typing import TYPE_CHECKING

from buda_emu.foreign.vpux import arguments, layout
from buda_emu.foreign.vpux.document import load, read
from buda_emu.support.lazy import lazy_names

if TYPE_CHECKING:
    from buda_emu.foreign.vpux.comparison import compare
    from buda_emu.foreign.vpux.execute.run import run
    from buda_emu.foreign.vpux.serialized import serialize

_LAZY = {
    "compare": "buda_emu.foreign.vpux.comparison",
    "run": "buda_emu.foreign.vpux.execute.run",
    "serialize": "buda_emu.foreign.vpux.serialized",
}

__all__ = ["arguments", "compare", "layout", "load", "read", "run", "serialize"]

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
