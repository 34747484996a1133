"""Tensors and queues as the host API describes them, and their transfer between the host and files."""
