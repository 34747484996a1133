"""networkx, which finds what a value depends on and where a graph is cut cheapest."""

from importlib import import_module
from typing import Any

from buda_emu.support.errors import HostError


def import_networkx() -> Any:
    """Return the module networkx, which has no types. Raises HostError where it is not installed."""
    try:
        return import_module("networkx")
    except ModuleNotFoundError:
        raise HostError("compile: networkx is not installed: pip install 'buda-emu[onnx]' brings it") from None
