"""The functions of the vector unit as a table by name, and how one runs over tiles of Dst (DEVICE_NUMERICS 3).

`bind` gives a function its parameters; `reference` computes it by the definition, `run` by the kernels with the same
bits. Functions of one 16-bit datum run through a table of all their results.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32, single
from buda_emu.arithmetic.formats.codecs import SCALAR_CODECS
from buda_emu.arithmetic.kernels.tensix.functions import vector_unit as kernels
from buda_emu.arithmetic.kernels.tensix.words import as_rows
from buda_emu.arithmetic.tensix.functions import elementary
from buda_emu.arithmetic.tensix.functions import elementary as wormhole
from buda_emu.arithmetic.tensix.functions.elementary import (
    HALF,
    MINUS_HALF,
    MINUS_ONE,
    ONE,
    SIGN,
    from_sign_magnitude,
    lut8,
    minus,
    multiply,
    plus,
    table,
    to_sign_magnitude,
)
from buda_emu.arithmetic.tensix.functions.programs import Program, record
from buda_emu.arithmetic.tensix.functions.vector_unit import NumpyUnit, V, VectorUnit
from buda_emu.arithmetic.tensix.lanes import FAMILY_SHIFT, DstMode, VectorMode, load, store, touched_mask
from buda_emu.arithmetic.tensix.registers import Core
from buda_emu.spec.single import INFINITY
from buda_emu.support.caches import cache_folder, read_cache_file, sources, write_cache_file
from buda_emu.support.errors import InternalError, UnsupportedError


def _pattern_rounded_to_fp16(value: float) -> int:
    """Return a number as an fp32 pattern, rounded (nearest, ties to even) to fp16, in which Grayskull's kernels load
    constants."""
    return single(float(np.float16(value)))


# Constants of Grayskull's kernels (DEVICE_NUMERICS 3.4); there is no simulator to compare with.
EXP_SLOPE: Final = _pattern_rounded_to_fp16(0.8369)
INVERSE: Final = _pattern_rounded_to_fp16(1.4424)
LN2: Final = _pattern_rounded_to_fp16(0.6929)
LOG: Final = (single(0.1058), single(-0.7122), single(2.0869), single(-1.4753))
PI: Final = single(3.14159264)

SIGMOID: Final = lut8((0x3DFF, 0x21D8, 0xFF10))
GELU_CORE: Final = lut8((0x18FF, 0x2010, 0xFF00))
GELU_CORE_APPROX: Final = lut8((0x18FF, 0x212C, 0xFF00))


def exp(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return e^x as Grayskull's kernel computes it: in the exact mode as Wormhole's with other constants, in the
    approximate one by shifting a sum into the place of the exponent (DEVICE_NUMERICS 3.4)."""
    if not approximate:
        return wormhole.exp_exact(u, x, EXP_SLOPE, single(0.8634), INVERSE)
    v = u.fma(x, INVERSE, single(192.0))
    # The kernel adds 0xBD3F to the upper half of the pattern: less 0x4300, the exponent of 192, plus 0x003F (3.4).
    y = u.shift_left(u.add(v, 0xBD3F0000), 7)
    y = u.select(u.negative(minus(u, x, single(-42.0))), 0, y)
    return u.select(u.negative(minus(u, x, single(89.0))), y, INFINITY)


