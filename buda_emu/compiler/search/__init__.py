"""The search for the placement that the timing model calls fastest: forms of each op, cuts between epochs, packing of
cores, and several chips (docs/compile/placing.md). It counts the ops that it models, so its result depends on no
machine's speed.
"""
