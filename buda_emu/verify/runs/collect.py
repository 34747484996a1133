"""Which netlists a test is about: files, folders and patterns, narrowed by an expression."""

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from buda_emu.checker.suggest import near
from buda_emu.errors import HostError
from buda_emu.netlist.known import looks_like_netlist

_TOKEN: Final = re.compile(r"\s*(?:(\(|\))|([^\s()]+))")

Selects = Callable[[str], bool]


def collect(paths: Iterable[str]) -> list[str]:
    """Files in the order of the paths, a folder's by name, each once.

    A folder gives the YAML files below it that have sections of a netlist; a named file or a pattern gives what it
    names. Raises HostError for a path that gives nothing.
    """
    found: dict[str, None] = {}
    for path in paths:
        before = len(found)
        files = list(_files(path))
        if not files:
            raise HostError(_nothing(path))
        for file in files:
            found.setdefault(file)
        if len(found) == before:
            continue  # named twice
    return list(found)


def part(names: Sequence[str], place: int, count: int) -> list[str]:
    """The `place`-th of `count` parts, from 1. Every name is in one part, and parts are the same on every machine."""
    return list(names[place - 1 :: count])


def _files(path: str) -> Iterator[str]:
    if os.path.isdir(path):  # noqa: PTH112 - names are shown as they were given
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                file = os.path.join(folder, name)  # noqa: PTH118
                if looks_like_netlist(file):
                    yield file
    elif os.path.exists(path):  # noqa: PTH110
        yield path
    elif glob.has_magic(path):
        for match in sorted(glob.glob(path, recursive=True)):  # noqa: PTH207
            yield from _files(match)


def _nothing(path: str) -> str:
    if os.path.isdir(path):  # noqa: PTH112
        return f"{path}: no netlist in this folder"
    if glob.has_magic(path):
        return f"{path}: no file matches this pattern"
    parent = Path(path).parent
    names = sorted(item.name for item in parent.iterdir()) if parent.is_dir() else []
    hint = near(Path(path).name, names)
    return f"{path}: there is no such file{f' ({hint})' if hint else ''}"


def selection(expression: str) -> Selects:
    """A test on paths from an expression of words, `and`, `or`, `not` and parentheses: a word selects the paths that it
    is part of, whatever the case. Raises HostError for anything else."""
    return _Parser(expression).parse()


class _Parser:
    """`not` binds before `and`, `and` before `or`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [match[1] or match[2] for match in _TOKEN.finditer(text)]
        self._next = 0

    def parse(self) -> Selects:
        """The whole expression."""
        result = self._either()
        if self._next < len(self._tokens):
            raise self._error(f"{self._tokens[self._next]!r} is not expected")
        return result

    def _either(self) -> Selects:
        parts = [self._both()]
        while self._take("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else lambda path: any(part(path) for part in parts)

    def _both(self) -> Selects:
        parts = [self._one()]
        while self._take("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else lambda path: all(part(path) for part in parts)

    def _one(self) -> Selects:
        negated = False
        while self._take("not"):
            negated = not negated
        inner = self._word()
        return (lambda path: not inner(path)) if negated else inner

    def _word(self) -> Selects:
        if self._take("("):
            inner = self._either()
            if not self._take(")"):
                raise self._error("a ( is not closed")
            return inner
        if self._next == len(self._tokens):
            raise self._error("a word is missing at the end")
        word = self._tokens[self._next]
        if word in ("and", "or", ")"):
            raise self._error(f"a word is missing before {word!r}")
        self._next += 1
        folded = word.lower()
        return lambda path: folded in path.lower()

    def _take(self, token: str) -> bool:
        if self._next < len(self._tokens) and self._tokens[self._next] == token:
            self._next += 1
            return True
        return False

    def _error(self, text: str) -> HostError:
        return HostError(f"-k {self._text!r}: {text}")
