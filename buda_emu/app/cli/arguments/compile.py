"""Arguments of `buda-emu compile`."""

import argparse
from pathlib import Path

from buda_emu.app.cli.parser import alternative_work
from buda_emu.app.cli.shared_arguments import add_arch, add_group
from buda_emu.emulator.options import Board, Memory, SharedWork
from buda_emu.netlist.fields import LOW_EFFORT_LOSS
from buda_emu.spec.archs import DEFAULT_ARCH

EXAMPLE = "buda-emu compile model.onnx -o out/"
PASSES_EXAMPLE = (
    "buda-emu compile model.onnx --stop-after lower -o out/; edit out/model.lower.ir; "
    "buda-emu compile --start-from out/model.lower.ir -o out/"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `compile`: the model, where the image goes, the chip, formats and fidelity."""
    parser.add_argument("file", metavar="FILE", nargs="?", help="model: .onnx, or .pt2 of torch.export.save")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="where to write model.yaml and model.tti; default: nowhere"
    )
    parser.add_argument(
        "--parameters",
        type=Path,
        metavar="FILE",
        help="parameters of a .pt2 exported on torch's device meta: .safetensors, its .index.json, a folder "
        "of both, .pt or .bin",
    )
    add_arch(parser, f"{DEFAULT_ARCH}, or that of --board")
    add_group(parser, Board)
    parser.add_argument(
        "--df",
        default="Float16_b",
        metavar="FORMAT",
        help="format of activations and parameters: Float32, Float16, Float16_b (default), Bfp8, Bfp8_b",
    )
    parser.add_argument("--fidelity", default="HiFi3", metavar="WORD", help="LoFi, HiFi2, HiFi3 (default) or HiFi4")
    parser.add_argument("--acc-df", default="", metavar="FORMAT", help="format of sums; default: by --df")
    parser.add_argument(
        "--effort",
        default="default",
        metavar="WORD",
        help=f"how long the search for a placement takes: low, default or high; low takes the first legal placement: "
        f"{LOW_EFFORT_LOSS}; default tries up to 3 forms of the graph, high all of them and more ways to cut epochs",
    )
    parser.add_argument(
        "--objective",
        default="throughput",
        metavar="WORD",
        help="goal of the search: throughput (default), latency or cores",
    )
    parser.add_argument(
        "--chips",
        metavar="N",
        help="cut or copy the model over this number of chips, or over those of a cluster's file; default: "
        "all of the board, or 1 without a board",
    )
    parser.add_argument(
        "--microbatch",
        type=int,
        metavar="N",
        help="inputs that go through an epoch before the next begins; default: 64, for objective latency 1",
    )
    parser.add_argument(
        "--mixed",
        type=Path,
        metavar="FILE",
        help="YAML: a list of {match: PATTERN OF NAMES, df: .., acc_df: .., fidelity: ..}; the last match applies",
    )
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        type=_size,
        metavar="NAME=N",
        help="a size that the model leaves open, its name (batch=8) or an input and the place of its dimension (x.0=8)",
    )
    host = parser.add_mutually_exclusive_group()
    host.add_argument(
        "--on-host",
        action="append",
        default=[],
        metavar="OP",
        help="let the host run an operator of the ONNX model, or one of --ops; the rest becomes programs of "
        "one netlist. "
        "Without it the host runs those of an ONNX model that cannot become ops of the device",
    )
    host.add_argument("--no-host", action="store_true", help="refuse a model with operators that the device cannot do")
    parser.add_argument(
        "--no-fuse", action="store_true", help="do not fuse: one netlist op for each step, for comparison"
    )
    add_group(parser, SharedWork)
    add_group(parser, Memory)
    _add_passes(parser)
    parser.add_argument(
        "--ops",
        **alternative_work("compile_lists:print_operators"),
        help="list the operators that models may have, and nothing else",
    )
    parser.add_argument(
        "--list-boards",
        **alternative_work("compile_lists:print_boards"),
        help="list the boards that --board knows, nothing else",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="print why the placement is as it is: what was tried, a picture of the epochs, and what bounds each",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print only the requested output")


def _add_passes(parser: argparse.ArgumentParser) -> None:
    """Add the options that show, stop or check single passes."""
    group = parser.add_argument_group("passes", f"an example: {PASSES_EXAMPLE}")
    group.add_argument(
        "--print-after",
        "--dump-after",
        action="append",
        default=[],
        metavar="PASS",
        help="print the model after a pass; `all`: after each (docs/compile/pipeline.md lists them)",
    )
    group.add_argument(
        "--stop-after",
        metavar="PASS",
        help="stop after that pass: with -o write model.PASS.ir and its arrays there, else print",
    )
    group.add_argument("--start-from", type=Path, metavar="FILE", help="continue from an .ir file instead of a model")
    group.add_argument("--time-passes", action="store_true", help="print the processor time of each pass")
    group.add_argument("--verify-each", action="store_true", help="check the model against its rules after each pass")


def _size(text: str) -> tuple[str, int]:
    """Parse NAME=N, the size of an open dimension (argparse type)."""
    name, _, number = text.rpartition("=")
    if not name or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a NAME=N, such as batch=8")
    return name, int(number)
