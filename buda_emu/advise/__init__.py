"""What would make a netlist faster: changes that a compiler engineer tries, modelled, checked, and held to their cost in
accuracy (docs/advise.md)."""
