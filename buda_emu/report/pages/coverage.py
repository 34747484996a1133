"""The coverage of the language as a page: every list, and how many netlists have each of its names."""

from dataclasses import dataclass
from math import ceil, log10
from urllib.parse import quote

from buda_emu.report.pages.engine import Cell, Column, figure, name_cell, render, table
from buda_emu.support.checker.text import plural
from buda_emu.testing.coverage.report import Coverage, Example, every_list

_SHADES = 7  # beside the one for names that nothing exercises


@dataclass(frozen=True, slots=True)
class NameShade:
    """A name of a list in the heat map: the id of its row, its shade from 0 to 7, and its tooltip."""

    id: str
    shade: int
    tip: str


@dataclass(frozen=True, slots=True)
class ListHeat:
    """A list in the heat map: its name, the id of its first row, how much of it is exercised, and its names."""

    name: str
    id: str
    sentence: str
    names: list[NameShade]


def coverage_page(coverage: Coverage, path: str) -> str:
    """Return the page of a coverage file; names that nothing exercises come first."""
    lists: list[list[Cell | str]] = []
    heat: list[ListHeat] = []
    names: list[tuple[list[Cell | str], str]] = []
    for number, (subject, exercised, total, missing) in enumerate(coverage.rows()):
        place = f"list-{number}"
        share = exercised / max(total, 1)
        lists.append(
            [
                Cell(subject, href=f"#{place}-0"),
                Cell(f"{exercised} of {total}", share, share),
                Cell(f"{100 * share:.0f} %", share),
                figure(len(missing)),
            ]
        )
        counts = coverage.counts[subject]
        examples = coverage.examples[subject]
        ordered = sorted(every_list()[subject], key=counts.__contains__)
        ids = {name: f"{place}-{position}" for position, name in enumerate(ordered)}
        shades = [
            NameShade(ids[name], _shade(counts.get(name, 0)), _tip(name, counts.get(name, 0), examples.get(name)))
            for name in every_list()[subject]
        ]
        heat.append(ListHeat(subject, f"{place}-0", f"{exercised} of {total}", shades))
        for name in ordered:
            count = counts.get(name, 0)
            share_of_netlists = min(count / max(coverage.netlists, 1), 1.0)
            cells = [subject, name_cell(name), figure(count, bar=share_of_netlists), _example_cell(examples.get(name))]
            names.append((cells, ids[name]))
    columns = (
        Column("list", choose=True),
        Column("name", "name"),
        Column("netlists", "number"),
        Column(
            "for example", "name", tip="of the netlists that have the name, the one that exercises the fewest names"
        ),
    )
    return str(
        render(
            "coverage.html",
            title=f"Coverage in {path}",
            facts=f"{plural(coverage.netlists, 'netlist')}, {coverage.percent:.1f} % of the language",
            heat=heat,
            shades=range(_SHADES + 1),
            lists=table(
                (
                    Column("list", "name"),
                    Column("exercised", "number"),
                    Column("share", "number"),
                    Column("not", "number"),
                ),
                lists,
            ),
            names=table(columns, [cells for cells, _ in names], "name"),
            ids=[place for _, place in names],
        )
    )


def _tip(name: str, count: int, example: Example | None) -> str:
    """Return the tooltip of a name: how many netlists have it, and which one for example."""
    tip = f"{name}: {plural(count, 'netlist')}"
    if example is None:
        return tip
    return f"{tip}, such as {example.netlist}"


def _example_cell(example: Example | None) -> Cell:
    """Return the cell with a link to the netlist that is an example of a name, empty for none."""
    if example is None:
        return Cell("")
    return name_cell(example.netlist, quote(example.netlist))


def _shade(count: int) -> int:
    """Return the shade of a name that `count` netlists have: 0 for none, 1 for one, and a further one for each half
    power of ten, up to `_SHADES`.
    """
    if count == 0:
        return 0
    return min(1 + ceil(log10(count) * 2), _SHADES)
