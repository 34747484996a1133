"""Every public silicon figure beside the model, and the fit of its transfers: `python -m benchmarks.scorecard`."""
