#!/usr/bin/env python3
"""Holds the timing model against public silicon figures.

python -m benchmarks.scorecard                               # docs/timing/scorecard.md: what is missing or changed
python -m benchmarks.scorecard --only noc dram               # these cards again
python -m benchmarks.scorecard predict TABLE.csv -o OUT.csv  # a table with columns of modelled cycles
python -m benchmarks.scorecard fit noc.csv                   # fit the costs of transactions again
python -m benchmarks.scorecard fit metal.md                  # fit those of collectives
python -m benchmarks.scorecard intervals                     # find the errors of all figures again
"""

import argparse
import sys
from pathlib import Path

from buda_emu.support.errors import BudaError

from .cards import CARDS
from .page import PAGE, RESULTS, keep_result, missing, read_results, result_of, write_page
from .tables import predict_table


def main() -> int:
    """Carry out one command. An error of the table ends it with a message."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scorecard",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", nargs="+", default=[], choices=tuple(CARDS), metavar="CARD", help="cards to make again"
    )
    commands = parser.add_subparsers(dest="command")
    predict = commands.add_parser("predict", help="copy a table, and add what the model says of each row")
    predict.add_argument("table", type=Path, metavar="TABLE.csv")
    predict.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.csv")
    fit = commands.add_parser("fit", help="fit costs: of transactions to noc.csv, or of collectives to metal.md")
    fit.add_argument("table", type=Path, metavar="TABLE", help="a table with the columns of noc.csv, or a page of them")
    commands.add_parser("intervals", help="find how far figures are from silicon, and write the model's intervals")
    args = parser.parse_args()
    try:
        if args.command == "predict":
            predict_table(args.table, args.output)
        elif args.command == "fit":
            _fit(args.table)
        elif args.command == "intervals":
            from .errors import all_errors
            from .intervals import TARGET, families, write

            write(families(all_errors()))
            print(f"wrote {TARGET}")
        else:
            _make_page(args.only)
    except (BudaError, OSError) as error:
        print(f"scorecard: {error}", file=sys.stderr)
        return 2
    return 0


def _fit(table: Path) -> None:
    """Fit the costs of collectives to a page with their tables, or those of transactions to any other table."""
    if table.suffix == ".md":
        from .collectives import fit_file

        fit_file(table)
    else:
        from .fit import fit_table

        fit_table(table)


def _make_page(only: list[str]) -> None:
    """Make the cards that are asked for, each kept as soon as it is done, and write the page."""
    for card in missing(read_results(RESULTS), only):
        print(f"{card.name}: {card.source}", file=sys.stderr, flush=True)
        keep_result(RESULTS, card.name, result_of(card, card.figures(card.source)))
    write_page(read_results(RESULTS))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    sys.exit(main())
