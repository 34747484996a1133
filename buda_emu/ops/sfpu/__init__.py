"""Functions of the vector unit as ops: exp, log, gelu and their like."""
