"""Values: bytes really moved and computed, task by task (VPUX 4 to 6)."""
