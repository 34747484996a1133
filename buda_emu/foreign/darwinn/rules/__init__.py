"""The numbered rules of DarwiNN packages, D001 to D086 (DARWINN 8), one declaration each, in files by subject."""

from typing import Final

from buda_emu.foreign.darwinn import reading  # declares D001 to D018
from buda_emu.foreign.darwinn.model import BOOK
from buda_emu.foreign.darwinn.rules import dma, instructions, package

__all__ = ["BOOK"]

FILES: Final = (reading, package, instructions, dma)  # imported: they fill the book
