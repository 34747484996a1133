"""Readers of models: ONNX and PyTorch become a graph of front-end ops. The only room of the compiler, besides
`train/joint.py`, that imports `onnx` and `torch`, and only when such a model is read.
"""
