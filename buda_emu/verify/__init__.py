"""test-config: stimulus, comparison, reference tensors, runs of one netlist and of thousands (NETLIST 5)."""
