"""Module names of version 0.1.0: importing one warns and gives the module at its present place.

The names go in version `REMOVED_IN`. A package that other packages extend (`buda_emu.ops.base`) or that docs
mentioned is reached under its old name with everything below it, as far as files keep their names.
"""

import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:
    # `importlib.abc` imports tempfile and more, 6 ms at the start of every command; the import system asks for methods.
    Loader = MetaPathFinder = object

REMOVED_IN: Final = "1.1.0, not before 2027-06-01"
"""The version without what is deprecated today. Every DeprecationWarning says it."""
_PACKAGE: Final = "buda_emu."

PLACES: Final[Mapping[str, str]] = {
    "advice": "performance.advice",
    "api": "app.api",
    "backend_api": "app.backend_api",
    "caches": "support.caches",
    "checker": "support.checker",
    "cli": "app.cli",
    "coverage": "testing.coverage",
    "darwinn": "foreign.darwinn",
    "debugger": "app.debugger",
    "device": "emulator.memory",
    "documents": "app.documents",
    "editor": "app.editor",
    "errors": "support.errors",
    "files": "support.files",
    "formats": "arithmetic.formats",
    "gemini": "foreign.gemini",
    "image": "emulator.image",
    "injection": "testing.injection",
    "jit": "arithmetic.jit",
    "kernels": "arithmetic.kernels",
    "machines": "emulator.distributed",
    "ops": "emulator.ops",
    "program": "netlist.program",
    "pytest_plugin": "app.pytest_plugin",
    "routing": "performance.routing",
    "runtime": "emulator.runtime",
    "tensix": "arithmetic.tensix",
    "tensor": "arithmetic.tensor",
    "timeline": "performance.timeline",
    "timing": "performance.timing",
    "verify": "testing.verify",
    "version": "support.version",
    "vpux": "foreign.vpux",
    "workers": "support.workers",
}
"""The present place of each package and module that stood at the top of `buda_emu`, both without `buda_emu.`"""


def present_name(name: str) -> str | None:
    """Return the present name of a module, or None where the name is no old one."""
    if not name.startswith(_PACKAGE):
        return None
    top, dot, below = name.removeprefix(_PACKAGE).partition(".")
    place = PLACES.get(top)
    if place is None:
        return None
    return f"{_PACKAGE}{place}{dot}{below}"


class _Alias(Loader):
    """A loader that enters an existing module under a second name."""

    def __init__(self, present: str) -> None:
        self._present = present

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return None, so that the import system makes an empty module; `exec_module` replaces it at once."""
        del spec

    def exec_module(self, module: ModuleType) -> None:
        """Import the module under its present name and enter it under the old one, too."""
        text = f"{module.__name__} is now {self._present}; the old name goes in {REMOVED_IN}"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = import_module(self._present)


class _Finder(MetaPathFinder):
    """A finder of modules by their old names, asked before the path of their parent is searched for a second copy of
    them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec that leads to the present module, or None for any other name."""
        del path, target
        present = present_name(fullname)
        if present is None:
            return None
        return ModuleSpec(fullname, _Alias(present))


def keep_old_names() -> None:
    """Let modules be imported by their old names, with a DeprecationWarning; called once, by the package itself."""
    sys.meta_path.insert(0, _Finder())
