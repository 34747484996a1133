"""Whether a result holds, and how far it is from what was expected (NETLIST 5.3)."""
