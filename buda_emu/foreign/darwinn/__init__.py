"""DarwiNN packages: the Edge TPU compiler's output in a `.tflite`, read, checked, linked, replayed and run without an
Edge TPU (docs/other-compilers/darwinn.md).

    from buda_emu.foreign import darwinn

    package = darwinn.load("model_edgetpu.tflite")
    print(package.check().verdict, [layer.name for layer in package.main.outputs])

The instruction set is not public: instructions are moved and linked, never executed, and nothing is claimed about
them. Importing is cheap: each name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from buda_emu.support.errors import PackageError
from buda_emu.support.lazy import lazy_names

if TYPE_CHECKING:
    from buda_emu.foreign.darwinn.dma import descriptors
    from buda_emu.foreign.darwinn.document import Report, check, load
    from buda_emu.foreign.darwinn.idl import Executable, Layer
    from buda_emu.foreign.darwinn.layouts import dequantize, relayout, to_device, unrelayout
    from buda_emu.foreign.darwinn.linking import build, link, wrap
    from buda_emu.foreign.darwinn.model import Package
    from buda_emu.foreign.darwinn.replaying import replay
    from buda_emu.foreign.darwinn.twin import Twin
    from buda_emu.foreign.darwinn.verifying import run, verify

_LAZY = {
    "build": "linking", "check": "document", "Report": "document", "descriptors": "dma", "Executable": "idl",
    "Layer": "idl", "dequantize": "layouts", "relayout": "layouts", "to_device": "layouts", "unrelayout": "layouts",
    "link": "linking", "Package": "model", "load": "document", "replay": "replaying", "run": "verifying",
    "Twin": "twin", "verify": "verifying", "wrap": "linking",
}  # fmt: skip
# No module is called like a public name: importing it would put the module in the name's place.

__all__ = [
    "Executable",
    "Layer",
    "Package",
    "PackageError",
    "Report",
    "Twin",
    "build",
    "check",
    "dequantize",
    "descriptors",
    "link",
    "load",
    "relayout",
    "replay",
    "run",
    "to_device",
    "unrelayout",
    "verify",
    "wrap",
]

_modules = {name: f"{__name__}.{module}" for name, module in _LAZY.items()}
__getattr__, __dir__ = lazy_names(__name__, _modules)
