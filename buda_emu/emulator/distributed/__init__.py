"""One netlist on several machines (docs/run/workers.md). It is cut into parts (its chips, or its epochs if there is
only one chip), and each worker process holds one. `part.py` cuts a netlist and is a worker with its connections;
`machines.py` is the interface.
"""
