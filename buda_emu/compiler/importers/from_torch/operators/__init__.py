"""Handlers of PyTorch operators by family. Importing these modules does not import `torch`."""
