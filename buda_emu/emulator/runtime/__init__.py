"""A netlist on its machine. `emulator.py` is the interface; `host` moves data in and out and starts programs, `graph`
plans and computes temporal graphs, `machine` holds memory and locks, `stop` explains a program that stopped,
`snapshots` writes a machine to a file.
"""
