"""Columns of printed tables for tests."""

from collections.abc import Sequence


def is_right_aligned(lines: Sequence[str], heading: str) -> bool:
    """Whether all cells under a heading end where it ends: a table's lines, of which no cell is empty."""
    end = lines[0].index(heading) + len(heading)
    return all(line[end - 1 : end + 1].rstrip() and line[end : end + 2].strip() == "" for line in lines)


def table_with(text: str, heading: str) -> list[str]:
    """Its lines: from the first with that heading to a blank one."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if heading in line)
    last = next((number for number in range(first, len(lines)) if not lines[number].strip()), len(lines))
    return lines[first:last]
