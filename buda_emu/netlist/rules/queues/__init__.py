"""Rules on queues and rams: their fields, their allocations in memory, aliases, and constants of programs."""
