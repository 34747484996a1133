"""Rules on queues and rams: their fields, their memory and the room for it, what lies over what, and constants."""
