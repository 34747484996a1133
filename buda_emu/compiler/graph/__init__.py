"""The graph of a model: nodes with shapes, constants, and what it may hold at each stage."""
