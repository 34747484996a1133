"""The whole state of a machine, written to a file and restored from it (docs/run/snapshots.md). `state.py` lists what
belongs to it and decides whether a snapshot belongs to a netlist.
"""
