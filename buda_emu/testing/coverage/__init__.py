"""Which parts of the netlist language some netlists exercise, and which they do not (docs/stress/coverage.md).
`features.py` lists all features, derived from the tables of `spec`, and finds those of one netlist; `run_features.py`
those of a run; `report.py` counts and merges.
"""
