"""`buda-emu darwinn relayout`: an output's bytes on the device to an array."""

import argparse
from pathlib import Path

from buda_emu import darwinn
from buda_emu.checker.suggest import near
from buda_emu.cli.arguments import add_json
from buda_emu.cli.output import say, say_json, write_output
from buda_emu.cli.verbs.darwinn import add_file
from buda_emu.errors import HostError

EXAMPLE = "buda-emu darwinn relayout model_edgetpu.tflite --layer scores --in raw.bin -o scores.npy"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    add_file(parser)
    add_json(parser)
    parser.add_argument("--layer", required=True, metavar="NAME", help="an output of the main executable")
    parser.add_argument("--in", dest="raw", type=Path, required=True, metavar="RAW", help="its bytes on the device")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.npy", help="where the array goes")
    parser.add_argument("--real", action="store_true", help="real values: zero point off, times the factor, float32")


def main(args: argparse.Namespace) -> int:
    """Convert and write."""
    import numpy as np

    outputs = darwinn.load(args.file).main.outputs
    layer = next((item for item in outputs if item.name == args.layer), None)
    if layer is None:
        names = [item.name or "" for item in outputs]
        raise HostError(f"no output {args.layer!r} {near(args.layer, names) or 'among ' + ', '.join(names)}")
    array = darwinn.relayout(layer, args.raw.read_bytes())
    array = darwinn.dequantize(layer, array) if args.real else array
    write_output(args.output, lambda stream: np.save(stream, array))
    if args.json:
        say_json({"path": args.file, "layer": args.layer, "dtype": str(array.dtype), "shape": list(array.shape)})
    else:
        say(f"{args.output}: {array.dtype} {list(array.shape)}")
    return 0
