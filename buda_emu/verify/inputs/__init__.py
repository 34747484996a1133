"""What a run is fed with: tensors from outside, and stimulus where there are none (NETLIST 5.1, 5.2, 5.4)."""
