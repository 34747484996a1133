"""How ops read, and what a core has for it: classes of ops, operands, multicasts, edges."""
