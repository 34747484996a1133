"""Between chips: over PCIe on grayskull, over Ethernet on wormhole_b0."""
