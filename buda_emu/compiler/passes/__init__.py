"""Rewrites of the graph, in files by subject: `clean` (cse, dce, decompose), `folding` of patterns of exporters,
`factors` of products, `slices`, and windows that the host makes. `pipeline.py` lists the passes in their order.
"""
