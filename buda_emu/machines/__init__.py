"""One netlist on several machines (docs/run/workers.md). It is cut into parts (its chips, or its epochs if there is
only one chip), and each worker process holds one. `cut.py` assigns the parts, `part.py` is a worker, `machines.py` is
the interface, `link.py` connects them.
"""
