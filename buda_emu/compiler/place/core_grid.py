"""The cores of one chip in one epoch."""

from collections.abc import Iterator


class CoreGrid:
    """Which cores are free, a row of them as the bits of a number."""

    def __init__(self, rows: int, columns: int) -> None:
        self._rows = [(1 << columns) - 1] * rows
        self._columns = columns

    def take(self, grid: tuple[int, int]) -> tuple[int, int] | None:
        """The first free rectangle, row by row; None where there is none."""
        at = next(self._free(grid), None)
        if at is not None:
            self.block(at, grid)
        return at

    def block(self, at: tuple[int, int], grid: tuple[int, int]) -> None:
        """Take a rectangle."""
        mask = (1 << grid[1]) - 1
        for row in range(at[0], at[0] + grid[0]):
            self._rows[row] &= ~(mask << at[1])

    def release(self, at: tuple[int, int], grid: tuple[int, int]) -> None:
        """Give a rectangle back."""
        mask = (1 << grid[1]) - 1
        for row in range(at[0], at[0] + grid[0]):
            self._rows[row] |= mask << at[1]

    def places(self, grid: tuple[int, int]) -> list[tuple[int, int]]:
        """All free rectangles."""
        return list(self._free(grid))

    def _free(self, grid: tuple[int, int]) -> Iterator[tuple[int, int]]:
        height, width = grid
        mask = (1 << width) - 1
        for top in range(len(self._rows) - height + 1):
            free = ~0
            for row in self._rows[top : top + height]:
                free &= row
            for left in range(self._columns - width + 1):
                if (free >> left) & mask == mask:
                    yield top, left

    @property
    def free(self) -> int:
        """Cores."""
        return sum(row.bit_count() for row in self._rows)
