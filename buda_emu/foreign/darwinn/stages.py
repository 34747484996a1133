"""The stages of the Edge TPU tool chain, recognised by their content: a TensorFlow Lite model goes into the compiler,
which writes a package into a copy of it.
"""

from typing import Final, NamedTuple

from buda_emu.foreign.darwinn import tflite
from buda_emu.foreign.darwinn.container import holds_package


class Stage(NamedTuple):
    """A file format of one stage of the tool chain, and advice on what to do with such a file here."""

    words: str
    advice: str


UNCOMPILED: Final = Stage(
    "a TensorFlow Lite model that was not compiled for the Edge TPU",
    "`python -m tf2onnx.convert --tflite MODEL --output model.onnx` makes an ONNX model of it for `buda-emu compile`, "
    "edgetpu_compiler a package",
)


def recognise_model(data: bytes) -> Stage | None:
    """Return the stage of a TensorFlow Lite model without a package in it, of the file's bytes; None for all others."""
    if data[4:8] == tflite.IDENTIFIER and not holds_package(data):
        return UNCOMPILED
    return None
