"""Tests of netlists (NETLIST 5): inputs are generated or read, the netlist is run, outputs are compared. `runs` does
this for one netlist or thousands, `op_by_op` finds the op that goes wrong, `comparison` has the measures."""
