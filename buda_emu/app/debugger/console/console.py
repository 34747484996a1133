"""The state of a console between two commands, and its description of the current place of the run."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from buda_emu.app.debugger import inspection
from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.inside_op import UnitStep
from buda_emu.app.debugger.machine.stop import Kind, Stop
from buda_emu.app.debugger.session import Session
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass

_MOST_DIGITS: Final = 9
_INDEX: Final = rf"\d{{1,{_MOST_DIGITS}}}"
_TILE: Final = re.compile(rf"(?:({_INDEX})\s*,\s*)?({_INDEX})\s*,\s*({_INDEX})")


def count(text: str, default: int) -> int:
    """A number of 1 or more. Raises HostError."""
    text = text.strip()
    if not text:
        return default
    if not text.isdecimal() or len(text) > _MOST_DIGITS or not int(text):
        raise HostError(f"how often is a number of 1 or more, of at most {_MOST_DIGITS} digits, not {text[:20]!r}")
    return int(text)


def number(text: str, what: str) -> int:
    """Of 0 or more, also 0x. Raises HostError."""
    try:
        found = int(text.strip(), 0)
    except ValueError:
        found = -1
    if found < 0:
        raise HostError(f"{what} is a number of 0 or more, not {text.strip()[:20]!r}")
    return found


def one_of(word: str, known: Iterable[str], what: str) -> str:
    """Raises HostError for another word."""
    choices = tuple(known)
    if word not in choices:
        hint = near(word, choices)
        raise HostError(f"{what} {', '.join(choices)}, not {word!r}{f' ({hint})' if hint else ''}")
    return word


def tile_of(text: str) -> tuple[int, int, int]:
    """`r,c` or `t,r,c`. Raises HostError."""
    found = _TILE.fullmatch(text.strip())
    if found is None:
        raise HostError(f"a tile is row,column or t,row,column, each from 0, not {text.strip()[:40]!r}")
    return int(found[1] or 0), int(found[2]), int(found[3])


def split_tile(text: str) -> tuple[str, tuple[int, int, int] | None, str]:
    """`q[0] tile 1,2 rest` into what stands before `tile`, the tile, and the rest."""
    found = re.search(r"\btile\s+((?:\d+\s*,\s*)?\d+\s*,\s*\d+)", text)
    if found is None:
        if re.search(r"\btile\b", text):
            raise HostError("after `tile` row,column or t,row,column, each from 0")
        return text.strip(), None, ""
    return text[: found.start()].strip(), tile_of(found[1]), text[found.end() :].strip()


def flags_of(text: str, known: tuple[str, ...]) -> tuple[str, set[str]]:
    """The text without its `--flags`, and these. Raises HostError for another."""
    kept: list[str] = []
    found: set[str] = set()
    for word in text.split():
        if word.startswith("--"):
            found.add(one_of(word, known, "it takes"))
        else:
            kept.append(word)
    return " ".join(kept), found


@dataclass(slots=True)
class Inner:
    """Inside of an op: its units' steps for one tile, and the one that is looked at; `equal`: whether they end in what
    the run gave."""

    op: str
    tile: tuple[int, int, int]
    steps: list[UnitStep]
    equal: bool | None
    at: int = 0


class Console:
    """Of a session. `quit`: nothing more is to be read."""

    def __init__(self, run: Session) -> None:
        self.run = run
        self.quit = False
        self.inner: Inner | None = None
        self.listed: int | None = None  # the line after the last one that `list` showed

    # ---------------------------------------------------------------------------------------------------- going
    def go(self, kind: Kind, times: int = 1, index: int | None = None) -> Answer:
        """Forward, and where that led."""
        return self.stopped(self.run.go(kind, times, index))

    def here(self) -> Answer:
        """Where it stands."""
        return self.stopped(self.run.stop)

    def stopped(self, stop: Stop) -> Answer:
        """What is told of a stop: why, where, and the line of the netlist."""
        self.listed = None
        place = inspection.where(self.run)
        lines: list[str] = []
        if stop.reason == "breakpoint":
            numbers = ", ".join(map(str, stop.breakpoints))
            lines.append(f"breakpoint {numbers}: {stop.text}")
        elif stop.reason == "error":
            lines += inspection.why_not(self.run).lines
        elif stop.reason == "interrupted":
            lines.append("interrupted")
        if stop.reason != "error":
            lines += place.lines
            lines += self._source(place.data["line"])
        data: dict[str, Any] = {**inspection.stop_data(self.run), "where": place.data}
        return answer("stop", lines, **data)

    def _source(self, line: int | None) -> list[str]:
        text = self.run.names.lines
        return [f"  {line:>5}  {text[line - 1].strip()}"] if line is not None and line <= len(text) else []

    # ---------------------------------------------------------------------------------------------- inside of an op
    def into(self, text: str) -> Answer:
        """Begin to step inside of the op where the run stands."""
        from buda_emu.app.debugger.stepping_inside import inside

        _, tile, rest = split_tile(text)
        if tile is None and text:
            tile = tile_of(text)
        if rest:
            raise HostError(f"into tile R,C: {rest!r} is too much")
        op = self.run.engine.op_now
        if op is None:
            raise HostError("the run is not at an op: `next` or `break` goes to one")
        steps, equal = inside(self.run, op.name, tile or (0, 0, 0))
        if not steps:
            raise HostError(f"op {op.name} ({op.type}) moves tiles as they lie in L1: no unit computes")
        self.inner = Inner(op.name, tile or (0, 0, 0), steps, equal)
        return self._inner_answer(listed=True)

    def inner_move(self, by: int) -> Answer:
        """From unit to unit; beyond the last it leaves the op."""
        assert self.inner is not None
        self.inner.at += by
        if not 0 <= self.inner.at < len(self.inner.steps):
            return self.left_then(self.here)
        return self._inner_answer()

    def left_then(self, then: Callable[[], Answer]) -> Answer:
        """Leave the op."""
        self.inner = None
        return then()

    def _inner_answer(self, *, listed: bool = False) -> Answer:
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
            lines.append("  shared exponents " + " ".join(f"{one:02x}" for one in step.exponents[:8].reshape(-1)))
        data: dict[str, Any] = {
            "op": inner.op,
            "tile": list(inner.tile),
            "number": inner.at + 1,
            "steps": len(inner.steps),
            "equal": inner.equal,
            "step": step.as_json(),
        }
        return answer("inside", lines, **data)


Act = Callable[[Console, str], Answer]


@dataclass(frozen=True, slots=True)
class Command:
    """`words`: what it does, which its function's docstring says; `takes`: what completion offers after it, keys of
    `completion.OFFERS`."""

    name: str
    usage: str
    example: str
    words: str
    act: Act
    group: str
    aliases: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    repeats: bool = False  # an empty line does it again

    def help(self) -> list[str]:
        """The example first."""
        also = f" (also: {', '.join(self.aliases)})" if self.aliases else ""
        return [f"example: {self.example}", f"usage: {self.usage}{also}", self.words]


COMMANDS: Final[dict[str, Command]] = {}
"""By name, in the order of the help."""
GROUPS: Final = ("going", "going back", "stopping", "looking", "changing", "other")


def command(
    usage: str,
    example: str,
    group: str,
    *,
    aliases: tuple[str, ...] = (),
    takes: tuple[str, ...] = (),
    repeats: bool = False,
) -> Callable[[Act], Act]:
    """Puts a function into the table; the first word of `usage` is its name."""
    name = usage.split()[0]

    def put(act: Act) -> Act:
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


def find(word: str) -> Command:
    """By its name, an alias, or a beginning that only one has. Raises HostError that names the nearest."""
    if word in COMMANDS:
        return COMMANDS[word]
    for found in COMMANDS.values():
        if word in found.aliases:
            return found
    begun = [name for name in COMMANDS if name.startswith(word)]
    if len(begun) == 1:
        return COMMANDS[begun[0]]
    if begun:
        raise HostError(f"{word!r} is the beginning of {', '.join(begun)}")
    every = (*COMMANDS, *(alias for found in COMMANDS.values() for alias in found.aliases if len(alias) > 1))
    hint = near(word, every)
    raise HostError(f"no command {word!r}{f' ({hint})' if hint else ''}; `help` lists them")
