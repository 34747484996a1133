"""Commands that change the run; every later answer says so."""

import re
from pathlib import Path
from typing import Any

from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.console.console import Console, command, split_tile
from buda_emu.app.debugger.session import Session
from buda_emu.support.errors import HostError


def _changed(console: Console) -> Answer:
    told = console.run.changed
    return answer("changed", [told[-1]], changed=told)


@command("set $NAME = VALUE", "set $i = 3", "changing", takes=("variables",))
def set_variable(console: Console, text: str) -> Answer:
    """Give a variable of the running program a value, as a varinst does: settings that name it follow."""
    found = re.fullmatch(r"(\$?\w+)\s*=?\s*(-?\w+)", text)
    if found is None:
        raise HostError("set $NAME = VALUE")
    set_to(console.run, found[1], found[2])
    return _changed(console)


def set_to(run: Session, name: str, text: str) -> None:
    """A variable of the running program. Raises HostError."""
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
    console.run.write(before, values_of(rest), tile)
    return _changed(console)


def values_of(text: str) -> Any:
    """What is written: a number, or the array of a file. Raises HostError."""
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
    return _changed(console)
