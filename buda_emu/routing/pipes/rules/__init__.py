"""What net2pipe refuses of an epoch's pipes."""
