"""What an op type does: shape rule, reference in plain numpy, kernels. One folder for each family of ops, with
`op.py` for the model's arithmetic and `device.py` for the steps on the device; `on_device` holds what the latter
share. Declarations of op types stand in `spec.ops`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buda_emu.ops.base import Implementation


def implementation(type: str) -> "Implementation":
    """The behaviour of an op type. Raises UnsupportedError for an unknown word, or one that the reference refuses."""
    from buda_emu.ops.base import OPS

    return OPS[type]
