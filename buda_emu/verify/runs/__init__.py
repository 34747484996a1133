"""Netlists from their text to a verdict, in this process, on many, and on a Dask cluster."""
