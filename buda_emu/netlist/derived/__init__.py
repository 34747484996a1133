"""What a netlist leaves open and loading works out: which chips, temporal graphs, vector modes, pointer steps."""
