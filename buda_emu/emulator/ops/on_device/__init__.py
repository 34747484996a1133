"""The ops of precision "device": the steps of each op type on stored bits (DEVICE_NUMERICS 6.2).

An op is written once, on `units.Units`: run on `ReferenceUnits` it is the definition, on `KernelUnits` it is fast."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buda_emu.emulator.ops.on_device.base import DeviceOp


def device_op(type: str) -> "DeviceOp":
    """Return the behaviour of an op type on the device. Raises UnsupportedError for a word that cannot be run."""
    from buda_emu.emulator.ops.on_device.base import DEVICE_OPS

    return DEVICE_OPS[type]
