"""Training: a torch module with its loss and an optimizer as one netlist of three programs."""
