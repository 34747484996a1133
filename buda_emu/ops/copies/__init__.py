"""nop, datacopy, ethernet_datacopy: the operand again, bit by bit. Copies over Ethernet go to another chip, on the
device without passing through the units of a core.
"""
