"""Shrinks a netlist as long as a command still fails on it (docs/stress/reduce.md). `moves.py` offers smaller
netlists, from leaving half of the ops out to a single attribute; `search.py` runs the command and takes the netlists
that still fail."""
