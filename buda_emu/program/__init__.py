"""The netlist's program ISA: variables, loops, evaluated settings. No tensors here."""
