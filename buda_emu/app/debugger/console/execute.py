"""Executes command lines."""

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Final

from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.breakpoints import WORDS as PLACES
from buda_emu.app.debugger.console import changing, inspecting, running
from buda_emu.app.debugger.console.console import COMMANDS, Console, find
from buda_emu.app.debugger.expressions import OF_POINTERS, OF_TENSOR, OF_TWO, WORDS
from buda_emu.app.debugger.machine.backwards import BACK
from buda_emu.support.errors import HostError

TABLES: Final[tuple[ModuleType, ...]] = (running, inspecting, changing)
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


_BREAKS: Final = " ()[],<>=!+*/%"


def _queues(console: Console) -> Iterable[str]:
    return (*console.run.netlist.queues, *console.run.names.labels)


def _ops(console: Console) -> Iterable[str]:
    return (f"op:{name}" for name in console.run.names.ops)


def _functions() -> Iterable[str]:
    return (f"{name}(" for name in (*OF_TENSOR, *OF_TWO, *OF_POINTERS))


def _variables(console: Console) -> Iterable[str]:
    known = console.run.engine.variables
    return known.snapshot() if known is not None else ()


OFFERS: Final[Mapping[str, Callable[[Console], Iterable[str]]]] = {
    "places": lambda console: (
        *PLACES, "if", *console.run.names.ops, *console.run.netlist.graphs, *console.run.netlist.programs,
        *console.run.netlist.queues,
    ),
    "queues": _queues,
    "tensors": lambda console: (*_queues(console), *_ops(console), "tile", "--bits", "--all", "ideal"),
    "variables": _variables,
    "breakpoints": lambda console: map(str, console.run.breakpoints.items),
    "info": lambda _: ("queues", "vars", "ops", "epochs", "memory", "breakpoints"),
    "commands": lambda _: (*COMMANDS, "expressions"),
    "steps": lambda _: (*BACK, "continue"),
    "tile": lambda _: ("tile",),
}  # fmt: skip
"""By what a command takes."""


def complete(console: Console, text: str) -> tuple[int, list[str]]:
    """Where the word begins that is being typed at the end of `text`, and what it may become."""
    begin = max((text.rfind(mark) for mark in _BREAKS), default=-1) + 1
    word = text[begin:]
    first = text.lstrip().partition(" ")[0]
    if " " not in text.lstrip():
        return begin, [name for name in COMMANDS if name.startswith(word)]
    try:
        found = find(first)
    except HostError:
        return begin, []
    offers: dict[str, None] = {}
    within = " if " in text or text[: begin + 1].count("(") > text[: begin + 1].count(")")
    if within or found.name in ("print", "condition"):
        every = (*_functions(), *_queues(console), *_ops(console), *_variables(console), *WORDS, "ideal", "and", "or")
        offers |= dict.fromkeys(every)
    if not within:
        for kind in found.takes:
            offers |= dict.fromkeys(OFFERS[kind](console))
    return begin, [name for name in offers if name.startswith(word)]
