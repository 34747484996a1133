"""Coverage: which parts of the netlist language some netlists exercise, and which they do not
(docs/stress/coverage.md). `features.py` lists all features, derived from the tables of `spec`, and finds the features
of one netlist; `run_features.py` finds those of a run; `report.py` counts and merges."""
