"""Between L1 and the registers: unpacker and packer, block formats, accumulation in L1 (DEVICE_NUMERICS 1 and 4)."""