def reciprocal(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return 1 / x as Grayskull's kernel computes it: by Newton's steps as on Wormhole, from Grayskull's estimate."""
    return wormhole.reciprocal(u, x, approximate, INVERSE)


def sqrt(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return the square root as Grayskull's kernel computes it: by two of Newton's steps, without a test for zero, or
    as on Wormhole in the approximate mode (DEVICE_NUMERICS 3.4)."""
    if approximate:
        return wormhole.sqrt(u, x, approximate)
    r = u.subtract(0x5F370000, u.shift_right(x, 1))
    for _ in range(2):
        square = multiply(u, multiply(u, r, r), x)
        r = multiply(u, plus(u, u.fma(square, MINUS_HALF, ONE), HALF), r)
    return multiply(u, r, x)


def log(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return the natural logarithm as Grayskull's kernel computes it: by the polynomial of Wormhole's kernel with
    Grayskull's coefficients."""
    return wormhole.log(u, x, approximate, LOG, LN2)


def sigmoid(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return 1 / (1 + e^-x) as Grayskull's kernel computes it: by a table of three ranges in both modes."""
    del approximate
    return plus(u, table(u, SIGMOID, x), HALF)


def gelu(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return x times the normal distribution function as Grayskull's kernel computes it: by a table in place of
    tanh."""
    return multiply(u, u.fma(x, _gelu_core(u, x, approximate), x), HALF)


def gelu_derivative(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return the derivative of gelu as Grayskull's kernel computes it: by the normal density and a table."""
    g = exp(u, multiply(u, multiply(u, x, x), MINUS_HALF), approximate=False)
    density = multiply(u, multiply(u, g, single(0.39844)), x)
    return plus(u, u.fma(_gelu_core(u, x, approximate), HALF, density), HALF)


def _gelu_core(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return the function within Grayskull's gelu that stands for tanh, with values in -1 .. 1: a table, of a cubic of
    x in the exact mode, of x itself in the approximate one."""
    if approximate:
        return table(u, GELU_CORE_APPROX, x)
    cube = multiply(u, multiply(u, x, x), x)
    return table(u, GELU_CORE, multiply(u, u.fma(cube, single(0.044715), x), single(0.7969)))


def sine(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return the sine as Grayskull's kernel computes it: by Wormhole's series, for an argument in 0 .. 2 pi, which is
    not reduced."""
    terms = wormhole.terms_of(wormhole.SINE, approximate)
    return multiply(u, wormhole.sine_series(u, minus(u, x, PI), terms, product=False), MINUS_ONE)


def cosine(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return the cosine as Grayskull's kernel computes it: by Wormhole's series, for an argument in 0 .. 2 pi, which is
    not reduced."""
    terms = wormhole.terms_of(wormhole.COSINE, approximate)
    return multiply(u, wormhole.cosine_series(u, minus(u, x, PI), terms), MINUS_ONE)


FOLDER: Final = "tables"
MOST_BYTES: Final = 16 << 20  # of all files; those that were not used for longest go first
_ROOMS: Final = ("arithmetic/tensix", "arithmetic/formats", "spec")
_MAGIC: Final = b"buda-emu table 1\n"
_Table = NDArray[np.uint16]


def load_table(name: str, about: object, make: Callable[[], _Table]) -> _Table:
    """Return a read-only table uint16[65536], from the user's cache or else from `make`, whose result is then written
    to the cache. `about` is an object whose `repr` contains all that the table depends on besides this package's
    sources; the cache file is called `name` and a hash of both."""
    file = _cache_file(name, about)
    content = None
    if file:
        content = read_cache_file(file, _MAGIC, MOST_BYTES)
    if content is not None and len(content) == (1 << 16) * 2:
        table = np.frombuffer(content, "<u2").astype(np.uint16)  # a copy, whose memory is aligned
    else:
        table = make()
        if file:
            write_cache_file(file, _MAGIC, table.astype("<u2").tobytes(), MOST_BYTES)
    table.flags.writeable = False
    return table


def _cache_file(name: str, about: object) -> str:
    """Return the path of the cache file of a table, by what `load_table` is called with; "" where nothing can be
    kept."""
    folder = cache_folder(FOLDER)
    if not folder:
        return ""
    text = repr((about, sources(*_ROOMS), sys.version, np.__version__))
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return os.path.join(folder, f"{name}-{digest}")  # noqa: PTH118


INT8_LIMIT = 127  # sign and magnitude: 7 bits of magnitude


def quantization(u: VectorUnit[V], a: V, scale: V | int, zero_point: int) -> V:
    """Return Int8 in sign and magnitude for fp32: a * scale + zero point in one rounding, then to the nearest integer,
    ties away from zero, and clamped to +-127. `zero_point` is an fp32 pattern."""
    return u.to_integer(u.fma(a, scale, zero_point), INT8_LIMIT)


def requantization(u: VectorUnit[V], a: V, scale: V | int, zero_point: int) -> V:
    """Return Int8 in sign and magnitude for Int32: a * scale + zero point, rounded and clamped to +-127 as
    `quantization` does. `zero_point` is an fp32 pattern."""
    return u.to_integer(u.fma(u.to_float(a), scale, zero_point), INT8_LIMIT)


def dequantization(u: VectorUnit[V], a: V, scale: V | int, minus_zero_point: int) -> V:
    """Return fp32 for Int32: (a - zero point) * scale, sum and product each rounded; `minus_zero_point` is the fp32
    pattern of the negated zero point."""
    return multiply(u, plus(u, u.to_float(a), minus_zero_point), scale)


def integer_add(u: VectorUnit[V], a: V, b: V) -> V:
    """Return the sum of integers in sign and magnitude, modulo 2^32, not saturated; minus zero counts as 0
    (DEVICE_NUMERICS 3.3)."""
    return to_sign_magnitude(u, u.add(from_sign_magnitude(u, a), from_sign_magnitude(u, b)))


def integer_maximum(u: VectorUnit[V], a: V, b: V) -> V:
    """Return the larger of two integers in sign and magnitude, by the sign of their difference modulo 2^32. `a` stays
    as it is in Dst, `b` is stored anew: of minus zero that leaves +0 (DEVICE_NUMERICS 10: 5)."""
    other = from_sign_magnitude(u, b)
    difference = u.subtract(from_sign_magnitude(u, a), other)
    return u.select(u.negative(difference), to_sign_magnitude(u, other), a)


def integer_add_blackhole(u: VectorUnit[V], a: V, b: V) -> V:
    """Return the sum as `integer_add` does, but with minus zero as -2^31, as on Blackhole (DEVICE_NUMERICS 10: 5)."""
    return to_sign_magnitude(u, u.add(_from_sign_magnitude_on_blackhole(u, a), _from_sign_magnitude_on_blackhole(u, b)))


def integer_maximum_blackhole(u: VectorUnit[V], a: V, b: V) -> V:
    """Return the larger integer as `integer_maximum` does, but with minus zero as -2^31, which stays as it is, as on
    Blackhole (DEVICE_NUMERICS 10: 5)."""
    return u.select(
        u.negative(u.subtract(_from_sign_magnitude_on_blackhole(u, a), _from_sign_magnitude_on_blackhole(u, b))), b, a
    )


def _from_sign_magnitude_on_blackhole(u: VectorUnit[V], x: V) -> V:
    """Return an integer in sign and magnitude as two's complement by Blackhole's cast: minus zero becomes -2^31
    (DEVICE_NUMERICS 10: 5)."""
    return u.select(u.equal(x, SIGN), SIGN, from_sign_magnitude(u, x))


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the vector unit: `define(unit, *inputs, **parameters)` on lanes, with the names of its parameters.
    `reads` and `writes` are the modes in which it loads its inputs from Dst and stores its result, None for the mode of
    the op's Dst."""

    name: str
    define: Callable[..., Any]
    parameters: tuple[str, ...]
    reads: tuple[DstMode | None, ...] = (None,)
    writes: DstMode | None = None


_MODE: Final = ("approximate",)

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        function.name: function
        for function in (
            Function("exp", elementary.exp, _MODE),
            Function("log", elementary.log, _MODE),
            Function("sqrt", elementary.sqrt, _MODE),
            Function("gelu", elementary.gelu, _MODE),
            Function("gelu_derivative", elementary.gelu_derivative, _MODE),
            Function("reciprocal", elementary.reciprocal, _MODE),
            Function("sigmoid", elementary.sigmoid, _MODE),
            Function("tanh", elementary.tanh, _MODE),
            Function("sine", elementary.sine, _MODE),
            Function("cosine", elementary.cosine, _MODE),
            Function("square", elementary.square, _MODE),
            Function("abs", elementary.absolute, _MODE),
            Function("power", elementary.power, ("exponent",)),
            Function("lrelu", elementary.leaky_relu, ("slope",)),
            Function("relu_min", elementary.relu_min, ("threshold",)),
            Function("relu_max", elementary.relu_max, ("threshold",)),
            Function("dropout", elementary.dropout, ("scale", "below"), reads=(None, "int32")),
            Function("maximum", elementary.maximum, (), reads=(None, None)),
            Function("cast_to_fp16", elementary.cast_to_fp16, (), reads=("fp32",), writes="fp16"),
            Function("quantization", quantization, ("zero_point",), reads=("fp32", "fp32"), writes="int32"),
            Function("requantization", requantization, ("zero_point",), reads=("int32", "fp32"), writes="int32"),
            Function(
                "dequantization",
                dequantization,
                ("minus_zero_point",),
                reads=("int32", "fp32"),
                writes="fp32",
            ),
            Function("integer_add", integer_add, (), reads=("int32", "int32"), writes="int32"),
            Function("integer_maximum", integer_maximum, (), reads=("int32", "int32"), writes="int32"),
        )
    }
)
"""Every function. Parameters that are numbers are patterns: `single`, `bf16_cut` and `fp16_constant` make them."""

_OWN: Final[Mapping[tuple[Core, str], Callable[..., Any]]] = MappingProxyType(
    {
        ("grayskull", "exp"): exp,
        ("grayskull", "log"): log,
        ("grayskull", "sqrt"): sqrt,
        ("grayskull", "gelu"): gelu,
        ("grayskull", "gelu_derivative"): gelu_derivative,
        ("grayskull", "reciprocal"): reciprocal,
        ("grayskull", "sigmoid"): sigmoid,
        ("grayskull", "sine"): sine,
        ("grayskull", "cosine"): cosine,
        ("blackhole", "integer_add"): integer_add_blackhole,
        ("blackhole", "integer_maximum"): integer_maximum_blackhole,
    }
)
"""What a core computes otherwise than Wormhole."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A function of the vector unit with values for its parameters, on one kind of core. It is hashable, so that its
    program and its table are made once."""

    function: Function
    core: Core
    parameters: tuple[tuple[str, int | bool], ...]

    @property
    def blackhole(self) -> bool:
        """True where Blackhole's multiply-add is used instead of Wormhole's."""
        return self.core == "blackhole"

    @property
    def define(self) -> Callable[..., Any]:
        """The definition of the function on this core with its parameters filled in, to be called with (unit,
        *inputs)."""
        chosen = _OWN.get((self.core, self.function.name), self.function.define)
        return partial(chosen, **dict(self.parameters))

    @property
    def whole_faces(self) -> bool:
        """True where the function runs through whole faces in every vector mode, as approximate exp does
        (DEVICE_NUMERICS 3.2)."""
        return self.function.name == "exp" and dict(self.parameters)["approximate"] is True

    def modes(self, mode: DstMode) -> tuple[tuple[DstMode, ...], DstMode]:
        """Return the modes in which the function loads its inputs from Dst, and the one in which it stores its result
        there: those that the function prescribes, else `mode`, that of the op's Dst."""
        return tuple(read_mode or mode for read_mode in self.function.reads), self.function.writes or mode


def bind(name: str, core: Core = "wormhole_b0", **parameters: int | bool) -> Bound:
    """Return a function of `FUNCTIONS` with exactly its parameters on a core. Raises UnsupportedError for another name,
    InternalError for other parameters."""
    if name not in FUNCTIONS:
        raise UnsupportedError(f"no function {name!r} of the vector unit is known")
    function = FUNCTIONS[name]
    if set(parameters) != set(function.parameters):
        raise InternalError(f"{name} takes {function.parameters}, not {tuple(parameters)}")
    return Bound(function, core, tuple((key, parameters[key]) for key in function.parameters))


def reference(bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
    """Return the Dst image of the function's result for Dst images of its inputs, uint32[n, 32, 32] in
    `bound.modes(mode)`, by the definition in numpy.

    Datums that the vector mode does not reach keep their value of the first image. Raises UnsupportedError for another
    vector mode.
    """
    reads, writes = bound.modes(mode)
    values = (load(image, read_mode) for image, read_mode in zip(images, reads, strict=True))
    result = store(bound.define(NumpyUnit(bound.blackhole), *values), writes)
    return np.where(touched_mask(vector, bound.whole_faces), result, images[0])


def run(
    bound: Bound, mode: DstMode, out: U32, *images: U32, vector: VectorMode = "rc", tiles: tuple[int, int] | None = None
) -> None:
    """Write the image that `reference` returns to `out`, by compiled kernels; images are C-contiguous. `tiles` is the
    range (first, end) of tiles to compute, all by default. Raises UnsupportedError for another vector mode."""
    reads, writes = bound.modes(mode)
    mask = touched_mask(vector, bound.whole_faces)
    if len(images) == 1 and reads[0] in ("bf16", "fp16"):
        source = as_rows(images[0])
        target = as_rows(out)
        kernels.apply_table(*(tiles or (0, len(out))), source, _result_table(bound, reads[0]), mask.reshape(-1), target)
        return
    second = None
    if len(images) == 2:
        second = images[1], reads[1]
    _recorded_program(bound).run(images[0], out, mask, reads[0], writes, second, bound.blackhole, tiles)


def bf16_cut(value: float) -> int:
    """Return a number truncated to bf16, as an fp32 pattern: for the slope of lrelu and the scale of dropout."""
    return single(value) & 0xFFFF0000


def fp16_constant(value: float) -> int:
    """Return a number as a constant of 16 bits of family A, as an fp32 pattern: for the threshold of a relu on dest.
    The exponent is moved whatever it is: code 0, which stands for all below 2^-14, is 2^-15 (DEVICE_NUMERICS 10:
    3.3)."""
    code = int(SCALAR_CODECS["Float16"].encode(np.array([value], dtype=np.float32))[0])
    return (code & 0x8000) << 16 | ((code & 0x7FFF) << 13) + (FAMILY_SHIFT << 23)


@lru_cache(maxsize=64)
def _recorded_program(bound: Bound) -> Program:
    """Return the program of a function for the kernel, recorded once per process."""
    return record(bound.define, len(bound.function.reads))


@lru_cache(maxsize=64)
def _result_table(bound: Bound, mode: DstMode) -> NDArray[np.uint16]:
    """Return the results for all 65536 datums of a 16-bit mode, uint16[65536] by datum; from the memory of this process
    or the user's cache if there, else computed by the definition."""

    def compute() -> NDArray[np.uint16]:
        """Compute the table by the definition."""
        every = np.arange(1 << 16, dtype=np.uint32)
        result = store(bound.define(NumpyUnit(bound.blackhole), load(every, mode)), bound.modes(mode)[1])
        return result.astype(np.uint16)

    return load_table(bound.function.name, (bound.core, bound.function.name, bound.parameters, mode), compute)
