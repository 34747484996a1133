"""Importers read ONNX, PyTorch and JAX (through StableHLO) models into a graph of front-end ops. Besides
`train/compile_training.py`, this is the only package of the compiler that imports `onnx`, `torch` and `jax`, and only
when such a model is read."""
