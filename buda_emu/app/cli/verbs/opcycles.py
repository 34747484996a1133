"""`buda-emu opcycles`: predict the cycles of the ops that a table lists, one op on one core in each row."""

import argparse
import csv
import io
from collections.abc import Iterator, Mapping, Sequence

from buda_emu.app.cli.output import say, write_printable
from buda_emu.performance.timing.op.cost import Model, op_cost
from buda_emu.performance.timing.op.table import REQUIRED, read_row
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, UnsupportedError
from buda_emu.support.files import read_whole

_MOST_MIB = 64  # of a table of cycles; larger files are something else, and would fill memory
ADDED = ("predicted_cycles", "provenance")
"""The columns that the verb adds."""


def main(args: argparse.Namespace) -> int:
    """Add the predicted cycles to a table. Exit code 0; failures are raised."""
    header, rows = _read_table(args.file)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*header, *ADDED))
    writer.writerows(_predict_rows(args.file, header, rows, args.model))
    if args.output is None:
        say(text.getvalue().rstrip("\n"))
    else:
        write_printable(args.output, text.getvalue())
    return 0


def _read_table(name: str) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a CSV file. Blank lines are kept, so that numbers of rows are numbers of lines.
    Raises HostError for a file that is no table, or lacks a column, or has one twice or a predicted one already."""
    try:
        text = read_whole(name, _MOST_MIB).decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise HostError(f"{name}: not a CSV table ({error})") from error
    header: list[str] = []
    if rows:
        header = [column.strip() for column in rows[0]]
    missing = [column for column in REQUIRED if column not in header]
    if missing:
        raise HostError(f"{name}: row 1: the header lacks {', '.join(missing)}")
    twice = sorted({column for column in header if header.count(column) > 1})
    if twice:
        raise HostError(f"{name}: row 1: the header has {', '.join(twice)} twice")
    clash = [column for column in ADDED if column in header]
    if clash:
        raise HostError(f"{name}: row 1: the header has {', '.join(clash)} already")
    return header, rows[1:]


def _predict_rows(name: str, header: Sequence[str], rows: Sequence[list[str]], model: Model) -> Iterator[list[str]]:
    """Yield each row of the table `name`, without blank ones, with the predicted cycles and their provenance. Raises
    HostError or UnsupportedError, which name the row."""
    for number, row in enumerate(rows, 2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            raise HostError(f"{name}: row {number}: {plural(len(row), 'cell')} under a header of {len(header)}")
        cells: Mapping[str, str] = dict(zip(header, row, strict=True))
        try:
            cost = op_cost(read_row(cells), model=model)
        except HostError as error:
            raise HostError(f"{name}: row {number}: {error}") from error
        except UnsupportedError as error:
            raise UnsupportedError(f"{name}: row {number}: {error}") from error
        yield [*row, f"{cost.cycles:.2f}", cost.provenance]
