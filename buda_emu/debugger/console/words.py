"""Words of a command: counts, tiles, choices, each refused with what was probably meant."""

import re
from collections.abc import Iterable
from typing import Final

from buda_emu.checker.suggest import near
from buda_emu.errors import HostError

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
