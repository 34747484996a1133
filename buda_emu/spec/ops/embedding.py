"""embedding: rows of a table, picked by indices (OPS 6.9)."""

from buda_emu.spec.ops.declaration import ANY, READ, OpType

EMBEDDING = OpType(
    "embedding", "embedding", (1, ANY), "rows of a table picked by indices",
    op="buda_emu.ops.embedding.op",
    device="buda_emu.ops.embedding.device",
    traits=("reads flat data", "row-wise index", "cut by its attributes"),
    attributes=("num_indices",),
    result_tile="full",
    on_device=READ,
)  # fmt: skip
