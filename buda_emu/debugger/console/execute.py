"""Executes command lines."""

from types import ModuleType
from typing import Final

from buda_emu.debugger.answer import Answer, answer
from buda_emu.debugger.console import break_commands, changing, inspecting, other, run_control
from buda_emu.debugger.console.command import find
from buda_emu.debugger.console.console import Console

TABLES: Final[tuple[ModuleType, ...]] = (run_control, break_commands, inspecting, changing, other)
"""Whose commands there are: importing them fills the table."""


def execute(console: Console, line: str) -> Answer:
    """Do one line. Raises HostError, and what looking and running raise."""
    word, _, rest = line.strip().partition(" ")
    if not word or word.startswith("#"):
        return answer("nothing", [])
    found = find(word)
    given = found.act(console, rest.strip())
    changed = console.run.changed
    if changed and found.group in ("going", "going back", "looking"):
        return Answer(given.kind, (*given.lines, f"(changed: {'; '.join(changed)})"), given.data)
    return given


def repeated(line: str) -> str:
    """What an empty line after it does: the same, where that makes sense, else nothing."""
    word = line.strip().partition(" ")[0]
    if not word or not find(word).repeats:
        return ""
    return word if find(word).name == "list" else line
