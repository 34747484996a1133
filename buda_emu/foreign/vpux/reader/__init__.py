"""Text to model: the declarative formats of the op table and what they cannot say (VPUX 3). No numpy."""

from buda_emu.foreign.vpux.reader.statements import read_into

__all__ = ["read_into"]
