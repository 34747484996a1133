"""Between chips: over PCIe on grayskull, whose chips form a ring, over Ethernet on wormhole_b0, by relays on Ethernet
cores.
"""
