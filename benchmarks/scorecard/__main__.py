#!/usr/bin/env python3
"""Holds the timing model against public silicon figures.

python -m benchmarks.scorecard predict TABLE.csv -o OUT.csv  # a table with a column of modelled cycles
python -m benchmarks.scorecard fit noc.csv                   # fit the costs of transactions again
"""

import argparse
import sys
from pathlib import Path

from buda_emu.support.errors import BudaError

from .tables import predict_table


def main() -> int:
    """Carry out one command. An error of the table ends it with a message."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scorecard",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    predict = commands.add_parser("predict", help="copy a table, and add what the model says of each row")
    predict.add_argument("table", type=Path, metavar="TABLE.csv")
    predict.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.csv")
    fit = commands.add_parser("fit", help="fit the costs of transactions to a table with the columns of noc.csv")
    fit.add_argument("table", type=Path, metavar="TABLE.csv")
    args = parser.parse_args()
    try:
        if args.command == "predict":
            predict_table(args.table, args.output)
        else:
            from .fit import fit_table

            fit_table(args.table)
    except (BudaError, OSError) as error:
        print(f"scorecard: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
