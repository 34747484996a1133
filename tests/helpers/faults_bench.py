"""Recorded runs, made once for all tests that ask for the same."""

from functools import cache
from pathlib import Path

from buda_emu.app.api.faults import Maker, Settings, Subject
from example_netlists import DIRECTORY


@cache
def bench(name, precision="format", **settings):
    """Of an example netlist, by its name, or of a path."""
    path = name if Path(name).suffix else str(DIRECTORY / f"{name}.yaml")
    return Maker(Subject(path, precision=precision), Settings(**settings))()
