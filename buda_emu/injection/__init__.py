"""Faults and what they do (docs/faults.md): a clean run is recorded as a graph of values (`trace.py`), a fault changes
one of them (`spoil.py`), and only what it reaches is computed anew. `sites.py` draws faults, `campaign.py` runs many,
`result.py` counts.
"""
