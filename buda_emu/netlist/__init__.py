"""The netlist as a document: YAML text with positions, the frozen model (`model.py`), what loading derives, and the
numbered rules whose findings are diagnostics with line and column. `load.py` is the way in, `printer.py` the way
out. Pure Python: no numpy, nothing is executed.
"""
