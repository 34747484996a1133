"""Arguments of `buda-emu test`."""

import argparse
from pathlib import Path

from buda_emu.app.cli.coverage import add_coverage
from buda_emu.app.cli.shared_arguments import (
    FORMATS,
    add_arch,
    add_group,
    add_shared,
    correlation,
    natural,
    positive,
    shard,
)
from buda_emu.emulator.options import Arithmetic, Loading, Memory, Programs, Seed, SharedWork, TimeLimit

EXAMPLE = "buda-emu test netlists/ -n 2 --report report/"
DEFAULT_THRESHOLD = 0.99  # a larger PCC names ops that only round, a smaller one misses ops that are a little wrong


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `test`, in groups: which netlists are tested, and what is compared with what."""
    parser.add_argument(
        "path",
        nargs="+",
        metavar="PATH",
        help="netlists, device images (.tti), folders of netlists, or patterns such as 'a/**/*.yaml'",
    )
    selection_group = parser.add_argument_group("which netlists")
    selection_group.add_argument(
        "-k", metavar="EXPR", help="netlists whose path has these words: 'bert and not (big or mha)'"
    )
    add_shared(selection_group, "--only-documents")
    selection_group.add_argument("--lf", action="store_true", help="netlists that failed last time; all if none did")
    selection_group.add_argument(
        "--shard", type=shard, metavar="K/N", help="the K-th of N parts of the netlists, for N machines"
    )
    selection_group.add_argument(
        "-x", action="store_const", const=1, dest="maxfail", help="stop after the first netlist that does not pass"
    )
    selection_group.add_argument("--maxfail", type=positive, metavar="N", help="stop after N netlists that do not pass")
    comparison_group = parser.add_argument_group("what is compared with what")
    add_group(comparison_group, Arithmetic, initial="device", default="device", prefix="of the observed run; ")
    comparison_group.add_argument(
        "--expected",
        choices=("ideal", "format"),
        default="ideal",
        help="precision of the run that the observed one is compared with (default ideal)",
    )
    comparison_group.add_argument(
        "--reference",
        type=Path,
        metavar="DIR",
        help="tensors from outside: <queue>.npy or <queue>.<n>.bin, as inputs and as expected outputs; "
        "inputs that are not there are random, outputs are expected from the run in --expected",
    )
    comparison_group.add_argument(
        "--compare",
        choices=("vendor", "strict"),
        default="vendor",
        help="vendor: the verdict of the vendor's harness, including its mistakes; strict: what the words say",
    )
    comparison_group.add_argument(
        "--defaults", type=Path, metavar="FILE", help="a default test-config for netlists without one"
    )
    add_group(comparison_group, Seed)
    add_arch(comparison_group)
    add_group(comparison_group, Programs)
    execution_group = parser.add_argument_group("how")
    add_group(execution_group, SharedWork, initial=None, default="one for each processor")
    for group in (TimeLimit, Memory, Loading):
        add_group(execution_group, group)
    output_group = parser.add_argument_group("what is shown and written")
    output_group.add_argument(
        "--per-op", action="store_true", help="the error of every op, and which one goes wrong first"
    )
    output_group.add_argument("--perf", action="store_true", help="also compare performance-check with modelled cycles")
    output_group.add_argument(
        "--threshold",
        type=correlation,
        default=DEFAULT_THRESHOLD,
        metavar="PCC",
        help=f"an op below this PCC is the one that goes wrong (default {DEFAULT_THRESHOLD})",
    )
    output_group.add_argument("--durations", type=natural, metavar="N", help="the N netlists that took longest; 0: all")
    add_shared(output_group, "--baseline")
    add_coverage(output_group)
    output_group.add_argument(
        "--report", type=Path, metavar="DIR", help="write report.html, report.md and report.json there"
    )
    output_group.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        help="output format: text for people; the others are for programs, and the text goes to standard error",
    )
    output_group.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON")
    output_group.add_argument("--junitxml", type=Path, metavar="FILE", help="write the results as JUnit XML")
    output_group.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="a line for each netlist, tables for passing ones; name the settings in use",
    )
    output_group.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="print only what does not pass, the first 20 of many, and the last line",
    )
