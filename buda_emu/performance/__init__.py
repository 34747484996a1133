"""Time: tasks on units, cycles of ops and transfers, routing between cores, and advice that makes a netlist faster."""
