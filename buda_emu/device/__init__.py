"""What the chip holds: queues and rams with their pointers, the tiles in them, byte ranges in DRAM and host memory."""
