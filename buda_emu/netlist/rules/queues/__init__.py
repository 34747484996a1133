"""Rules on queues and rams: their fields, their memory and whether there is room, what lies over what, and constants."""
