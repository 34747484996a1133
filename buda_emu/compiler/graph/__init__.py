"""The graph of a model: nodes with shapes and types, constants, names, a builder, and a table of what the graph may
hold at each stage (`spec.py`), which is checked after every pass.
"""
