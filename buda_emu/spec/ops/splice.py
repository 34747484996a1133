"""splice: pieces of its inputs, one after the other (OPS 6.8)."""

from buda_emu.spec.ops.declaration import READ, OpType

SPLICE = OpType(
    "splice", "splice", (1, 8), "concatenates pieces of its inputs",
    op="buda_emu.ops.splice.op",
    device="buda_emu.ops.splice.device",
    traits=("takes turns", "cut by its attributes"),
    attributes=("granularity", "inputs"),
    result_tile="full",
    on_device=READ,
)  # fmt: skip
