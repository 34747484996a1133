"""`buda-emu example attention`: writes a commented netlist that comes with the package."""

import argparse
from pathlib import Path

from buda_emu.app.api.examples import example_path, example_paths, subject
from buda_emu.app.cli.output import complain, say, write_text
from buda_emu.report.terminal.text import table
from buda_emu.support.errors import Exit, HostError

EXAMPLE = "buda-emu example attention"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `example`: which one, and where it is written."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="which one; without a name they are listed")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="default: the example's own name, in this folder; -: standard output",
    )
    parser.add_argument("--force", action="store_true", help="write over a file that is there")


def main(args: argparse.Namespace) -> int:
    """List the examples, or write one. Exit code 0; failures are raised."""
    if args.name is None:
        if args.output is not None:
            raise HostError("example: --output takes the NAME of an example; without one they are listed")
        rows = [(name, subject(path)) for name, path in example_paths().items()]
        say(table(("example", "what it computes"), rows, prose=(1,), whole=(0,)))
        return Exit.OK
    path = example_path(args.name)
    output = args.output or Path(path.name)
    if str(output) == "-":
        write_text(output, path.read_text(encoding="utf-8"))
        return Exit.OK
    if output.exists() and not args.force:
        raise HostError(f"example: {output} is there already: give another name with -o, or --force")
    write_text(output, path.read_text(encoding="utf-8"))
    complain(f"{output}: try `buda-emu run {output}`, and `buda-emu perf {output}`")
    return Exit.OK
