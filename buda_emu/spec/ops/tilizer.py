"""tilizer: row-major data of a flat queue into tiles (OPS 6.10)."""

from buda_emu.spec.ops.declaration import ANY, READ, OpType

TILIZER = OpType(
    "tilizer", "tilizer", (1, ANY), "row-major data of a flat queue into tiles",
    op="buda_emu.ops.tilizer.op",
    device="buda_emu.ops.tilizer.device",
    traits=("keeps shape", "reads flat data", "reads what was pushed", "cut by its attributes"),
    result_tile="of the op",
    on_device=READ,
)  # fmt: skip
