"""Declarations of ops that reduce, pick, sort and move (OPS 6.7 to 6.11), and of words that the reference knows and
refuses.
"""

from collections.abc import Iterable

from buda_emu.spec.ops.declaration import ANY, READ, WIDE, OnDevice, OpType

EMBEDDING = OpType(
    "embedding", "embedding", (1, ANY), "rows of a table picked by indices",
    op="buda_emu.emulator.ops.embedding",
    device="buda_emu.emulator.ops.on_device.embedding",
    traits=("reads flat data", "row-wise index", "cut by its attributes"),
    attributes=("num_indices",),
    result_tile="full",
    on_device=READ,
)  # fmt: skip


REDUCE = OpType(
    "reduce", "reduce", (1, ANY), "maximum over rows, columns, tiles or z",
    op="buda_emu.emulator.ops.reduce",
    device="buda_emu.emulator.ops.on_device.reduce",
    traits=("reduces", "keeps sums", "multiplies"),
    attributes=("dim", "type", "z"),
    late_z=("dim", "z"),
    in_fused=True,
    result_tile="full",
    drawn_as="reduce",
    on_device=OnDevice(WIDE),
)  # fmt: skip


SPLICE = OpType(
    "splice", "splice", (1, 8), "concatenates pieces of its inputs",
    op="buda_emu.emulator.ops.splice",
    device="buda_emu.emulator.ops.on_device.splice",
    traits=("takes turns", "cut by its attributes"),
    attributes=("granularity", "inputs"),
    result_tile="full",
    on_device=READ,
)  # fmt: skip


TILIZER = OpType(
    "tilizer", "tilizer", (1, ANY), "row-major data of a flat queue into tiles",
    op="buda_emu.emulator.ops.tilizer",
    device="buda_emu.emulator.ops.on_device.tilizer",
    traits=("keeps shape", "reads flat data", "reads what was pushed", "cut by its attributes"),
    result_tile="of the op",
    on_device=READ,
)  # fmt: skip


TOPK = OpType(
    "topk", "topk", (1, ANY), "the k greatest values of each row, or their indices",
    op="buda_emu.emulator.ops.topk",
    device="buda_emu.emulator.ops.on_device.topk",
    traits=("result indices", "integers are indices", "cut by its attributes"),
    attributes=("k", "sort", "kreduce"),
    costs_as="maximum",
    drawn_as="reduce",
    on_device=OnDevice(open="its network was inferred"),
)  # fmt: skip


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
