"""One netlist on several machines (docs/workers.md): its chips, or its epochs where there is one chip, are parts that
workers hold. `cut.py` says who has what, `part.py` is a worker, `machines.py` what a user holds, `link.py` lies between
them.
"""
