"""The whole state of a machine, written to a file and restored from it (docs/run/snapshots.md). `state.py` lists what
belongs to it, `fingerprint.py` says whether a snapshot belongs to a netlist.
"""
