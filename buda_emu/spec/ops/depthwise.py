"""depthwise: products of column groups (OPS 6.3)."""

from buda_emu.spec.ops.declaration import ANY, FLOATS, OnDevice, OpType

DEPTHWISE = OpType(
    "depthwise", "depthwise", (1, ANY), "depthwise product of column groups",
    op="buda_emu.ops.depthwise.op",
    device="buda_emu.ops.depthwise.device",
    traits=("inner dimension", "keeps sums", "multiplies", "clamps", "one operand is kept", "cut by its attributes"),
    attributes=("min_buffer_input", "l1_acc"),
    result_tile="of operand 0",
    drawn_as="matmul",
    on_device=OnDevice(FLOATS),
)  # fmt: skip
