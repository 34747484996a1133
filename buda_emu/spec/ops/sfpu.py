"""Functions of the vector unit (OPS 6.6)."""

from collections.abc import Iterable

from buda_emu.spec.ops.declaration import FLOATS, TILE_BY_TILE, OnDevice, OpType, Trait

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
        op="buda_emu.ops.sfpu.op",
        device="buda_emu.ops.sfpu.device",
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
