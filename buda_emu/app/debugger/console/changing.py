"""Commands that change the run; every later answer mentions the changes."""

import re
from pathlib import Path
from typing import Any

from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.console.console import Console, command, split_tile
from buda_emu.app.debugger.session import Session
from buda_emu.support.errors import HostError


def _changes_answer(console: Console) -> Answer:
    """Return the answer of a command that changed something: its change as text, all changes so far as data."""
    changes = console.run.changed
    return answer("changed", [changes[-1]], changed=changes)


@command("set $NAME = VALUE", "set $i = 3", "changing", takes=("variables",))
def set_variable(console: Console, text: str) -> Answer:
    """Give a variable of the running program a value, as a varinst does: settings that name it follow."""
    assignment = re.fullmatch(r"(\$?\w+)\s*=?\s*(-?\w+)", text)
    if assignment is None:
        raise HostError("set $NAME = VALUE")
    assign_variable(console.run, assignment[1], assignment[2])
    return _changes_answer(console)


def assign_variable(run: Session, name: str, text: str) -> None:
    """Set a variable of the running program to an integer in decimal, 0x, 0o or 0b notation. Raises HostError."""
    try:
        value = int(text, 0)
    except ValueError:
        raise HostError(f"set {name}: {text!r} is not an integer") from None
    run.set_variable(name, value)


@command("write TENSOR [tile [T,]R,C] VALUE|FILE.npy", "write q[0] tile 0,0 1.5", "changing", takes=("tensors",))
def write(console: Console, text: str) -> Answer:
    """Change an entry of a queue or ram, or the result of the op that has just run: a number for every element, or an
    array from a file.
    """
    before, tile, rest = split_tile(text)
    if tile is None:
        before, _, rest = text.rpartition(" ")
    before = before.strip().removesuffix("=").strip()
    rest = rest.removeprefix("=").strip()
    if not before or not rest:
        raise HostError("write TENSOR VALUE, or write TENSOR tile R,C VALUE")
    console.run.write(before, parse_values(rest), tile)
    return _changes_answer(console)


def parse_values(text: str) -> Any:
    """Parse the values of a write: a number, or the array of a .npy file. Raises HostError."""
    if text.lower().endswith(".npy"):
        from buda_emu.emulator.inputs.numpy_files import read_npy

        return read_npy(Path(text))
    try:
        return float(text)
    except ValueError:
        raise HostError(f"{text!r} is neither a number nor a .npy file") from None


@command("skip", "skip", "changing")
def skip(console: Console, text: str) -> Answer:  # noqa: ARG001
    """Do not run the op that is about to run: its result is zero."""
    console.run.skip()
    return _changes_answer(console)
