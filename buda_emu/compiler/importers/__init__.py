"""Readers of models: ONNX and PyTorch."""
