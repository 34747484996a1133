"""Operators of PyTorch as front-end ops, by family. Importing these modules does not import `torch`."""
