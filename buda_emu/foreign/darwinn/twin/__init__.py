"""The CPU twin: the uncompiled model of a package, computed bit for bit as TensorFlow Lite's reference kernels do
(DARWINN_TWIN). What it computes is the reference's, never the device's."""

from buda_emu.foreign.darwinn.twin.run import Twin

__all__ = ["Twin"]
