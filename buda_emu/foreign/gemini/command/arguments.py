"""Arguments of the verbs of `buda-emu gemini`."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from buda_emu.app.cli.arguments.check import add_options
from buda_emu.app.cli.parser import Verb, add_verbs
from buda_emu.app.cli.shared_arguments import (
    ArgumentTarget,
    add_frontend,
    add_group,
    add_shared,
    memory_size,
    number_below,
)
from buda_emu.app.documents.kinds import kind_by_name
from buda_emu.emulator.options import SharedWork
from buda_emu.foreign.gemini.time.timing import Rates

EXAMPLE = "buda-emu gemini run schedule.json.gz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of `buda-emu gemini` to its parser."""
    add_verbs(parser, VERBS)


def add_file(parser: ArgumentTarget, name: str = "file", words: str = "schedule (.json or .json.gz)") -> None:
    """Add the argument for a schedule."""
    parser.add_argument(name, metavar=name.upper(), help=words)


def add_rates(parser: ArgumentTarget) -> None:
    """Add --dram-gibps, --freq-ghz and --noc-bytes."""
    parser.add_argument(
        "--dram-gibps",
        type=rate,
        default=16.0,
        metavar="X",
        help="DRAM bandwidth in GiB/s; default: 16, as in the traces",
    )
    parser.add_argument("--freq-ghz", type=rate, default=1.0, metavar="X", help="clock in GHz; default: 1")
    parser.add_argument(
        "--noc-bytes", type=rate, default=32.0, metavar="X", help="bytes a cycle over a NoC link; default: 32"
    )


def parse_rates(args: argparse.Namespace) -> Rates:
    """Return the rates given on the command line."""
    return Rates(args.dram_gibps, args.freq_ghz, args.noc_bytes)


def rate(text: str) -> float:
    """Parse a number above 0 (an argparse type)."""
    return number_below(text, 1e15, "a number above 0")


def _check(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `check`."""
    add_options(parser, kind_by_name("schedule"))


def _run(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `run`."""
    add_file(parser)
    parser.add_argument("--asm", metavar="FILE", help="the assembler file of the schedule: time its instructions")
    parser.add_argument("--trace", metavar="FILE", help="a reference trace of it: print where the times differ")
    add_rates(parser)
    parser.add_argument("--perfetto", type=Path, metavar="FILE", help="write a trace for ui.perfetto.dev")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write one HTML page: lanes, waits, what L2 holds")
    add_shared(parser, "--json")


def _exec(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `exec`."""
    add_file(parser)
    add_frontend(parser, required=True)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of weights and network inputs; default: 0")
    add_shared(parser, "--json")


def _stats(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `stats`."""
    add_file(parser)
    parser.add_argument(
        "--energy",
        type=Path,
        metavar="FILE",
        help="YAML or JSON: energy of one access by name, in any unit; there is no table of our own",
    )
    add_shared(parser, "--json")


def _alloc(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `alloc`."""
    add_file(parser, words="schedule without addresses (.json or .json.gz)")
    parser.add_argument(
        "--buffersize", type=memory_size, metavar="SIZE", help="bytes of each core's L2; default: print what is needed"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where the addressed schedule goes")


def _sweep(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `sweep`."""
    add_file(parser)
    parser.add_argument("--dram-gibps", type=list_of(rate), default=[16.0], metavar="X,...", help="GiB/s; default: 16")
    parser.add_argument("--freq-ghz", type=list_of(rate), default=[1.0], metavar="X,...", help="GHz; default: 1")
    parser.add_argument(
        "--noc-bytes",
        type=list_of(rate),
        default=[32.0],
        metavar="X,...",
        help="bytes a cycle over a link; default: 32",
    )
    parser.add_argument(
        "--buffersize",
        type=list_of(memory_size),
        default=[None],
        metavar="SIZE,...",
        help="L2 of each core; a schedule without addresses is allocated in it",
    )
    parser.add_argument("--mesh", type=list_of(_mesh), default=[None], metavar="XxY,...", help="such as 2x2,4x1")
    add_group(parser, SharedWork)
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a line for each point")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="write cycles over the axis with most values as SVG")


def list_of(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Return an argparse type for values of `kind` separated by commas."""

    def read(text: str) -> list[Any]:
        """Parse the words between commas."""
        return [kind(word) for word in text.split(",")]

    return read


def _mesh(text: str) -> tuple[int, int]:
    """Parse a mesh such as 2x2 into columns and rows, each from 1 to 65535 (an argparse type)."""
    across, cross, down = text.partition("x")
    if not (
        cross and across.isdecimal() and down.isdecimal() and 0 < int(across) < 1 << 16 and 0 < int(down) < 1 << 16
    ):
        raise argparse.ArgumentTypeError(f"{text!r} is not a mesh such as 2x2")
    return int(across), int(down)


def _diff(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `diff`."""
    add_file(parser, "first")
    add_file(parser, "second", "another schedule of the same network")
    add_rates(parser)
    add_shared(parser, "--json")


def _slice(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `slice`."""
    add_file(parser)
    parser.add_argument(
        "--layers",
        required=True,
        metavar="NAME,...",
        help="layers by name, or FIRST..LAST in the order of the schedule",
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="where the slice goes")


_READING: Final = "buda_emu.foreign.gemini.command.reading"
_RUNNING: Final = "buda_emu.foreign.gemini.command.running"
VERBS: Final[Mapping[str, Verb]] = {
    "check": Verb(
        "Hold a schedule against the rules and print every finding with its place in the file.",
        "buda-emu gemini check schedule.json --frontend network.json",
        _check,
        f"{_READING}:check_verb",
    ),
    "run": Verb(
        "Say when everything happens, and what each core waits for.",
        "buda-emu gemini run schedule.json --dram-gibps 8",
        _run,
        f"{_RUNNING}:run_verb",
    ),
    "exec": Verb(
        "Run a schedule on real bytes and compare with the network computed at once.",
        "buda-emu gemini exec schedule.json --frontend network.json --seed 1",
        _exec,
        f"{_RUNNING}:exec_verb",
    ),
    "stats": Verb(
        "Count what a schedule moves and computes.",
        "buda-emu gemini stats schedule.json --energy table.yaml",
        _stats,
        f"{_RUNNING}:stats_verb",
    ),
    "alloc": Verb(
        "Give addresses to a schedule that has none.",
        "buda-emu gemini alloc schedule.json --buffersize 4M -o addressed.json",
        _alloc,
        f"{_READING}:alloc_verb",
    ),
    "sweep": Verb(
        "Time a schedule at several bandwidths, frequencies, buffers and meshes.",
        "buda-emu gemini sweep schedule.json --dram-gibps 4,8,16,32 --buffersize 2M,4M --csv sweep.csv",
        _sweep,
        f"{_RUNNING}:sweep_verb",
    ),
    "diff": Verb(
        "Compare two schedules of one network, layer by layer.",
        "buda-emu gemini diff before.json after.json",
        _diff,
        f"{_RUNNING}:diff_verb",
    ),
    "slice": Verb(
        "Cut a small schedule that checks clean out of a large one.",
        "buda-emu gemini slice schedule.json --layers Conv_3..Add_9 -o small.json",
        _slice,
        f"{_READING}:slice_verb",
    ),
}
