"""What would make a netlist faster: what a compiler engineer tries, modelled, checked, and held against its cost in
accuracy (docs/advise.md)."""
