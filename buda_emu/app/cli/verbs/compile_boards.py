"""`buda-emu compile --list-boards`: the boards that netlists are compiled for."""

import argparse

from buda_emu.app.cli.output import say
from buda_emu.report.terminal.text import table
from buda_emu.spec.boards import BOARDS


def main(_args: argparse.Namespace) -> int:
    """Print them. Exit code 0."""
    say(_table())
    return 0


def _table() -> str:
    """What each board is, and where its figures come from."""
    headers = ("board", "arch", "chips", "cores a chip", "MHz", "DRAM a chip", "GB/s", "links", "host at chip", "host")
    rows = [
        (
            item.name,
            item.arch,
            str(item.chips),
            f"{item.cores} ({item.grid[0]}x{item.grid[1]})",
            str(item.clock),
            item.dram,
            f"{item.dram_gbps:g}",
            str(item.links or "-"),
            ", ".join(map(str, item.on_host)),
            item.host,
        )
        for item in BOARDS.values()
    ]
    origins: dict[str, list[str]] = {}
    for item in BOARDS.values():
        for field, source in item.sources.items():
            origins.setdefault(f"{field}: {source}", []).append(item.name)
    lines = [f"{', '.join(names)}: {text}" for text, names in origins.items()]
    words = (
        "Links are between neighbouring chips of a board: 100 Gbit/s each (200 of blackhole, between boards only). "
        "Where the figures come from:"
    )
    return "\n".join([table(headers, rows, right=(2, 4, 6, 7)), "", words, *lines])
