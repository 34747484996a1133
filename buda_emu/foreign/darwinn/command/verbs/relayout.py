"""`buda-emu darwinn relayout`: turns an output's bytes on the device into an array."""

import argparse
from typing import TypedDict

import numpy as np

from buda_emu.app.cli.output import say, say_json, write_output
from buda_emu.foreign import darwinn
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.files import read_whole


class Relayouted(TypedDict):
    """The JSON document that `darwinn relayout --json` prints."""

    path: str
    layer: str
    dtype: str
    shape: list[int]


def main(args: argparse.Namespace) -> int:
    """Convert the bytes of an output to an array in its natural order and write it as `.npy`."""
    outputs = darwinn.load(args.file).main.outputs
    layer = next((output for output in outputs if output.name == args.layer), None)
    if layer is None:
        names = [output.name or "" for output in outputs]
        raise HostError(f"no output {args.layer!r} {near(args.layer, names) or 'among ' + ', '.join(names)}")
    array = darwinn.relayout(layer, read_whole(args.raw))
    if args.real:
        array = darwinn.dequantize(layer, array)
    write_output(args.output, lambda stream: np.save(stream, array))
    if args.json:
        content: Relayouted = {
            "path": args.file,
            "layer": args.layer,
            "dtype": str(array.dtype),
            "shape": list(array.shape),
        }
        say_json(content)
    else:
        say(f"{args.output}: {array.dtype} {list(array.shape)}")
    return 0
