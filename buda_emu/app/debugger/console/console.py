"""The state of a console between two commands, the table of commands, and the parsing of arguments that several
commands take."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from buda_emu.app.debugger import inspection
from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.inside_op import UnitStep, trace_inside_op
from buda_emu.app.debugger.machine.stop import Kind, Stop
from buda_emu.app.debugger.session import Session
from buda_emu.support.checker.suggest import hint_in_parentheses
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass

_MAX_DIGITS: Final = 9  # so that any number fits 32 bits
_INDEX: Final = rf"\d{{1,{_MAX_DIGITS}}}"
_TILE: Final = re.compile(rf"(?:({_INDEX})\s*,\s*)?({_INDEX})\s*,\s*({_INDEX})")


def parse_count(text: str, default: int) -> int:
    """Parse a number of 1 or more; an empty text means `default`. Raises HostError."""
    text = text.strip()
    if not text:
        return default
    if not text.isdecimal() or len(text) > _MAX_DIGITS or not int(text):
        raise HostError(f"how often is a number of 1 or more, of at most {_MAX_DIGITS} digits, not {text[:20]!r}")
    return int(text)


def parse_number(text: str, meaning: str) -> int:
    """Parse an integer of 0 or more, in decimal, 0x, 0o or 0b notation; `meaning` names it in the error. Raises
    HostError."""
    try:
        integer = int(text.strip(), 0)
    except ValueError:
        integer = -1
    if integer < 0:
        raise HostError(f"{meaning} is a number of 0 or more, not {text.strip()[:20]!r}")
    return integer


def require_choice(word: str, allowed: Iterable[str], problem: str) -> str:
    """Return the word if it is allowed. Raises HostError that begins with `problem` and lists the allowed words."""
    choices = tuple(allowed)
    if word not in choices:
        hint = hint_in_parentheses(word, choices)
        raise HostError(f"{problem} {', '.join(choices)}, not {word!r}{hint}")
    return word


def parse_tile(text: str) -> tuple[int, int, int]:
    """Parse `r,c` or `t,r,c`. Raises HostError."""
    indices = _TILE.fullmatch(text.strip())
    if indices is None:
        raise HostError(f"a tile is row,column or t,row,column, each from 0, not {text.strip()[:40]!r}")
    return int(indices[1] or 0), int(indices[2]), int(indices[3])


def split_tile(text: str) -> tuple[str, tuple[int, int, int] | None, str]:
    """Split `q[0] tile 1,2 rest` into the text before `tile`, the tile (t, row, column) or None, and the text after it.
    Raises HostError."""
    selection = re.search(r"\btile\s+((?:\d+\s*,\s*)?\d+\s*,\s*\d+)", text)
    if selection is None:
        if re.search(r"\btile\b", text):
            raise HostError("after `tile` row,column or t,row,column, each from 0")
        return text.strip(), None, ""
    return text[: selection.start()].strip(), parse_tile(selection[1]), text[selection.end() :].strip()


def split_flags(text: str, allowed: tuple[str, ...]) -> tuple[str, set[str]]:
    """Return the words of a text without its `--flags`, joined by spaces, and the set of flags. Raises HostError for a
    flag that is not allowed."""
    words: list[str] = []
    flags: set[str] = set()
    for word in text.split():
        if word.startswith("--"):
            flags.add(require_choice(word, allowed, "it takes"))
        else:
            words.append(word)
    return " ".join(words), flags


@dataclass(slots=True)
class TileSteps:
    """The unit steps of one tile of an op, which the user walks through. `equal` is whether the last of them packs what
    the run gave; `at` is the index of the current step."""

    op: str
    tile: tuple[int, int, int]
    steps: list[UnitStep]
    equal: bool | None
    at: int = 0


class Console:
    """A console on one session. `quit` becomes True when no more lines are to be read."""

    def __init__(self, run: Session) -> None:
        self.run = run
        self.quit = False
        self.inner: TileSteps | None = None
        self.listed: int | None = None  # the line after those that `list` showed last

    # ---------------------------------------------------------------------------------------------------- going
    def go(self, kind: Kind, times: int = 1, index: int | None = None) -> Answer:
        """Run forward by `times` steps of a kind, or to the instruction `index`, and describe where the run stopped."""
        return self.describe_stop(self.run.go(kind, times, index))

    def describe_here(self) -> Answer:
        """Describe where the run stands."""
        return self.describe_stop(self.run.stop)

    def describe_stop(self, stop: Stop) -> Answer:
        """Describe a stop: the reason, the place, and the line of the netlist."""
        self.listed = None
        place = inspection.describe_place(self.run)
        lines: list[str] = []
        if stop.reason == "breakpoint":
            numbers = ", ".join(map(str, stop.breakpoints))
            lines.append(f"breakpoint {numbers}: {stop.text}")
        elif stop.reason == "error":
            lines += inspection.explain_stop(self.run).lines
        elif stop.reason == "interrupted":
            lines.append("interrupted")
        if stop.reason != "error":
            lines += place.lines
            lines += self._source_lines(place.data["line"])
        data: dict[str, Any] = {**inspection.stop_data(self.run), "where": place.data}
        return answer("stop", lines, **data)

    def _source_lines(self, line: int | None) -> list[str]:
        """Return the line of the netlist with this number as text to print; none for None or a number beyond the
        end."""
        text = self.run.names.lines
        if line is None or line > len(text):
            return []
        return [f"  {line:>5}  {text[line - 1].strip()}"]

    # ---------------------------------------------------------------------------------------------- inside of an op
    def into(self, text: str) -> Answer:
        """Begin to step through the units inside of the op where the run stands. Raises HostError."""
        _, tile, rest = split_tile(text)
        if tile is None and text:
            tile = parse_tile(text)
        if rest:
            raise HostError(f"into tile R,C: {rest!r} is too much")
        op = self.run.engine.op_now
        if op is None:
            raise HostError("the run is not at an op: `next` or `break` goes to one")
        steps, equal = trace_inside_op(self.run, op.name, tile or (0, 0, 0))
        if not steps:
            raise HostError(f"op {op.name} ({op.type}) moves tiles as they lie in L1: no unit computes")
        self.inner = TileSteps(op.name, tile or (0, 0, 0), steps, equal)
        return self._tile_step_answer(listed=True)

    def move_inside(self, by: int) -> Answer:
        """Move by `by` unit steps, backwards if negative, and describe the step. Beyond the first or the last, leave
        the op and describe where the run stands."""
        assert self.inner is not None
        self.inner.at += by
        if not 0 <= self.inner.at < len(self.inner.steps):
            return self.leave_op_then(self.describe_here)
        return self._tile_step_answer()

    def leave_op_then(self, then: Callable[[], Answer]) -> Answer:
        """End the steps inside of the op, and return the answer of `then()`."""
        self.inner = None
        return then()

    def _tile_step_answer(self, *, listed: bool = False) -> Answer:
        """Describe the current unit step; `listed` adds how many steps there are, and whether they end in the run's
        result."""
        inner = self.inner
        assert inner is not None
        step = inner.steps[inner.at]
        tile = ",".join(map(str, inner.tile))
        lines: list[str] = []
        if listed:
            check = {True: "as the run gave it", False: "NOT what the run gave", None: "the op has not run yet"}
            lines.append(f"op {inner.op} tile {tile}: {len(inner.steps)} steps, packed: {check[inner.equal]}")
        lines.append(f"{inner.at + 1} of {len(inner.steps)}: {step.unit}: {step.what} ({step.format})")
        lines += ["  " + " ".join(f"{word:08x}" for word in row[:8]) for row in step.words[:8].tolist()]
        if step.exponents is not None:
            lines.append(
                "  shared exponents " + " ".join(f"{exponent:02x}" for exponent in step.exponents[:8].reshape(-1))
            )
        data: dict[str, Any] = {
            "op": inner.op,
            "tile": list(inner.tile),
            "number": inner.at + 1,
            "steps": len(inner.steps),
            "equal": inner.equal,
            "step": step.as_json(),
        }
        return answer("inside", lines, **data)


CommandFunction = Callable[[Console, str], Answer]


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the console. `words` is its description, the docstring of its function; `takes` are the kinds of
    words that completion offers after it, keys of `execute.OFFERS`."""

    name: str
    usage: str
    example: str
    words: str
    act: CommandFunction
    group: str
    aliases: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    repeats: bool = False  # an empty line repeats the command

    def help(self) -> list[str]:
        """Return the lines of the command's help, the example first."""
        also = f" (also: {', '.join(self.aliases)})" if self.aliases else ""
        return [f"example: {self.example}", f"usage: {self.usage}{also}", self.words]


