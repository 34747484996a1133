"""The lines of a netlist's file that say what an op or a queue is."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from buda_emu.netlist.model import Netlist, Op, Queue

MOST_LINES: Final = 40
"""Of one entry."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An op or queue as it is written. `place`: file and line, to be pasted."""

    name: str
    place: str
    line: int
    text: str


def entries(netlist: Netlist, names: Iterable[str]) -> list[Entry]:
    """Of these ops and queues, in the order of the file; none where the file is gone or has no such lines any more."""
    try:
        lines = Path(netlist.path).read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return []
    ops, found = netlist.ops, list[Entry]()
    for name in names:
        item = ops.get(name) or netlist.queues.get(name)
        if item is None:
            continue
        line = item.at().line
        text = list(_entry(lines, line, _written(item)))
        if text:
            found.append(Entry(name, f"{netlist.path}:{line}", line, "\n".join(text)))
    return sorted(found, key=lambda entry: (entry.line, entry.name))


def _written(item: Op | Queue) -> str:
    return getattr(item, "written_name", "") or item.name


def _entry(lines: list[str], line: int, name: str) -> Iterator[str]:
    """The line of a name, and what is indented below it."""
    if not 0 < line <= len(lines) or name not in lines[line - 1]:
        return
    inset = _indent(lines[line - 1])
    yield lines[line - 1][inset:]
    for text in lines[line : line + MOST_LINES]:
        if not text.strip() or _indent(text) <= inset:
            return
        yield text[inset:]


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
