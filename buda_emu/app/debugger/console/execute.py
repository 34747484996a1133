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
    """Execute a command line and return the answer, of kind "nothing" for an empty line or a comment. While changes by
    the user are in effect, answers about the run end with a list of them. Raises HostError for an unknown command, and
    the errors of the command."""
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
    """Return the line that an empty line after `line` executes: the same one for a command that can be repeated (of
    `list` only the word, so that it goes on), else "". Raises HostError for an unknown command."""
    word = line.strip().partition(" ")[0]
    if not word or not find_command(word).repeats:
        return ""
    return word if find_command(word).name == "list" else line


_BREAKS: Final = " ()[],<>=!+*/%"


def _queue_names(console: Console) -> Iterable[str]:
    """Return the names of queues and rams, and the model's names for them."""
    return (*console.run.netlist.queues, *console.run.names.labels)


def _op_references(console: Console) -> Iterable[str]:
    """Return references to all ops, such as `op:exp`."""
    return (f"op:{name}" for name in console.run.names.ops)


def _function_beginnings() -> Iterable[str]:
    """Return the names of functions of expressions, each with an open parenthesis."""
    return (f"{name}(" for name in (*TENSOR_FUNCTIONS, *PAIR_FUNCTIONS, *POINTER_FUNCTIONS))


def _variable_names(console: Console) -> Iterable[str]:
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
    "queues": _queue_names,
    "tensors": lambda console: (*_queue_names(console), *_op_references(console), "tile", "--bits", "--all", "ideal"),
    "variables": _variable_names,
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
    """Return all words that completion offers in an expression."""
    names = (*_function_beginnings(), *_queue_names(console), *_op_references(console), *_variable_names(console))
    return (*names, *WORDS, "ideal", "and", "or")
