"""Tensors and queues as the host API describes them, and on their way between the host and files."""
