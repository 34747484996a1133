"""What the host does with a machine: converts arrays to queue entries and back, pushes, pops, and runs programs one
after the other.
"""
