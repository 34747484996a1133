"""Bounded walk through programs with abstract values: the effects of a program that its text alone determines
(docs/netlists/check.md).

A value is an int, or None if the text does not determine it. The walk follows the first run of a program on a
machine that only the netlist's programs and the host have used. Values that depend on the host or on a parameter are
not known, and nothing is reported about them.
"""

from buda_emu.netlist.flow.walk import notes_of

__all__ = ["notes_of"]
