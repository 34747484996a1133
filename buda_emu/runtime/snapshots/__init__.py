"""All that a machine remembers, written to a file and taken from it again (docs/snapshots.md)."""
