"""All rules: importing this file fills the book."""

from typing import Final

from buda_emu.checker import RuleBook
from buda_emu.darwinn import reading  # declares D001 to D018
from buda_emu.darwinn.book import BOOK
from buda_emu.darwinn.rules import coverage, hints, instructions, layers, outputs, package

CATALOGUE: Final[RuleBook] = BOOK
FILES: Final = (reading, package, instructions, hints, coverage, layers, outputs)
