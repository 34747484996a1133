"""What netlists exercise of the language, and what they do not (docs/coverage.md): `lists.py` has what there is, made
from the tables of `spec`, `features.py` finds what one netlist has of it, `report.py` counts and merges.
"""
