"""`buda-emu gemini stats`: count what a schedule moves and computes."""

import argparse
from pathlib import Path
from typing import Any, Final

from buda_emu.app.cli.output import say_json, say_lines
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.command.verbs.run import LINKS
from buda_emu.foreign.gemini.report import statistics_lines
from buda_emu.foreign.gemini.statistics import Statistics, energy, statistics
from buda_emu.support.columns import Column, Columns
from buda_emu.support.errors import HostError
from buda_emu.support.files import read_yaml

_COUNTS: Final = Columns[Statistics](Statistics, Column("links", [LINKS], lambda counts: counts.links.items()))
COUNTED: Final = Columns[tuple[Statistics, dict[str, float] | None]](
    *_COUNTS.within(tuple[Statistics, dict[str, float] | None], lambda counted: counted[0]),
    Column("energy", dict[str, float] | None, lambda counted: counted[1]),
)
"""What `gemini stats --json` prints: the counts, and the energy by the user's table."""


def main(args: argparse.Namespace) -> int:
    """Print what a schedule moves and computes, with the energy of it by the user's table. Exit code 2 for an
    unusable table."""
    counts = statistics(gemini.load(args.file))
    if args.energy is not None:
        spent = energy(counts.accesses, _table(args.energy))
    else:
        spent = None
    if args.json:
        say_json(COUNTED.as_json((counts, spent)))
        return 0
    say_lines(statistics_lines(counts, spent))
    return 0


def _table(path: Path) -> dict[str, Any]:
    """Read a user's energy table, a map of names and numbers. Raises HostError for anything else."""
    content = read_yaml(path, "an energy table")
    if not isinstance(content, dict) or not content:
        raise HostError(f"{path}: an energy table is a map of names and numbers, such as `mac: 0.2`")
    return content  # pyright: ignore[reportUnknownVariableType]
