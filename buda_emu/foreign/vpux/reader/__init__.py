"""Read text into the model, by the declarative formats of the op table and by code for what they cannot express (VPUX
3). No numpy."""

from buda_emu.foreign.vpux.reader.statements import read_into

__all__ = ["read_into"]
