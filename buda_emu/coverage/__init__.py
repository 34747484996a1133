"""Which parts of the netlist language some netlists exercise, and which they do not (docs/stress/coverage.md).
`lists.py` lists all features, derived from the tables of `spec`; `features.py` finds those of one netlist; `report.py`
counts and merges.
"""
