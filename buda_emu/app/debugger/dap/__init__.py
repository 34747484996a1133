"""The Debug Adapter Protocol, by which editors drive the debugger (docs/run/debug.md): a thread for each chip, the
program, its epoch and the op as frames, variables and queues as scopes, tensors as tables and as memory.
"""
