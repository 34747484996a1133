"""Rules on one op, with what it reads and where it stands."""
