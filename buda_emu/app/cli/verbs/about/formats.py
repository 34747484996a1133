"""`buda-emu formats`: the number formats and their sizes."""

import argparse
from collections.abc import Iterator

from buda_emu.app.cli.output import say
from buda_emu.report.terminal.text import table
from buda_emu.spec.formats import FORMATS, FormatSpec, tile_bytes

EXAMPLE = "buda-emu formats"

HEADERS = (
    "format", "id", "kind", "bits", "mantissa", "bias", "tile bytes", "in memory", "in memory (blackhole)", "meaning",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no arguments, and explain the sizes below the help."""
    parser.epilog = "tile bytes are those of a 32x32 tile: bare, and as it lies in memory with header and alignment"


def main(args: argparse.Namespace) -> int:  # noqa: ARG001 - every verb takes its arguments
    """Print the table of number formats. Exit code 0."""
    say(table(HEADERS, rows(), right=(1, 3, 4, 5, 6, 7, 8), prose=(9,), whole=(0,)))
    return 0


def rows() -> Iterator[tuple[str, ...]]:
    """Return a row for each format, under HEADERS. Sizes are bytes of a 32x32 tile."""
    return map(_format_row, FORMATS.values())


def _format_row(spec: FormatSpec) -> tuple[str, ...]:
    """Return the row of one format, under HEADERS."""
    bare, aligned, blackhole = (
        str(tile_bytes(spec.name, 32, 32, alignment, header))
        for alignment, header in ((32, False), (32, True), (64, True))
    )
    bias = "-" if spec.bias is None else str(spec.bias)
    meaning = spec.doc
    if not spec.netlist_legal:
        meaning += " (not a netlist word)"
    numbers = (str(spec.bits), str(spec.mantissa_bits), bias, bare, aligned, blackhole)
    return spec.name, str(spec.id), spec.kind, *numbers, meaning
