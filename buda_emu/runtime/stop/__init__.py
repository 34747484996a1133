"""The explanation of a program that stopped: where, with which queues, the likely cause (docs/stopped-programs.md)."""
