"""The coverage of the language as a page: every list, and how many netlists have each of its names."""

from buda_emu.report.pages.engine import Cell, Column, figure, name_cell, render, table
from buda_emu.support.checker.text import plural
from buda_emu.testing.coverage.report import Coverage, every_list


def coverage_page(coverage: Coverage, path: str) -> str:
    """Return the page of a coverage file; names that nothing exercises come first."""
    lists = [
        [subject, Cell(f"{exercised} of {total}", exercised / total, exercised / total), figure(len(missing))]
        for subject, exercised, total, missing in coverage.rows()
    ]
    names: list[list[Cell | str]] = []
    for subject, features in every_list().items():
        counts = coverage.counts[subject]
        for name in sorted(features, key=counts.__contains__):
            names.append([subject, name_cell(name), figure(counts.get(name, 0))])
    return str(
        render(
            "coverage.html",
            title=f"Coverage in {path}",
            facts=f"{plural(coverage.netlists, 'netlist')}, {coverage.percent:.1f} % of the language",
            lists=table((Column("list"), Column("exercised", "number"), Column("not", "number")), lists),
            names=table(
                (Column("list", choose=True), Column("name", "name"), Column("netlists", "number")), names, "name"
            ),
        )
    )
