"""Operands of ops in the pipe graph: kinds of ops, buffers of operands, multicasts, edges."""
