"""`buda-emu example attention`: writes a commented netlist that comes with the package, or lists those that do."""

import argparse
import os
from pathlib import Path

from buda_emu.app.cli.output import complain, say, write_text
from buda_emu.report.terminal.text import table
from buda_emu.support.checker.suggest import near
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
        rows = [(name, _first_sentence(path)) for name, path in example_paths().items()]
        say(table(("example", "what it computes"), rows, prose=(1,), whole=(0,)))
        return Exit.OK
    path = _example_path(args.name)
    output = args.output or Path(path.name)
    if str(output) == "-":
        write_text(output, path.read_text(encoding="utf-8"))
        return Exit.OK
    if output.exists() and not args.force:
        raise HostError(f"example: {output} is there already: give another name with -o, or --force")
    write_text(output, path.read_text(encoding="utf-8"))
    complain(f"{output}: try `buda-emu run {output}`, and `buda-emu perf {output}`")
    return Exit.OK


def example_paths() -> dict[str, Path]:
    """Return the file of each example by its name, `attention` or `recipes/mlp`; those of the first folder come first.

    They lie in the package, or beside it in a checkout. Raises HostError where neither has any.
    """
    package = Path(__file__).parents[4]
    for folder in (package / "netlists", package.parent / "netlists"):
        paths = [*sorted(folder.glob("*.yaml")), *sorted(folder.glob("*/*.yaml"))]
        if paths:
            return {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}
    raise HostError("the examples did not come along: this installation has no folder netlists")


def _example_path(name: str) -> Path:
    """Return the file of an example; its name may end in `.yaml`. Raises HostError for a name that no example has."""
    paths = example_paths()
    path = paths.get(name.removesuffix(".yaml").replace(os.sep, "/"))
    if path is None:
        hint = near(name, paths)
        raise HostError(f"no example {name!r}{f' ({hint})' if hint else ''}; there are: {', '.join(paths)}")
    return path


def _first_sentence(path: Path) -> str:
    """Return the first sentence of the comment at the top of a netlist, as far as it stands on the first line."""
    first = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("#").strip()
    return first.partition(". ")[0].rstrip(".:")
