"""What the chip holds: queues and rams with their pointers, the tiles in them (as float32, or as the bits of their
format), and byte ranges in DRAM and host memory. Knows no netlist: `runtime` makes these objects from one.
"""
