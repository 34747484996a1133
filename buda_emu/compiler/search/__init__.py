"""The search for the placement that the timing model calls fastest: forms of the graph, divisions of each op, cuts
between epochs, packing of cores, and several chips (docs/compile/placing.md). Its work is bounded by the number of ops
that it models, not by a clock, so its result does not depend on the speed of the machine."""
