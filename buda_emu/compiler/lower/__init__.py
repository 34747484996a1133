"""From graph nodes to netlist ops on tiles."""
