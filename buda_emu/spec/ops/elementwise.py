"""Declarations of ops element by element: two operands, copies, quantization, functions of the vector unit (OPS 6.4 to
6.6).
"""

from collections.abc import Iterable
from functools import partial

from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops.declaration import ANY, FLOATS, INTEGERS, TILE_BY_TILE, OnDevice, OpType, Trait

_binary = partial(
    OpType,
    family="binary",
    inputs=(2, ANY),
    op="buda_emu.emulator.ops.binary",
    device="buda_emu.emulator.ops.on_device.binary",
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


_copy = partial(
    OpType,
    inputs=(1, 1),
    op="buda_emu.emulator.ops.copies",
    device="buda_emu.emulator.ops.on_device.copies",
    in_fused=True,
)
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


_quantization = partial(
    OpType,
    family="quantization",
    inputs=(2, ANY),
    op="buda_emu.emulator.ops.binary",
    device="buda_emu.emulator.ops.on_device.binary",
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


_FUNCTION = "which of the kernel's sums and products the compiler makes one was read in its source"
_SEEN = OnDevice(FLOATS)
_INFERRED = OnDevice(open=_FUNCTION)
_BY_TABLE = OnDevice(open=f"{_FUNCTION}; table 2 of LUT16 was read in documents")
_BY_TURNS = OnDevice(open=f"{_FUNCTION}; the chip rounds the quotient by pi at random")
_BY_PLACE = OnDevice(open="which values are dropped depends on the core's place")


def _sfpu(name: str, doc: str, on_device: OnDevice, *traits: Trait, attributes: tuple[str, ...] = ()) -> OpType:
    return OpType(
        name,
        "sfpu",
        (1, 1),
        doc,
        op="buda_emu.emulator.ops.sfpu",
        device="buda_emu.emulator.ops.on_device.sfpu",
        traits=(*TILE_BY_TILE, "vector unit", *traits),
        attributes=("sfpu_execution_thread", *attributes),
        in_fused=True,
        transposed=0,
        drawn_as="sfpu",
        on_device=on_device,
    )


SFPU: Iterable[OpType] = (
    _sfpu("exp", "e^x, never above the largest finite float32", _INFERRED, "ends a fused op"),
    _sfpu("log", "natural logarithm; log(0) = log(2^-23)", _INFERRED, "takes positive numbers", "large at 0"),
    _sfpu("sqrt", "square root; a negative or NaN input fails the run", _INFERRED, "takes positive numbers"),
    _sfpu("gelu", "gelu by the tanh approximation", _INFERRED),
    _sfpu("gelu_derivative", "derivative of gelu", _BY_TABLE),
    _sfpu("reciprocal", "1/x; 1/0 = 2^23", _INFERRED, "takes positive numbers", "large at 0"),
    _sfpu("sigmoid", "1/(1+e^-x)", _BY_TABLE),
    _sfpu("dropout", "zeroes a fixed pattern of elements and scales the rest", _BY_PLACE, attributes=("p", "seed")),
    _sfpu("tanh", "hyperbolic tangent", _INFERRED),
    _sfpu("square", "x*x", _SEEN),
    _sfpu(
        "power",
        "x to an integer power by repeated multiplication",
        _SEEN,
        "takes positive numbers",
        attributes=("exp",),
    ),
    _sfpu("sine", "sin(x), radians", _BY_TURNS),
    _sfpu("cosine", "cos(x), radians", _BY_TURNS),
    _sfpu("lrelu", "x, or slope*x where x <= 0", _SEEN, attributes=("slope",)),
    _sfpu("abs", "absolute value", _SEEN),
)
SFPU_TYPES = tuple(op.name for op in SFPU)
"""What `sfpu_op` of a matmul may name, too."""
