"""How a temporal graph runs: its plan is made once for each netlist (order, tile maps, formats), its work is scheduled
in chunks of inputs, and kernels compute them on several threads.
"""
