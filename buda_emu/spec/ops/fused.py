"""fused_op: a schedule of sub-ops (OPS 8)."""

from buda_emu.spec.ops.declaration import ANY, OnDevice, OpType

FUSED = OpType(
    "fused_op", "fused", (1, ANY), "a schedule of sub-ops, see fused_ops",
    op="buda_emu.ops.fused.op",
    device="buda_emu.ops.fused.device",
    traits=("sub-ops", "keeps sums", "integers beside floats", "Int32 sums of floats", "cut by its attributes"),
    attributes=(
        "identity", "num_sparse_tiles", "num_columns", "indices_len", "fracture_factor", "starting_row", "act_t",
        "num_index_tiles", "sparse_tile_ptr_bits", "sparse_ublock_idx_bits", "num_nz_strips", "min_buffer_input",
        "dim", "type", "z", "p", "seed", "slope", "exp", "fused_op_id",
    ),
    result_tile="full",
    drawn_as="fused",
    on_device=OnDevice(open="how dest becomes an operand, also by a cast, was read in the kernels"),
)  # fmt: skip
