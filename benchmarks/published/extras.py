"""The extras of this project that install the libraries of the published models."""

from importlib.util import find_spec
from typing import Final

from buda_emu.support.errors import HostError

EXTRAS: Final = {
    "torch": "zoo",
    "onnx": "zoo",
    "diffusers": "zoo",
    "pytorchcv": "zoo",
    "timm": "zoo",
    "torchvision": "zoo",
    "transformers": "zoo",
    "yolov5": "yolo",
}
"""By package the extra that installs it. `yolo` cannot share an environment with `zoo`."""


def missing_library(package: str) -> str:
    """Return a sentence that names the extra of a package that is not installed; an empty text if it is installed."""
    if find_spec(package) is not None:
        return ""
    extra = EXTRAS[package]
    sentence = f"{package} is not installed: it comes with the extra `{extra}` (pip install 'buda-emu[{extra}]')"
    if extra == "yolo":
        sentence += ", which needs an environment without the extra `zoo`"
    return sentence


def require_library(package: str) -> None:
    """Raise HostError, with the extra that installs it, if a package is not installed. No package needs nothing."""
    if package and (problem := missing_library(package)):
        raise HostError(problem)
