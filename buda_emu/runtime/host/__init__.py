"""What the host does with a machine: arrays into entries and back, push and pop, programs that run in turn."""
