"""A netlist on its machine: the Emulator and, a room each, what it is made of."""
