"""Plan a graph once, run it on kernels, keep the machine's state: the Emulator and its parts."""
