"""The op types of the netlist language (OPS 1): which words exist, how many inputs, which family. Behaviour:
`buda_emu.ops`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from buda_emu.spec.attributes import SFPU_TYPES

Family = Literal[
    "matmul", "depthwise", "binary", "quantization", "unary", "ethernet", "sfpu", "reduce", "splice", "embedding",
    "tilizer", "topk", "fused", "refused",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpType:
    """One op type. `inputs` = (least, most) accepted at load (NETLIST 11.1 A4); `runs` = what execution needs."""

    name: str
    family: Family
    inputs: tuple[int, int]
    doc: str
    in_fused: bool = False  # legal in a fused schedule (OPS 8.2)

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

OP_TYPES: Mapping[str, OpType] = {
    op.name: op
    for op in (
        OpType("matmul", "matmul", (2, _ANY), "matrix product; identity: true makes it sparse", in_fused=True),
        OpType("depthwise", "depthwise", (1, _ANY), "depthwise product of column groups"),
        OpType("add", "binary", (2, _ANY), "a + b", in_fused=True),
        OpType("subtract", "binary", (2, _ANY), "a - b", in_fused=True),
        OpType("multiply", "binary", (2, _ANY), "a * b", in_fused=True),
        OpType("maximum", "binary", (2, _ANY), "the greater of a and b", in_fused=True),
        OpType("quantization", "quantization", (2, _ANY), "float to int8: a * scale + zero_point", in_fused=True),
        OpType("requantization", "quantization", (2, _ANY), "int to int8: a * scale + zero_point", in_fused=True),
        OpType("dequantization", "quantization", (2, _ANY), "int to float: (a - zero_point) * scale", in_fused=True),
        OpType("nop", "unary", (1, 1), "copy", in_fused=True),
        OpType("datacopy", "unary", (1, 1), "copy", in_fused=True),
        OpType("ethernet_datacopy", "ethernet", (1, 1), "copy over an Ethernet link", in_fused=True),
        *(OpType(name, "sfpu", (1, 1), _SFPU_DOC[name], in_fused=True) for name in SFPU_TYPES),
        OpType("reduce", "reduce", (1, _ANY), "maximum over rows, columns, tiles or z", in_fused=True),
        OpType("splice", "splice", (1, 8), "concatenates pieces of its inputs"),
        OpType("embedding", "embedding", (1, _ANY), "rows of a table picked by indices"),
        OpType("tilizer", "tilizer", (1, _ANY), "row-major data of a flat queue into tiles"),
        OpType("topk", "topk", (1, _ANY), "the k greatest values of each row, or their indices"),
        OpType("fused_op", "fused", (1, _ANY), "a schedule of sub-ops, see fused_ops"),
        OpType("buffer", "refused", (1, _ANY), "attribute rules exist, creation is refused by the reference"),
        OpType("drainer", "refused", (1, 1), "performance only, refused by the reference unless enabled there"),
    )
}
