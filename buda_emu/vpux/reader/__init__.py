"""Text to model: the declarative formats of the op table and what they cannot say (VPUX 3). No numpy."""

from buda_emu.vpux.reader.load import load, read

__all__ = ["load", "read"]
