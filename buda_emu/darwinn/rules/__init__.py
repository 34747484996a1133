"""The numbered rules of DarwiNN packages, D001 to D086 (DARWINN 8), one declaration each, in files by subject."""

from typing import Final

from buda_emu.darwinn import reading  # declares D001 to D018
from buda_emu.darwinn.book import BOOK
from buda_emu.darwinn.rules import coverage, hints, instructions, layers, outputs, package

__all__ = ["BOOK"]

FILES: Final = (reading, package, instructions, hints, coverage, layers, outputs)  # imported: they fill the book
