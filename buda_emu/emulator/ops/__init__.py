"""The behaviour of op types. Each family has a file here with the model's arithmetic (shape rule, reference in plain
numpy, kernels) and a file of the same name in `on_device` with its steps on the device. Declarations of op types stand
in `spec.ops`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buda_emu.emulator.ops.base import Implementation


def implementation(type: str) -> "Implementation":
    """Return the behaviour of an op type; its module is imported at the first request. Raises UnsupportedError for an
    unknown word, or one that the reference refuses."""
    from buda_emu.emulator.ops.base import OPS

    return OPS[type]
