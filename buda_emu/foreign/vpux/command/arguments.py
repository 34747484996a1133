"""Arguments of the verbs of `buda-emu vpux`."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from buda_emu.app.cli.arguments.check import add_options
from buda_emu.app.cli.parser import Verb, add_verbs
from buda_emu.app.cli.shared_arguments import add_group, add_shared
from buda_emu.app.documents.kinds import kind_by_name
from buda_emu.emulator.options import Memory

EXAMPLE = "buda-emu vpux run schedule.mlir --function main --out outputs.npz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of `buda-emu vpux` to its parser."""
    add_verbs(parser, VERBS)


def add_document(parser: argparse.ArgumentParser) -> None:
    """Add the file and the choice of a function of it."""
    parser.add_argument("file", metavar="FILE", help="MLIR text")
    parser.add_argument("--function", metavar="NAME", help="default: main, or the only one")
    parser.add_argument("--split", type=int, metavar="N", help="part of the file between lines '// -----', from 0")
    add_arch(parser)


def add_arch(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the architecture."""
    parser.add_argument("--arch", default="37XX", choices=("37XX", "40XX"), help="whose limits hold (37XX)")


def _check(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `check`."""
    add_options(parser, kind_by_name("vpux"))
    add_arch(parser)


def _run(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `run`."""
    add_document(parser)
    parser.add_argument(
        "--input", action="append", default=[], metavar="N=FILE", help="argument N from an .npy file, in logical shape"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the outputs as out0, out1, ... of an .npz file")
    parser.add_argument("--compare", type=Path, metavar="OTHER", help="run another version on the same inputs")
    parser.add_argument("--compare-function", metavar="NAME", help="its name in OTHER, default the same")
    parser.add_argument("--compare-split", type=int, metavar="N", help="its split in OTHER")
    parser.add_argument(
        "--model",
        nargs="?",
        const="",
        metavar="NAME=N,...",
        help="durations from a cost model of assumed parameters; default: one step for each task",
    )
    add_group(parser, Memory, initial=768 << 20, what="all buffers", default="768M")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write tasks, barriers and races")
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="write a trace for ui.perfetto.dev (.json, .json.gz), or a page with lanes and CMX over time (.html)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but races")


def _args(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `args`."""
    add_document(parser)
    parser.add_argument("--task", type=int, metavar="N", help="of this task only")
    add_shared(parser, "--json")


def _serialize(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `serialize`."""
    add_document(parser)
    parser.add_argument(
        "--code", action="append", default=[], metavar="KERNEL=FILE", help="machine code, by function or entry point"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write to a file")


def _layout(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `layout`."""
    parser.add_argument("--shape", required=True, metavar="NxCx..", help="logical dimensions")
    parser.add_argument(
        "--order", metavar="ORDER", help="a name, a code such as 0x1342, an affine_map; default logical"
    )
    parser.add_argument("--bits", type=int, default=16, metavar="N", help="of an element (16)")
    parser.add_argument(
        "--req",
        action="append",
        default=[],
        metavar="DIM:KIND[:BITS]",
        help="of the stride of a memory dimension, 0 outermost: compact, aligned or fixed",
    )
    parser.add_argument("--index", metavar="N,C,..", help="a logical index whose address is wanted")
    add_shared(parser, "--json")


_READING: Final = "buda_emu.foreign.vpux.command.reading"
_RUNNING: Final = "buda_emu.foreign.vpux.command.running"
VERBS: Final[Mapping[str, Verb]] = {
    "check": Verb(
        "Hold every function against the rules and print every finding with its place.",
        "buda-emu vpux check schedule.mlir --arch 40XX",
        _check,
        f"{_READING}:check_verb",
    ),
    "run": Verb(
        "Run a function: outputs, when each task is done, barriers, races; compare two versions.",
        "buda-emu vpux run before.mlir --compare after.mlir --function main",
        _run,
        f"{_RUNNING}:run_verb",
    ),
    "args": Verb(
        "Show the argument buffers that kernels are called with.",
        "buda-emu vpux args schedule.mlir --task 1 --json",
        _args,
        f"{_RUNNING}:args_verb",
    ),
    "serialize": Verb(
        "Print kernels, invocations, tasks and runtime as JSON.",
        "buda-emu vpux serialize schedule.mlir --code activation_clamp=clamp.bin",
        _serialize,
        f"{_RUNNING}:serialize_verb",
    ),
    "layout": Verb(
        "Work out memory shape, strides and codes of a tensor layout.",
        "buda-emu vpux layout --shape 1x16x49x1 --order NHWC --bits 16 --req 2:aligned:1024",
        _layout,
        f"{_READING}:layout_verb",
    ),
}
