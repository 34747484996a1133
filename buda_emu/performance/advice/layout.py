"""The cores on which the ops of an epoch stand, and how to make room for an op of another size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from buda_emu.netlist.model import Netlist, Op
from buda_emu.netlist.rules.graphs import rectangle

Cell = tuple[int, int]
Place = tuple[int, int, int, int]  # row, column, rows, columns
_MOST_MOVED = 6  # ops that make room for another one, at most


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of the ops of one epoch on one chip, by name. `grid` is the rows and columns of the chip's worker
    cores."""

    grid: tuple[int, int]
    places: Mapping[str, Place]

    @classmethod
    def of(cls, netlist: Netlist, graphs: Sequence[str], chip: int, grid: tuple[int, int]) -> "Layout":
        """Return where the ops of `graphs`, which run together, stand on a chip. `grid` is the rows and columns of its
        worker cores; ops on Ethernet cores are left out."""
        ops: list[Op] = []
        for name in graphs:
            if netlist.graphs[name].target_device == chip:
                ops += [op for op in netlist.graphs[name].ops if len(op.grid_loc) == 2 and not op.has("Ethernet")]
        return cls(grid, {op.name: _place(op) for op in ops})

    @property
    def free(self) -> frozenset[Cell]:
        """Return the cores on which no op stands."""
        rows, columns = self.grid
        every = set(product(range(rows), range(columns)))
        return frozenset(every.difference(*(cells(place) for place in self.places.values())))

    def room_for(self, name: str, rows: int, columns: int) -> dict[str, Place] | None:
        """Return new places with which the op `name` gets this many rows and columns of cores: its own and those of the
        ops that have to move for it; None if there is no room. Nothing is changed here.

        As few other ops as possible move, each keeps its shape, and the op stays near to where it was.
        """
        old_place = self.places[name]
        best: tuple[tuple[int, int], dict[str, Place]] | None = None
        for row in range(self.grid[0] - rows + 1):
            for column in range(self.grid[1] - columns + 1):
                place = row, column, rows, columns
                away = abs(row - old_place[0]) + abs(column - old_place[1])
                moved = self._new_places_of_others(name, place)
                if moved is not None and (best is None or (len(moved), away) < best[0]):
                    best = (len(moved), away), {name: place, **moved}
        if best is not None:
            return best[1]
        return None

    def _new_places_of_others(self, name: str, place: Place) -> dict[str, Place] | None:
        """Return new places for the ops other than `name` that stand where `place` is, which `name` shall get; None if
        one of them fits nowhere, or too many would move."""
        place_cells = cells(place)
        others = [
            other
            for other, other_place in self.places.items()
            if other != name and not place_cells.isdisjoint(cells(other_place))
        ]
        if len(others) > _MOST_MOVED:
            return None
        free = set(self.free | cells(self.places[name]))
        free.update(*(cells(self.places[other]) for other in others))
        free -= place_cells
        new_places: dict[str, Place] = {}
        for other in sorted(others, key=lambda other: -len(cells(self.places[other]))):
            new = _nearest(self.places[other], free)
            if new is None:
                return None
            new_places[other] = new
            free -= cells(new)
        return new_places


def cells(place: Place) -> frozenset[Cell]:
    """Return the (row, column) of each core of a place."""
    row, column, rows, columns = place
    return frozenset(product(range(row, row + rows), range(column, column + columns)))


def _place(op: Op) -> Place:
    """Return the rectangle of worker cores on which an op stands."""
    top, left, bottom, right = rectangle(op)
    return top, left, bottom - top, right - left


def _nearest(place: Place, free: set[Cell]) -> Place | None:
    """Return the place of the same shape on free cores that is nearest to `place`, None if there is none."""
    row, column, rows, columns = place
    fits = [cell for cell in free if cells((*cell, rows, columns)) <= free]
    if not fits:
        return None
    nearest = min(fits, key=lambda cell: (abs(cell[0] - row) + abs(cell[1] - column), cell))
    return (*nearest, rows, columns)
