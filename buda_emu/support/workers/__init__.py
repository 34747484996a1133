"""Independent jobs on worker processes of this machine or of a Dask cluster (docs/run/workers.md). `spread.py` is the
only entry point. Nothing here depends on the kind of work."""
