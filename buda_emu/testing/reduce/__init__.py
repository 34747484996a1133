"""Shrinks a netlist as long as a command still fails on it (docs/stress/reduce.md): `moves` offers smaller netlists,
from leaving half of the ops out to a single attribute, `trials.py` runs the command, `search.py` keeps what still
fails.
"""
