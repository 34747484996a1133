"""The CPU twin: the uncompiled model of a package, computed bit for bit like TensorFlow Lite's reference kernels
(DARWINN_TWIN). Its results are the reference's, never the device's."""

from buda_emu.foreign.darwinn.twin.run import Twin

__all__ = ["Twin"]
