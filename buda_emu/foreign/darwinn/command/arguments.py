"""Arguments of the verbs of `buda-emu darwinn`."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from buda_emu.app.cli.arguments.check import add_options
from buda_emu.app.cli.parser import Verb, add_verbs
from buda_emu.app.cli.shared_arguments import add_shared, memory_size
from buda_emu.app.documents.kinds import kind_by_name

EXAMPLE = "buda-emu darwinn inspect model_edgetpu.tflite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of `buda-emu darwinn` to its parser."""
    add_verbs(parser, VERBS)


def add_file(parser: argparse.ArgumentParser) -> None:
    """Add the argument FILE: a compiled `.tflite` or a bare package."""
    parser.add_argument("file", metavar="FILE", help="a compiled .tflite or a bare package")


def _inspect(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `inspect`."""
    add_file(parser)
    add_shared(parser, "--json")


def _check(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `check`."""
    add_options(parser, kind_by_name("package"))


def _run(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `run`."""
    parser.add_argument("file", nargs="+", metavar="FILE", help="compiled .tflite files or bare packages")
    parser.add_argument("--requests", metavar="N,N,...", help="numbers of the files, counted from 0; each once")
    parser.add_argument("--transport", default="usb", metavar="usb|pcie", help="how the chip is attached")
    parser.add_argument("--no-overlap", action="store_true", help="a request begins when the one before is completed")
    parser.add_argument("--link", metavar="NAME", help="assumed link: usb2, usb3, pcie, or bytes per second; none")
    parser.add_argument("--clock", metavar="NAME", help="assumed clock: low, medium, high, max, or hertz; unknown")
    parser.add_argument(
        "--sram", type=memory_size, metavar="SIZE", help="assumed memory for parameters; warn beyond (default: 8M)"
    )
    add_shared(parser, "--json")
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="write the timeline: a page (.html), or a trace for ui.perfetto.dev (.json, .json.gz)",
    )
    parser.add_argument("--report", type=Path, metavar="DIR", help="write replay.html, replay.json, trace.json there")
    parser.add_argument(
        "--reference", metavar="MODEL", help="the uncompiled .tflite: compute the outputs of the first file"
    )
    parser.add_argument("--whole", action="store_true", help="with --reference: run the operators left on the CPU, too")
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME=FILE.npy", help="with --reference: an input of the model"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="with --reference: where outputs go, as .npy")


def _verify(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `verify`."""
    add_file(parser)
    parser.add_argument("--source", required=True, metavar="MODEL", help="the .tflite that it was compiled from")
    add_shared(parser, "--json")


def _link(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `link`."""
    add_file(parser)
    add_shared(parser, "--json")
    parser.add_argument(
        "--executable", metavar="KIND", help="STAND_ALONE, PARAMETER_CACHING or EXECUTION_ONLY; the main one"
    )
    parser.add_argument(
        "--address",
        action="append",
        default=[],
        metavar="WHAT=N",
        help="of parameter, scratch, input:NAME or output:NAME, decimal or 0x...; once more for the next batch. "
        "Fields without an address stay as they are",
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where chunk_0.bin, ... go")


def _relayout(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `relayout`."""
    add_file(parser)
    add_shared(parser, "--json")
    parser.add_argument("--layer", required=True, metavar="NAME", help="an output of the main executable")
    parser.add_argument("--in", dest="raw", type=Path, required=True, metavar="RAW", help="its bytes on the device")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.npy", help="where the array goes")
    parser.add_argument("--real", action="store_true", help="real values: zero point off, times the factor, float32")


def _example(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `example`."""
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where the files go")


def _extract(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb `extract`."""
    add_file(parser)
    add_shared(parser, "--json")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where the files go")


_READING: Final = "buda_emu.foreign.darwinn.command.reading"
_RUNNING: Final = "buda_emu.foreign.darwinn.command.running"
VERBS: Final[Mapping[str, Verb]] = {
    "inspect": Verb(
        "Show a package: operators on the CPU, cached parameters, layers, cost of a switch.",
        "buda-emu darwinn inspect model_edgetpu.tflite",
        _inspect,
        f"{_READING}:inspect_verb",
    ),
    "check": Verb(
        "Check packages against the rules D001 to D086 and predict what the driver does with them.",
        "buda-emu darwinn check model_edgetpu.tflite models/",
        _check,
        f"{_READING}:check_verb",
    ),
    "run": Verb(
        "Replay requests on one device; with --reference, compute outputs, too.",
        "buda-emu darwinn run a_edgetpu.tflite b_edgetpu.tflite --requests 0,1,0 --link usb3 --clock max",
        _run,
        f"{_RUNNING}:run_verb",
    ),
    "verify": Verb(
        "Say whether a package holds an uncompiled model's weights, biases, names and quantisation.",
        "buda-emu darwinn verify model_edgetpu.tflite --source model.tflite",
        _verify,
        f"{_READING}:verify_verb",
    ),
    "link": Verb(
        "Write the instruction chunks with base addresses filled in.",
        "buda-emu darwinn link model_edgetpu.tflite --address input:image=0x10000 --address parameter=0x80000 "
        "-o linked",
        _link,
        f"{_READING}:link_verb",
    ),
    "relayout": Verb(
        "Turn an output's bytes on the device into an array.",
        "buda-emu darwinn relayout model_edgetpu.tflite --layer scores --in raw.bin -o scores.npy",
        _relayout,
        f"{_RUNNING}:relayout_verb",
    ),
    "example": Verb(
        "Write two small co-compiled packages with their models, to try things on.",
        "buda-emu darwinn example -o first_steps",
        _example,
        f"{_READING}:example_verb",
    ),
    "extract": Verb(
        "Write the parts of a file: package, parameters, instruction chunks.",
        "buda-emu darwinn extract model_edgetpu.tflite -o parts",
        _extract,
        f"{_READING}:extract_verb",
    ),
}
