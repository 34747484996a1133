"""What netlists exercise, as a page: each list, and every name with how many netlists have it."""

from buda_emu.report.pages.engine import Cell, Column, figure, named, render, table
from buda_emu.support.checker.text import plural
from buda_emu.testing.coverage.report import Coverage, every_list


def coverage_page(found: Coverage, path: str) -> str:
    """The page; names that nothing exercises come first."""
    lists = [
        [subject, Cell(f"{there} of {every}", there / every, there / every), figure(len(missing))]
        for subject, there, every, missing in found.rows()
    ]
    names = [
        [subject, named(name), figure(found.counts[subject].get(name, 0))]
        for subject, every in every_list().items()
        for name in sorted(every, key=lambda name: name in found.counts[subject])
    ]
    return str(
        render(
            "coverage.html",
            title=f"Coverage in {path}",
            facts=f"{plural(found.netlists, 'netlist')}, {found.percent:.1f} % of the language",
            lists=table((Column("list"), Column("exercised", "number"), Column("not", "number")), lists),
            names=table(
                (Column("list", choose=True), Column("name", "name"), Column("netlists", "number")), names, "name"
            ),
        )
    )
