"""The numbered rules of the netlist language, each declared with the functions that check it. `verify.verifying`
runs them."""

from buda_emu.netlist.rules.book import BOOK, NOT_CHECKED, ROUTED, RULES

__all__ = ["BOOK", "NOT_CHECKED", "ROUTED", "RULES"]
