"""Rules on the schedules of fused ops, each as the ops use it that run it: its sub-ops and their operands, TMs,
formats, sizes, and the life of intermediate buffers.
"""
