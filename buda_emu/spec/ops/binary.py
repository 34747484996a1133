"""add, subtract, multiply, maximum (OPS 6.4)."""

from collections.abc import Iterable
from functools import partial

from buda_emu.spec.ops.declaration import ANY, FLOATS, INTEGERS, TILE_BY_TILE, OnDevice, OpType, Trait

_binary = partial(
    OpType,
    family="binary",
    inputs=(2, ANY),
    op="buda_emu.ops.binary.op",
    device="buda_emu.ops.binary.device",
    in_fused=True,
    transposed=0,
    transposes_on_grayskull=False,
    drawn_as="binary",
    on_device=OnDevice((*FLOATS, *INTEGERS)),
)
_TRAITS: tuple[Trait, ...] = (*TILE_BY_TILE, "clamps")
_SUMS, _PRODUCTS = ("Int8", "UInt8", "Int32"), ("Int8", "UInt8")  # NETLIST V102
_SUMS_IN_FUSED, _PRODUCTS_IN_FUSED = ("Int8", "Int32"), ("Int8",)  # NETLIST V141

BINARY: Iterable[OpType] = (
    _binary("add", doc="a + b", traits=_TRAITS, integers=_SUMS, integers_in_fused=_SUMS_IN_FUSED),
    _binary("subtract", doc="a - b", traits=_TRAITS, integers=_PRODUCTS, integers_in_fused=_PRODUCTS_IN_FUSED),
    _binary(
        "multiply",
        doc="a * b",
        traits=(*_TRAITS, "multiplies", "sums gradients on grayskull"),
        integers=_PRODUCTS,
        integers_in_fused=_PRODUCTS_IN_FUSED,
    ),
    _binary(
        "maximum",
        doc="the greater of a and b",
        traits=(*_TRAITS, "no gradient"),
        integers=_SUMS,
        integers_in_fused=_SUMS_IN_FUSED,
    ),
)
