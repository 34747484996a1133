"""Netlists for those who test compilers, kernels and emulators: `generator` makes valid ones at random, `strategies`
does the same for Hypothesis, `values.py` makes inputs for them, and `reduce` shrinks a netlist that shows a fault as
long as the fault stays.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buda_emu.testing.generator.netlist import Budget, Generated, generate
    from buda_emu.testing.mutants import Broken, broken
    from buda_emu.testing.strategies import netlists
    from buda_emu.testing.values import awkward_inputs

__all__ = ["Broken", "Budget", "Generated", "awkward_inputs", "broken", "generate", "netlists"]
_PLACES = {"netlists": "strategies", "broken": "mutants", "Broken": "mutants", "awkward_inputs": "values"}


def __getattr__(name: str) -> Any:
    """Import and return a public name when it is first asked for. Raises AttributeError for any other name."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES.get(name, 'generator.netlist')}"), name)
