"""The explanation of a program that stopped: where, with which queues, the likely cause
(docs/run/stopped-programs.md)."""
