"""Between L1 and the registers: unpacker, packer, block formats and accumulation in L1."""
