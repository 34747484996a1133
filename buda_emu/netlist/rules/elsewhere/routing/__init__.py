"""Rules on pipes and streams: what the vendor's net2pipe and pipegen2 refuse between netlist and chip. They are found
by `buda_emu.routing`, which makes pipes and streams itself."""

from typing import Final

NET2PIPE: Final = "net2pipe"
PIPEGEN2: Final = "pipegen2"
"""The programs that refuse a netlist by these rules."""
