"""Models to netlists (docs/compile/compile.md). Importers read a model into a graph; passes rewrite, lower, fuse and
place it in the order of `pipeline.py`; `emit` writes the result as a netlist. `compile.py` is the job in one call,
`train` and `generate` compile several programs into one netlist, `parted.py` handles models of which the host runs a
part.
"""
