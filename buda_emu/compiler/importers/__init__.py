"""Readers of models: ONNX, PyTorch and JAX (by StableHLO) become a graph of front-end ops. The only room of the
compiler, besides `train/joint.py`, that imports `onnx`, `torch` and `jax`, and only when such a model is read.
"""
