"""Sessions for tests, and all that a machine holds at a moment."""

from contextlib import contextmanager

import buda_emu as be
from buda_emu.app.debugger.breakpoints import pointers_of
from buda_emu.app.debugger.machine.stop import START
from shared_files import ROOT

TRAINING = str(ROOT / "netlists" / "training.yaml")
ATTENTION = str(ROOT / "netlists" / "attention.yaml")
TWO_CHIPS = str(ROOT / "netlists" / "two_chips.yaml")


@contextmanager
def session(path, **more):
    """One thread is enough here."""
    with be.debug(path, threads=1, **more) as found:
        yield found


def state(run):
    """Pointers, contents and variables, as bytes."""

    def look():
        engine = run.engine
        held = {}
        for name, channel in engine.channels.items():
            view = channel.view
            entries = {slot: view.entry(slot).tobytes() for slot in range(view.entries) if view.label(slot)}
            labels = [view.label(slot) for slot in range(view.entries)]
            held[name] = (pointers_of(channel), channel.zero, labels, entries)
        variables = engine.variables.snapshot() if engine.variables is not None else {}
        values = {name: tiles.tobytes() for name, tiles in engine.values.items()}
        return held, variables, values

    return run.engine.call(look)


def walk(run, kind):
    """Every stop of a kind to the end, with the state there; the start first."""
    found = [(START, state(run))]
    while not run.engine.ended:
        stop = run.go(kind)
        found.append((stop.position, state(run)))
    return found
