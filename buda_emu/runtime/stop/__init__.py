"""What is said of a program that stopped: where, around what, and its likely cause (docs/stopped-programs.md)."""
