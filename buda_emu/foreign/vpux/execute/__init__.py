"""Run a program on bytes, task by task, in the order that the schedule gives them (VPUX 4 to 6). Kernels read their
operands through the argument buffers, as on the device."""
