"""Device images: the `.tti` archive of a compiled model (NETLIST 8)."""
