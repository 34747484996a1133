"""The op types of the netlist language (OPS 1): which words exist, how many inputs, which family. Behaviour:
`buda_emu.ops`."""

from collections.abc import Mapping
from typing import Literal

from buda_emu.records import dataclass
from buda_emu.spec.attributes import SFPU_TYPES
from buda_emu.spec.formats import NETLIST_FORMATS

Family = Literal[
    "matmul", "depthwise", "binary", "quantization", "unary", "ethernet", "sfpu", "reduce", "splice", "embedding",
    "tilizer", "topk", "fused", "refused",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class OnDevice:
    """What is claimed of an op's bits in precision "device" on Wormhole B0 and Blackhole (DEVICE_NUMERICS 9, 10).

    `exact`: formats of operands and results for which every unit on the way was compared bit for bit with the public
    simulator, and their order read in the public kernels; none where a part of the op itself was read or inferred.
    `open`: what was not compared, other formats apart.
    """

    exact: tuple[str, ...] = ()
    open: str = ""


@dataclass(frozen=True, slots=True)
class OpType:
    """One op type. `inputs` = (least, most) accepted at load (NETLIST 11.1 A4); `runs` = what execution needs."""

    name: str
    family: Family
    inputs: tuple[int, int]
    doc: str
    in_fused: bool = False  # legal in a fused schedule (OPS 8.2)
    on_device: OnDevice = OnDevice()

    @property
    def is_unary(self) -> bool:
        """nop, datacopy and ethernet_datacopy (NETLIST 11.1 A15)."""
        return self.family in ("unary", "ethernet")

    @property
    def is_binary(self) -> bool:
        """The element-wise two-operand ops, the quantisation family included."""
        return self.family in ("binary", "quantization")


_ANY = 1 << 30
_SFPU_DOC = {
    "exp": "e^x, never above the largest finite float32",
    "log": "natural logarithm; log(0) = log(2^-23)",
    "sqrt": "square root; a negative or NaN input fails the run",
    "gelu": "gelu by the tanh approximation",
    "gelu_derivative": "derivative of gelu",
    "reciprocal": "1/x; 1/0 = 2^23",
    "sigmoid": "1/(1+e^-x)",
    "dropout": "zeroes a fixed pattern of elements and scales the rest",
    "tanh": "hyperbolic tangent",
    "square": "x*x",
    "power": "x to an integer power by repeated multiplication",
    "sine": "sin(x), radians",
    "cosine": "cos(x), radians",
    "lrelu": "x, or slope*x where x <= 0",
    "abs": "absolute value",
}

# Of family A the blocks were not compared (DEVICE_NUMERICS 1.2, 4.5), nor max pool of any of it (2.6).
_WIDE = ("Float32", "Float16_b", "Bfp8_b", "Bfp4_b", "Bfp2_b")
_FLOATS = (*_WIDE, "Float16", "Lf8", "Fp8_e4m3")
_INTEGERS = ("Int8", "UInt8", "Int32")
_ALL = OnDevice((*_FLOATS, *_INTEGERS))
_QUANTIZED = OnDevice(("Float32", "Int8", "Int32"))
_READ = OnDevice(open="its place among the units was inferred")
_FUNCTION = "which of the kernel's sums and products the compiler makes one was read in its source"
_TABLE = f"{_FUNCTION}; table 2 of LUT16 was read in documents"
_TURNS = f"{_FUNCTION}; the chip rounds the quotient by pi at random"
_SFPU_ON_DEVICE = {
    **dict.fromkeys(("square", "power", "lrelu", "abs"), OnDevice(_FLOATS)),
    **dict.fromkeys(("exp", "log", "sqrt", "gelu", "reciprocal", "tanh"), OnDevice(open=_FUNCTION)),
    **dict.fromkeys(("sigmoid", "gelu_derivative"), OnDevice(open=_TABLE)),
    **dict.fromkeys(("sine", "cosine"), OnDevice(open=_TURNS)),
    "dropout": OnDevice(open="which values are dropped depends on the core's place"),
}

OP_TYPES: Mapping[str, OpType] = {
    op.name: op
    for op in (
        OpType(
            "matmul",
            "matmul",
            (2, _ANY),
            "matrix product; identity: true makes it sparse",
            in_fused=True,
            on_device=OnDevice((*_FLOATS, *_INTEGERS), "where an identity matmul spills was inferred"),
        ),
        OpType("depthwise", "depthwise", (1, _ANY), "depthwise product of column groups", on_device=OnDevice(_FLOATS)),
        OpType("add", "binary", (2, _ANY), "a + b", in_fused=True, on_device=_ALL),
        OpType("subtract", "binary", (2, _ANY), "a - b", in_fused=True, on_device=_ALL),
        OpType("multiply", "binary", (2, _ANY), "a * b", in_fused=True, on_device=_ALL),
        OpType("maximum", "binary", (2, _ANY), "the greater of a and b", in_fused=True, on_device=_ALL),
        OpType(
            "quantization",
            "quantization",
            (2, _ANY),
            "float to int8: a * scale + zero_point",
            in_fused=True,
            on_device=_QUANTIZED,
        ),
        OpType(
            "requantization",
            "quantization",
            (2, _ANY),
            "int to int8: a * scale + zero_point",
            in_fused=True,
            on_device=_QUANTIZED,
        ),
        OpType(
            "dequantization",
            "quantization",
            (2, _ANY),
            "int to float: (a - zero_point) * scale",
            in_fused=True,
            on_device=_QUANTIZED,
        ),
        OpType("nop", "unary", (1, 1), "copy", in_fused=True, on_device=_ALL),
        OpType("datacopy", "unary", (1, 1), "copy", in_fused=True, on_device=_ALL),
        OpType(
            "ethernet_datacopy",
            "ethernet",
            (1, 1),
            "copy over an Ethernet link",
            in_fused=True,
            on_device=OnDevice(tuple(NETLIST_FORMATS)),
        ),
        *(OpType(name, "sfpu", (1, 1), _SFPU_DOC[name], True, _SFPU_ON_DEVICE[name]) for name in SFPU_TYPES),
        OpType(
            "reduce",
            "reduce",
            (1, _ANY),
            "maximum over rows, columns, tiles or z",
            in_fused=True,
            on_device=OnDevice(_WIDE),
        ),
        OpType("splice", "splice", (1, 8), "concatenates pieces of its inputs", on_device=_READ),
        OpType("embedding", "embedding", (1, _ANY), "rows of a table picked by indices", on_device=_READ),
        OpType("tilizer", "tilizer", (1, _ANY), "row-major data of a flat queue into tiles", on_device=_READ),
        OpType(
            "topk",
            "topk",
            (1, _ANY),
            "the k greatest values of each row, or their indices",
            on_device=OnDevice(open="its network was inferred"),
        ),
        OpType(
            "fused_op",
            "fused",
            (1, _ANY),
            "a schedule of sub-ops, see fused_ops",
            on_device=OnDevice(open="how dest becomes an operand, also by a cast, was read in the kernels"),
        ),
        OpType("buffer", "refused", (1, _ANY), "attribute rules exist, creation is refused by the reference"),
        OpType("drainer", "refused", (1, 1), "performance only, refused by the reference unless enabled there"),
    )
}
