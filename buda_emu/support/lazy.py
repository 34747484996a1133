"""Lazy imports: modules, and the public names of a package, are imported on first use."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


class _Lazy(ModuleType):
    """A stand-in for a module that imports it when one of its names is asked for."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)  # the next time it is found without coming here
        return value


def lazy(name: str) -> Any:
    """Return a module that is imported with the first use of one of its names. A type checker is shown the import
    itself:

        if TYPE_CHECKING:
            import numpy as np
        else:
            np = lazy("numpy")
    """
    return _Lazy(name)


_suggest: Any = lazy("buda_emu.support.checker.suggest")


def lazy_names(
    package: str, modules: Mapping[str, str], elsewhere: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose public names are imported on first use. `modules`: the
    module of each name; the error for any other name suggests the one that was probably meant. `elsewhere`: words that
    callers look for here, with what to use instead."""
    names = import_module(package).__dict__

    def get(name: str) -> Any:
        """Return the value of a public name: import the module that has it, and store the value in the package for
        the next use. Raises AttributeError for a name that is not in `modules`."""
        if name not in modules:
            suggestion = ""
            if elsewhere and name in elsewhere:
                suggestion = f" ({elsewhere[name]})"
            elif not name.startswith("__"):  # Python itself asks for such names
                public_names = [*modules, *(other for other in names if not other.startswith("_"))]
                suggestion = _suggest.hint_in_parentheses(name, public_names)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{suggestion}")
        value = names[name] = getattr(import_module(modules[name]), name)
        return value

    return get, lambda: sorted({*names, *modules})
