"""What a netlist says of its own tests: `test-config` with the stimulus, and `performance-check`."""
