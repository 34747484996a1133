"""buffer, drainer: words that the reference knows and refuses."""

from collections.abc import Iterable

from buda_emu.spec.ops.declaration import ANY, OpType

REFUSED: Iterable[OpType] = (
    OpType(
        "buffer", "refused", (1, ANY), "attribute rules exist, creation is refused by the reference",
        traits=("one operand is kept",),
        attributes=(
            "num_index_tiles", "sparse_tile_ptr_bits", "sparse_ublock_idx_bits", "num_nz_strips", "min_buffer_input",
        ),
    ),
    OpType("drainer", "refused", (1, 1), "performance only, refused by the reference unless enabled there"),
)  # fmt: skip