COMMANDS: Final[dict[str, Command]] = {}
"""The commands by name, in the order of the help."""
GROUPS: Final = ("going", "going back", "stopping", "looking", "changing", "other")


def command(
    usage: str,
    example: str,
    group: str,
    *,
    aliases: tuple[str, ...] = (),
    takes: tuple[str, ...] = (),
    repeats: bool = False,
) -> Callable[[CommandFunction], CommandFunction]:
    """Return a decorator that puts a function into the table of commands; the first word of `usage` is the command's
    name."""
    name = usage.split()[0]

    def put(act: CommandFunction) -> CommandFunction:
        """Enter the function in the table of commands, with its docstring as the help text, and return it
        unchanged."""
        words = " ".join((act.__doc__ or "").split())
        COMMANDS[name] = Command(
            name=name,
            usage=usage,
            example=example,
            words=words,
            act=act,
            group=group,
            aliases=aliases,
            takes=takes,
            repeats=repeats,
        )
        return act

    return put


def find_command(word: str) -> Command:
    """Return a command by its name, an alias, or the beginning of only one name. Raises HostError that suggests the
    nearest."""
    if word in COMMANDS:
        return COMMANDS[word]
    for entry in COMMANDS.values():
        if word in entry.aliases:
            return entry
    completions = [name for name in COMMANDS if name.startswith(word)]
    if len(completions) == 1:
        return COMMANDS[completions[0]]
    if completions:
        raise HostError(f"{word!r} is the beginning of {', '.join(completions)}")
    words = list(COMMANDS)
    for entry in COMMANDS.values():
        words += [alias for alias in entry.aliases if len(alias) > 1]
    raise HostError(f"no command {word!r}{hint_in_parentheses(word, words)}; `help` lists them")
