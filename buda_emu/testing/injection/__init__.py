"""Fault injection (docs/stress/faults.md). A clean run is recorded as a graph of values (`trace.py`), a fault changes
one of them (`corrupt.py`, `inside_op.py`), and only the values that it reaches are computed again. `sites.py` lists
what can be hit, `draw.py` draws faults, `machines.py` runs faults that change what is read, `timing_faults.py` those
that change times, `campaign.py` runs many faults and compares outputs, `protect.py` tries protection, `result.py`
counts.
"""
