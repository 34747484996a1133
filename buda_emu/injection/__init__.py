"""Faults and what they do (docs/faults.md): a clean run is recorded as a graph of values (`trace.py`), a fault changes
one of them (`corrupt.py`, `inside_op.py`), and only what it reaches is computed anew. `sites.py` says what can be hit,
`draw.py` draws faults, `machines.py` runs those that change what is read, `timing_faults.py` those that change times,
`judge.py` compares outputs, `protect.py` tries protection, `campaign.py` does it for many, `result.py` counts.
"""
