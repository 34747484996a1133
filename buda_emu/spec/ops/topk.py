"""topk: the k greatest values of each row, or their indices (OPS 6.11)."""

from buda_emu.spec.ops.declaration import ANY, OnDevice, OpType

TOPK = OpType(
    "topk", "topk", (1, ANY), "the k greatest values of each row, or their indices",
    op="buda_emu.ops.topk.op",
    device="buda_emu.ops.topk.device",
    traits=("result indices", "integers are indices", "cut by its attributes"),
    attributes=("k", "sort", "kreduce"),
    costs_as="maximum",
    drawn_as="reduce",
    on_device=OnDevice(open="its network was inferred"),
)  # fmt: skip
