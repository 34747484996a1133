"""Declarations of products and of fused ops (OPS 6.1 to 6.3, 8)."""

from buda_emu.spec.ops.declaration import ANY, FLOATS, INTEGERS, OnDevice, OpType

MATMUL = OpType(
    "matmul", "matmul", (2, ANY), "matrix product; identity: true makes it sparse",
    op="buda_emu.emulator.ops.matmul",
    device="buda_emu.emulator.ops.on_device.matmul",
    traits=(
        "inner dimension", "rows by columns", "keeps sums", "multiplies", "clamps", "sums gradients on grayskull",
        "gradient transposes",
    ),
    attributes=(
        "identity", "num_sparse_tiles", "num_columns", "indices_len", "fracture_factor", "starting_row", "act_t",
        "num_index_tiles", "sparse_tile_ptr_bits", "sparse_ublock_idx_bits", "num_nz_strips", "min_buffer_input",
        "l1_acc", "z", "sfpu_execution_thread", "requant", "dequant",
    ),
    late_z=("accumulate", True),
    in_fused=True,
    transposed=1,
    result_tile="of the op",
    drawn_as="matmul",
    on_device=OnDevice((*FLOATS, *INTEGERS), "where an identity matmul spills was inferred"),
)  # fmt: skip


DEPTHWISE = OpType(
    "depthwise", "depthwise", (1, ANY), "depthwise product of column groups",
    op="buda_emu.emulator.ops.depthwise",
    device="buda_emu.emulator.ops.on_device.depthwise",
    traits=("inner dimension", "keeps sums", "multiplies", "clamps", "one operand is kept", "cut by its attributes"),
    attributes=("min_buffer_input", "l1_acc"),
    result_tile="of operand 0",
    drawn_as="matmul",
    on_device=OnDevice(FLOATS),
)  # fmt: skip


FUSED = OpType(
    "fused_op", "fused", (1, ANY), "a schedule of sub-ops, see fused_ops",
    op="buda_emu.emulator.ops.fused",
    device="buda_emu.emulator.ops.on_device.fused",
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
