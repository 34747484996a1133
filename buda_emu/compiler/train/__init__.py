"""Training: a torch module with its loss and an optimizer becomes one netlist of three programs: forward, backward and
optimizer (docs/compile/train-a-model.md).
"""
