"""Rules on pipes and streams: what the vendor's net2pipe and pipegen2 refuse between netlist and chip. They are found
by `buda_emu.routing`, which makes pipes and streams itself."""
