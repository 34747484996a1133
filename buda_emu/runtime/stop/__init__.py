"""The explanation of a program that stopped: where, with which queues, and the likely cause
(docs/stopped-programs.md).
"""
