"""fused_op: a schedule of sub-ops, tile by tile or op by op."""
