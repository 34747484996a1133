"""matmul: dense, and sparse by an encoding (OPS 6.1, 6.2)."""

from buda_emu.spec.ops.declaration import ANY, FLOATS, INTEGERS, OnDevice, OpType

MATMUL = OpType(
    "matmul", "matmul", (2, ANY), "matrix product; identity: true makes it sparse",
    op="buda_emu.ops.matmul.op",
    device="buda_emu.ops.matmul.device",
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
