"""Execution, repetition and completion of command lines."""

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Final

from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.breakpoints import WORDS as PLACES
from buda_emu.app.debugger.console import changing, inspecting, running
from buda_emu.app.debugger.console.console import COMMANDS, Console, find_command
from buda_emu.app.debugger.expressions import PAIR_FUNCTIONS, POINTER_FUNCTIONS, TENSOR_FUNCTIONS, WORDS
from buda_emu.app.debugger.machine.backwards import BACK_STEPS
from buda_emu.support.errors import HostError

TABLES: Final[tuple[ModuleType, ...]] = (running, inspecting, changing)
"""The modules that define commands: importing them fills the table."""


def execute(console: Console, line: str) -> Answer:
    """Execute one line and return the answer; while the user's changes are in effect, answers about the run end with a
    list of them. Raises HostError, and the errors of the command."""
    word, _, rest = line.strip().partition(" ")
    if not word or word.startswith("#"):
        return answer("nothing", [])
    entry = find_command(word)
    result = entry.act(console, rest.strip())
    changed = console.run.changed
    if changed and entry.group in ("going", "going back", "looking"):
        return Answer(result.kind, (*result.lines, f"(changed: {'; '.join(changed)})"), result.data)
    return result


def line_to_repeat(line: str) -> str:
    """Return the line that an empty line after this one executes: the same for commands that can be repeated, else
    ""."""
    word = line.strip().partition(" ")[0]
    if not word or not find_command(word).repeats:
        return ""
    return word if find_command(word).name == "list" else line


_BREAKS: Final = " ()[],<>=!+*/%"


def _queues(console: Console) -> Iterable[str]:
    """Return the names of queues and rams, and the model's names for them."""
    return (*console.run.netlist.queues, *console.run.names.labels)


def _ops(console: Console) -> Iterable[str]:
    """Return references to all ops."""
    return (f"op:{name}" for name in console.run.names.ops)


def _functions() -> Iterable[str]:
    """Return the functions of expressions, with an open parenthesis."""
    return (f"{name}(" for name in (*TENSOR_FUNCTIONS, *PAIR_FUNCTIONS, *POINTER_FUNCTIONS))


def _variables(console: Console) -> Iterable[str]:
    """Return the variables of the running program."""
    variables = console.run.engine.variables
    if variables is None:
        return ()
    return variables.snapshot()


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
    "steps": lambda _: (*BACK_STEPS, "continue"),
    "tile": lambda _: ("tile",),
}  # fmt: skip
"""The words that completion offers, by the kind that a command takes."""


def complete(console: Console, text: str) -> tuple[int, list[str]]:
    """Return where the word begins that is being typed at the end of `text`, and the words that it may become."""
    begin = max((text.rfind(mark) for mark in _BREAKS), default=-1) + 1
    word = text[begin:]
    first = text.lstrip().partition(" ")[0]
    if " " not in text.lstrip():
        return begin, [name for name in COMMANDS if name.startswith(word)]
    try:
        entry = find_command(first)
    except HostError:
        return begin, []
    offers: dict[str, None] = {}
    before = text[: begin + 1]
    within = " if " in text or before.count("(") > before.count(")")
    if within or entry.name in ("print", "condition"):
        offers |= dict.fromkeys(_words_of_expressions(console))
    if not within:
        for kind in entry.takes:
            offers |= dict.fromkeys(OFFERS[kind](console))
    return begin, [name for name in offers if name.startswith(word)]


def _words_of_expressions(console: Console) -> tuple[str, ...]:
    """Return all that may stand in an expression."""
    names = (*_functions(), *_queues(console), *_ops(console), *_variables(console))
    return (*names, *WORDS, "ideal", "and", "or")
