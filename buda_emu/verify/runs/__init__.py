"""From the text of a netlist to a verdict: in this process, in many, or on a Dask cluster. Verdicts of what did not
change are kept and reused.
"""
