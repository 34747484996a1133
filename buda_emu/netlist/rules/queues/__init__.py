"""Rules on queues and rams: their fields, their memory, what lies over what."""
