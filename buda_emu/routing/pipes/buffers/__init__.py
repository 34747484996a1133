"""The buffers of an epoch: of ops, queues and padding, and the pieces that they are read in."""
