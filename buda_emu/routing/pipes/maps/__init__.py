"""What stands between a producer and an operand: tiles, TMs, pieces of a stack, chunks of a prologue."""
