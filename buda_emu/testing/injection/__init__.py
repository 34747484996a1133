"""Fault injection (docs/stress/faults.md). A clean run is recorded as a graph of values (`trace.py`), a fault changes
one of them (`corrupt.py`, `inside_op.py`), and only the values that it reaches are computed again. `sites.py` lists
the places that can be hit, `draw.py` draws faults, `machines.py` runs faults that decide what is read,
`timing_faults.py` those that change times, `protect.py` tries protection, `campaign.py` runs many faults and compares
outputs, `result.py` counts."""
