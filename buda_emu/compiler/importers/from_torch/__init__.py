"""PyTorch models as graphs. Importing the modules of this folder imports `torch`."""
