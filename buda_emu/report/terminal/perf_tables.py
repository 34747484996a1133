"""The tables of `buda-emu perf`: epochs, and the ops of each, as much of them as is asked for."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from buda_emu.checker.suggest import near
from buda_emu.checker.text import plural
from buda_emu.errors import HostError
from buda_emu.report.terminal.text import number, table, whole, wrapped

if TYPE_CHECKING:  # the parser of the command line reads SORTS, and needs no numpy
    from buda_emu.netlist.model import Netlist
    from buda_emu.timing.figures import OpFigures
    from buda_emu.timing.result import EpochReport, PerfRun

Row: TypeAlias = "tuple[OpFigures, float]"
"""An op and the cycles that it costs."""

SORTS: Final[dict[str, Callable[[Row], Any]]] = {
    "cycles": lambda row: -row[1],
    "math": lambda row: -row[0].math,
    "input": lambda row: -row[0].waiting_for_input,
    "room": lambda row: -row[0].waiting_for_room,
    "cores": lambda row: -row[0].cores,
    "name": lambda row: row[0].op,
    "type": lambda row: (row[0].type, -row[1]),
}
"""What ops can be sorted by: figures from the greatest on, words from a to z."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What is printed: of each epoch the `top` ops `by` a key of SORTS (in the netlist's order without), only `ops` and
    `epochs` with such names; patterns with `*` are names, too, and so is the number of an epoch."""

    top: int | None = None
    by: str | None = None
    ops: Sequence[str] = ()
    epochs: Sequence[str] = ()

    def of_epochs(self, epochs: "Sequence[EpochReport]") -> "list[tuple[int, EpochReport]]":
        """Numbers, from 1, and epochs. Raises HostError for a name that none has."""
        numbered = list(enumerate(epochs, 1))
        for name in self.epochs:
            if not any(_is_epoch(name, *item) for item in numbered):
                names = list(dict.fromkeys(graph for epoch in epochs for graph in epoch.graphs))
                raise HostError(f"--epoch {name}: no such epoch{_near(name, names)}; they have numbers from 1 on")
        ops = list(dict.fromkeys(item.op for epoch in epochs for item in epoch.timing.ops))
        for name in self.ops:
            if not any(fnmatchcase(op, name) for op in ops):
                raise HostError(f"--op {name}: no such op{_near(name, ops)}; patterns such as '*norm*' are names, too")
        return [
            (index, epoch)
            for index, epoch in numbered
            if not self.epochs or any(_is_epoch(name, index, epoch) for name in self.epochs)
            if not self.ops or any(self._wants(item.op) for item in epoch.timing.ops)
        ]

    def of_ops(self, rows: "Iterable[Row]") -> "list[Row]":
        """The ops of an epoch that are printed, in that order."""
        found = [row for row in rows if self._wants(row[0].op)]
        by = self.by or ("cycles" if self.top is not None else None)
        if by is not None:
            found.sort(key=SORTS[by])
        return found[: self.top]

    def _wants(self, op: str) -> bool:
        return not self.ops or any(fnmatchcase(op, name) for name in self.ops)


def _is_epoch(name: str, index: int, epoch: "EpochReport") -> bool:
    return name == str(index) or any(fnmatchcase(graph, name) for graph in (*epoch.graphs, " + ".join(epoch.graphs)))


def _near(name: str, names: Sequence[str]) -> str:
    hint = near(name, names)
    return f" ({hint})" if hint else ""


def epochs_table(run: "PerfRun", epochs: "Sequence[tuple[int, EpochReport]]") -> str:
    """A row for each, the slowest marked."""
    slowest = max((epoch.pace for _, epoch in epochs), default=0.0)
    figures = ("runs", "inputs", "cycles per input", "inputs per second", "first input", "loading", "load %")
    return table(
        ("#", "graph", "program", *figures, "bottleneck"),
        (
            (
                str(index),
                " + ".join(epoch.graphs),
                epoch.program,
                whole(epoch.runs),
                whole(epoch.timing.inputs),
                whole(epoch.pace),
                number(1 / run.seconds(epoch.pace)),
                whole(epoch.timing.first_input),
                whole(epoch.load.cycles),
                f"{100 * epoch.load_share:.1f}",
                epoch.bottleneck.name,
            )
            for index, epoch in epochs
        ),
        right=(0, 3, 4, 5, 6, 7, 8, 9),
        marked=[row for row, (_, epoch) in enumerate(epochs) if epoch.pace == slowest] if len(epochs) > 1 else (),
    )


class Sources:
    """Where cycles of ops come from, a letter for each kind of it: said once, not in every row."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}

    def letter(self, provenance: str) -> str:
        """a, b, ... z, a1, b1, ..."""
        count = len(self._letters)
        return self._letters.setdefault(provenance, f"{chr(ord('a') + count % 26)}{count // 26 or ''}")

    @property
    def meanings(self) -> list[tuple[str, str]]:
        """(letter, where the cycles come from) of each that was asked for."""
        return [(letter, provenance) for provenance, letter in self._letters.items()]

    def lines(self) -> Iterator[str]:
        """What the letters mean."""
        if self._letters:
            yield "cycles are (from):"
            for letter, provenance in self.meanings:
                yield wrapped(f"  {letter}  {provenance}", "     ")


def ops_lines(
    netlist: "Netlist", run: "PerfRun", epoch: "EpochReport", selection: Selection, sources: Sources
) -> Iterator[str]:
    """The table of an epoch's ops, the one that holds it back with a star, and how many are left out."""
    from buda_emu.timing.figures import op_figures

    costs = (op.cost.cycles for op in epoch.timing.ops)
    rows = selection.of_ops(zip(op_figures(netlist, run, epoch), costs, strict=True))
    holds = epoch.bottleneck.name
    yield table(
        ("op", "type", "cores", "cycles", "math %", "waits for input", "waits for room", "from"),
        (
            (
                f"{item.op} *" if item.op == holds else item.op,
                item.type,
                whole(item.cores),
                whole(cost),
                f"{100 * item.math / max(epoch.pace, 1.0):.1f}",
                whole(item.waiting_for_input),
                whole(item.waiting_for_room),
                sources.letter(item.provenance),
            )
            for item, cost in rows
        ),
        right=(2, 3, 4, 5, 6),
        whole=(7,),
        marked=[index for index, (item, _) in enumerate(rows) if item.op == holds],
    )
    left = len(epoch.timing.ops) - len(rows)
    if left:
        yield f"... and {plural(left, 'more op')}"
