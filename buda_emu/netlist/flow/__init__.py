"""What a program does, as far as its text alone says it: a bounded walk with abstract values (docs/netlists/check.md).

A value is an int, or None where it cannot be said. The walk follows the first run of a program on a machine that nobody
but the netlist's programs and the host has used. What depends on the host or on a parameter is unknown, and of what is
unknown nothing is said.
"""

from buda_emu.netlist.flow.walk import notes_of

__all__ = ["notes_of"]
