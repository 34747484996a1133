"""nop, datacopy, ethernet_datacopy (OPS 6.6)."""

from collections.abc import Iterable
from functools import partial

from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops.declaration import FLOATS, INTEGERS, TILE_BY_TILE, OnDevice, OpType

_copy = partial(OpType, inputs=(1, 1), op="buda_emu.ops.copies.op", device="buda_emu.ops.copies.device", in_fused=True)
_ALL = OnDevice((*FLOATS, *INTEGERS))

COPIES: Iterable[OpType] = (
    _copy(
        "nop",
        "unary",
        doc="copy",
        traits=(
            *TILE_BY_TILE,
            "copies",
            "clamps",
            "sums gradients on grayskull",
            "gradient transposes",
            "Int32 sums of floats",
        ),
        transposed=0,
        on_device=_ALL,
    ),
    _copy(
        "datacopy",
        "unary",
        doc="copy",
        traits=(*TILE_BY_TILE, "copies", "sums gradients on grayskull", "gradient transposes"),
        transposed=0,
        on_device=_ALL,
    ),
    _copy(
        "ethernet_datacopy",
        "ethernet",
        doc="copy over an Ethernet link",
        traits=(*TILE_BY_TILE, "copies", "Ethernet", "cut by its attributes"),
        on_device=OnDevice(tuple(NETLIST_FORMATS)),
    ),
)
