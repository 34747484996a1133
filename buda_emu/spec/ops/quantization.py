"""quantization, requantization, dequantization (OPS 6.5)."""

from collections.abc import Iterable
from functools import partial

from buda_emu.spec.ops.declaration import ANY, TILE_BY_TILE, OnDevice, OpType

_quantization = partial(
    OpType,
    family="quantization",
    inputs=(2, ANY),
    op="buda_emu.ops.binary.quantization",
    device="buda_emu.ops.binary.device",
    in_fused=True,
    transposed=0,
    transposes_on_grayskull=False,
    drawn_as="binary",
    on_device=OnDevice(("Float32", "Int8", "Int32")),
)

QUANTIZATION: Iterable[OpType] = (
    _quantization(
        "quantization",
        doc="float to int8: a * scale + zero_point",
        traits=(*TILE_BY_TILE, "rounds to Int8", "Int32 sums of floats"),
    ),
    _quantization(
        "requantization",
        doc="int to int8: a * scale + zero_point",
        traits=(*TILE_BY_TILE, "rounds to Int8", "integers beside floats"),
    ),
    _quantization(
        "dequantization", doc="int to float: (a - zero_point) * scale", traits=(*TILE_BY_TILE, "integers beside floats")
    ),
)
