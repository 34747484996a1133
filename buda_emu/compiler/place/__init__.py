"""The parts of a placement: blocks of an op, the cores it may have, queues and their addresses, and whether the chip's
memory and routing have room for it. `search` chooses among what this package offers.
"""
