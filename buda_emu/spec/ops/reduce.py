"""reduce: maximum over rows, columns, tiles or z (OPS 6.7)."""

from buda_emu.spec.ops.declaration import ANY, WIDE, OnDevice, OpType

REDUCE = OpType(
    "reduce", "reduce", (1, ANY), "maximum over rows, columns, tiles or z",
    op="buda_emu.ops.reduce.op",
    device="buda_emu.ops.reduce.device",
    traits=("reduces", "keeps sums", "multiplies"),
    attributes=("dim", "type", "z"),
    late_z=("dim", "z"),
    in_fused=True,
    result_tile="full",
    drawn_as="reduce",
    on_device=OnDevice(WIDE),
)  # fmt: skip
