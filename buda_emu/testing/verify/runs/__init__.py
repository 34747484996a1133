"""The way from the text of a netlist to a verdict: in this process, in many, or on a Dask cluster. Verdicts of
unchanged netlists are stored and reused."""
