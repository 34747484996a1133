"""What a command is, and the table of all of them."""

from collections.abc import Callable
from typing import Final

from buda_emu.checker.suggest import near
from buda_emu.debugger.answer import Answer
from buda_emu.debugger.console.console import Console
from buda_emu.errors import HostError
from buda_emu.records import dataclass

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
        COMMANDS[name] = Command(name, usage, example, words, act, group, aliases, takes, repeats)
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
