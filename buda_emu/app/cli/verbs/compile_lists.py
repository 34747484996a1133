"""Lists that `buda-emu compile` prints in place of compiling: the boards that netlists are compiled for
(`--list-boards`), and the operators that models may have (`--ops`)."""

import argparse

from buda_emu.app.cli.output import say
from buda_emu.compiler.operator_list import COVERAGE_HEADERS, HEADERS, STANDARDS, rows
from buda_emu.report.terminal.text import table
from buda_emu.spec.boards import BOARDS


def print_boards(_args: argparse.Namespace) -> int:
    """Print the boards. Exit code 0."""
    say(_boards_table())
    return 0


def _boards_table() -> str:
    """Return the table of boards, and below it the sources of its figures."""
    headers = ("board", "arch", "chips", "cores a chip", "MHz", "DRAM a chip", "GB/s", "links", "host at chip", "host")
    rows = [
        (
            board.name,
            board.arch,
            str(board.chips),
            f"{board.cores} ({board.grid[0]}x{board.grid[1]})",
            str(board.clock),
            board.dram,
            f"{board.dram_gbps:g}",
            str(board.links or "-"),
            ", ".join(map(str, board.on_host)),
            board.host,
        )
        for board in BOARDS.values()
    ]
    origins: dict[str, list[str]] = {}
    for board in BOARDS.values():
        for field, source in board.sources.items():
            origins.setdefault(f"{field}: {source}", []).append(board.name)
    lines = [f"{', '.join(names)}: {text}" for text, names in origins.items()]
    words = (
        "Links are between neighbouring chips of a board: 100 Gbit/s each (200 of blackhole, between boards only). "
        "Where the figures come from:"
    )
    return "\n".join([table(headers, rows, right=(2, 4, 6, 7)), "", words, *lines])


def print_operators(_args: argparse.Namespace) -> int:
    """Print the operators that models may have, and for each front end (ONNX, PyTorch) where each operator is computed.
    Exit code 0."""
    say(table(HEADERS, rows(), prose=(3,), whole=(0,)))
    for standard in STANDARDS:
        say(f"\n{standard.name}: where each operator is computed")
        if standard.is_installed:
            say(table(COVERAGE_HEADERS, standard.rows(), prose=(2,), whole=(0,)))
        else:
            say(f"needs the package {standard.package}: pip install 'buda-emu[{standard.package}]'")
    return 0
