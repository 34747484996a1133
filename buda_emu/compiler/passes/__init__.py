"""Rewrites of the graph, one file for each pass (cse, dce, decompose, folding of scale and bias, ...). `pipeline.py`
lists them in their order.
"""
