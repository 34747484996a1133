"""Elementary functions as the kernels of Wormhole B0 and Blackhole compute them (DEVICE_NUMERICS 3.3), with the
piecewise linear tables of the vector unit (LUT8 with 3 ranges, LUT16 with 6; 3.2) and dropout (6.3).

Each is a sequence of vector instructions; where the text says a*b+c it is one multiply-add, a bare product is one with
addend 0. Constants are fp32 patterns. `x` and results are lanes, before the store into Dst.

For dropout every lane has a 16-bit Galois shift register, stepped after each pass of 32 datums; its state runs on over
faces, tiles and epochs until it is seeded again.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32, to_bits
from buda_emu.arithmetic.tensix.functions.vector_unit import V, VectorUnit
from buda_emu.arithmetic.tensix.lanes import VectorMode, lane_positions, touched_mask
from buda_emu.spec.single import FRACTION, INFINITY, MAGNITUDE, SIGN
from buda_emu.support.errors import InternalError

_BREAKS_3 = (1.0, 2.0)  # DEVICE_NUMERICS 3.2, LUT8
_BREAKS_6 = {1: (0.5, 1.0, 1.5, 2.0, 3.0), 2: (0.5, 1.0, 1.5, 2.0, 4.0)}


@dataclass(frozen=True, slots=True)
class Lut:
    """A piecewise linear table of the vector unit: slope * |x| + offset by the range in which |x| lies (DEVICE_NUMERICS
    3.2).

    `breaks` are the lower ends of the second and later ranges, `slopes` and `offsets` one more each, all fp32 patterns.
    `retain`: the sign of x is copied onto the result. Raises InternalError where the counts do not fit or the breaks do
    not ascend.
    """

    breaks: tuple[int, ...]
    slopes: tuple[int, ...]
    offsets: tuple[int, ...]
    retain: bool

    def __post_init__(self) -> None:
        if not len(self.breaks) + 1 == len(self.slopes) == len(self.offsets):
            raise InternalError(f"a table of {len(self.breaks) + 1} ranges needs as many slopes and offsets")
        if any(low >= high for low, high in pairwise(self.breaks)):
            raise InternalError("the ranges of a table ascend")


def lut8(coefficients: tuple[int, int, int]) -> Lut:
    """Return a LUT8, a table of 3 ranges (from 0, 1 and 2) with the sign of x retained. Each coefficient is a 16-bit
    word, the slope in its upper byte, the offset in its lower (DEVICE_NUMERICS 3.2)."""
    slopes, offsets = zip(
        *((_lut8_coefficient(word >> 8), _lut8_coefficient(word & 255)) for word in coefficients), strict=True
    )
    return Lut(_patterns(_BREAKS_3), slopes, offsets, retain=True)


def lut16(slopes: tuple[int, ...], offsets: tuple[int, ...], table: int, retain: bool) -> Lut:
    """Return a LUT16, a table of 6 ranges, from fp16 patterns (DEVICE_NUMERICS 3.2). The last range of `table` 1 begins
    at 3, that of table 2 at 4. `retain`: the sign of x is copied onto the result."""
    return Lut(
        _patterns(_BREAKS_6[table]),
        tuple(map(_lut16_coefficient, slopes)),
        tuple(map(_lut16_coefficient, offsets)),
        retain,
    )


def _lut8_coefficient(byte: int) -> int:
    """Return the coefficient `s e3 m4` in a byte of a LUT8 as an fp32 pattern: (-1)^s * 2^-e * (1 + m/16); all ones is
    zero."""
    if byte == 0xFF:
        return 0
    return (byte >> 7) << 31 | (127 - (byte >> 4 & 7)) << 23 | (byte & 15) << 19


def _lut16_coefficient(word: int) -> int:
    """Return the fp16 coefficient of a LUT16 as an fp32 pattern; exponent 31 is zero."""
    if word >> 10 & 31 == 31:
        return 0
    return (word >> 15) << 31 | ((word >> 10 & 31) + 112) << 23 | (word & 0x3FF) << 13


def _patterns(values: tuple[float, ...]) -> tuple[int, ...]:
    """Return the fp32 patterns of these numbers."""
    return tuple(int(pattern) for pattern in to_bits(np.array(values, dtype=np.float32)))


WITHOUT_EXPONENT: Final = SIGN | FRACTION
# Bits of singles.
ONE: Final = 0x3F800000
MINUS_ONE: Final = 0xBF800000
HALF: Final = 0x3F000000
MINUS_HALF: Final = 0xBF000000
TWO: Final = 0x40000000

# Coefficients that the kernels load: bytes of LUT8, halves of LUT16 (DEVICE_NUMERICS 3.3).
SIGMOID: Final = lut16(
    (0x33D9, 0x32F4, 0x318A, 0x300A, 0x2A35, 0x7C00), (0x9018, 0x23C8, 0x2BAA, 0x3027, 0x34CC, 0x37FF), 2, retain=True
)
TANH: Final = lut8((0x1DFF, 0x481A, 0xFF00))
GELU: Final = lut16(
    (0x322B, 0x37E7, 0x38F3, 0x38E1, 0x3852, 0x3800), (0x86D8, 0xB122, 0xB479, 0xB437, 0xAFA4, 0x7C00), 1, retain=False
)
GELU_DERIVATIVE_APPROX: Final = lut16(
    (0x3A66, 0x3666, 0x2E66, 0xADC3, 0xACCD, 0x7C00), (0x3800, 0x399A, 0x3BEC, 0x3D14, 0x3CF1, 0x3C00), 1, retain=True
)
GELU_DERIVATIVE: Final = lut8((0x28FF, 0x3020, 0xFF10))
SINE: Final = (0xBE2AAAAB, 0x3C088888, 0xB9500CFA, 0x3638EE91, 0xB2D72D88)  # DEVICE_NUMERICS 3.3, sine
COSINE: Final = (0xBF000000, 0x3D2AAAAB, 0xBAB60B60, 0x37D00CD1, 0xB493E86F)  # likewise, cosine
APPROXIMATE_TERMS: Final = 3  # of sine and cosine in the approximate mode


def multiply(u: VectorUnit[V], a: V | int, b: V | int) -> V:
    """Return a * b, the instruction SFPMUL."""
    return u.fma(a, b, 0)


def plus(u: VectorUnit[V], a: V | int, b: V | int) -> V:
    """Return a + b, the instruction SFPADD."""
    return u.fma(ONE, a, b)


def minus(u: VectorUnit[V], a: V | int, b: V | int) -> V:
    """Return a - b, as one multiply-add."""
    return u.fma(MINUS_ONE, b, a)


def table(u: VectorUnit[V], lut: Lut, x: V) -> V:
    """Return a piecewise linear function of |x|, looked up in `lut`, with the sign of x where the table retains it
    (DEVICE_NUMERICS 3.2)."""
    magnitude = u.bit_and(x, MAGNITUDE)
    slope, offset = (u.lookup(lut.breaks, values, magnitude) for values in (lut.slopes, lut.offsets))
    y = u.fma(slope, magnitude, offset)
    if lut.retain:
        return u.merge(y, MAGNITUDE, u.bit_and(x, SIGN))
    return y


def inverse(u: VectorUnit[V], x: V, iterations: int, constant: int = 0x3FB8AA3B) -> V:
    """Return 1 / |x| by Newton's steps on the significand, one multiply-add and one product each, from the estimate
    `constant` (on Wormhole the pattern of 1 / ln 2; DEVICE_NUMERICS 3.3); 0 if the exponent of the result is below the
    least. `iterations` counts the steps, of which the first takes the constant."""
    v = u.merge(x, FRACTION, 0xBF000000)  # in (-1, -0.5]
    r = multiply(u, u.fma(v, constant, TWO), constant)
    for _ in range(iterations - 1):
        r = multiply(u, u.fma(v, r, TWO), r)
    field = u.add(u.subtract(u.exponent(r), u.exponent(x)), 126)
    result = u.merge(r, FRACTION, u.shift_left(u.bit_and(field, 255), 23))
    return u.select(u.negative(field), 0, result)


def reciprocal(u: VectorUnit[V], x: V, approximate: bool, constant: int = 0x3FB8AA3B) -> V:
    """Return 1 / x as Wormhole's kernel computes it: by three Newton's steps, two in the approximate mode, from the
    estimate `constant`. 1 / 0 is a finite number of about 2^128 (DEVICE_NUMERICS 3.3)."""
    iterations = 3
    if approximate:
        iterations = 2
    r = inverse(u, x, iterations, constant)
    return u.select(u.negative(x), u.bit_or(r, SIGN), r)


def exp(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return e^x as Wormhole's kernel computes it: in the exact mode by a parabola and squarings (`exp_exact`), in the
    approximate one by writing x / ln 2 to the place of the exponent (`exp_approximate`)."""
    if approximate:
        return exp_approximate(u, x)
    # The kernel's offset, 0.863281, is loaded as its upper 16 bits (3.3): 0.859375.
    return exp_exact(u, x, 0x3F56594B, 0x3F5C0000, 0x3FB8AA3B)


def exp_exact(u: VectorUnit[V], x: V, slope: int, offset: int, constant: int) -> V:
    """Return e^x by a parabola (`slope`, `offset`) of |x|, or of its significand from 1 on, which is then squared up to
    8 times; the result is inverted for a negative x, from the estimate `constant` (`inverse`). All are fp32 patterns.
    The error grows with |x|, on Wormhole from 1 to 53 percent (DEVICE_NUMERICS 3.3)."""
    a = u.bit_and(x, MAGNITUDE)
    field = u.shift_right(a, 23)
    a = u.select(u.less(field, 127), a, u.merge(a, FRACTION, HALF))
    y = u.fma(a, u.fma(a, slope, offset), ONE)
    for k in range(8):  # the kernel squares at most 8 times (3.3)
        y = u.select(u.less(field, 127 + k), y, multiply(u, y, y))
    return u.select(u.negative(x), inverse(u, y, 3, constant), y)


def exp_approximate(u: VectorUnit[V], x: V) -> V:
    """Return e^x, off by up to 3.1 percent: the sum of x / ln 2 and the exponent's bias, with 8 bits of fraction, is
    written to the place of exponent and fraction. Above 88.7 the result is a pattern of infinity or NaN
    (DEVICE_NUMERICS 3.3)."""
    y = u.greater(x, 0xC2B10000)  # -88.5: near it the result is a denormal, stored as 0; below it |t| would grow again
    # 256 / ln 2, and 127 * 256 less a constant of the kernel: an integer whose upper byte is the exponent field.
    t = u.fma(y, 0x43B8AA3B, 0x46FDE9A3)
    return u.shift_left(u.to_integer(u.bit_and(t, MAGNITUDE), 65535), 15)


def sqrt(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return the square root as Wormhole's kernel computes it: by two of Newton's steps, in the approximate mode by
    halving the exponent. There is no special case for a negative x, whose result is meaningless."""
    if approximate:
        return u.shift_right(u.add(x, ONE), 1)
    half = multiply(u, x, MINUS_HALF)
    r = u.subtract(0x5F370000, u.shift_right(x, 1))  # an estimate of 1 / sqrt x, which two of Newton's steps improve
    for _ in range(2):
        r = multiply(u, u.fma(multiply(u, r, r), half, 0x3FC00000), r)
    return u.select(u.equal(x, 0), x, multiply(u, r, x))


LOG: Final = (0x3DD8ADAC, 0xBF377319, 0x4005930C, 0xBFBCD6A1)  # DEVICE_NUMERICS 3.3, log


def log(u: VectorUnit[V], x: V, approximate: bool, terms: tuple[int, int, int, int] = LOG, ln2: int = 0x3F315FFE) -> V:
    """Return the natural logarithm as Wormhole's kernel computes it, by a polynomial of the significand (`terms`) and
    the exponent times `ln2`, both as fp32 patterns; the same in both modes. -infinity for 0; below zero the result is
    meaningless."""
    del approximate
    v = u.merge(x, WITHOUT_EXPONENT, ONE)
    p = u.fma(v, u.fma(v, u.fma(v, terms[0], terms[1]), terms[2]), terms[3])
    exponent = to_sign_magnitude(u, u.subtract(u.exponent(x), 127))
    return u.select(u.equal(x, 0), SIGN | INFINITY, u.fma(u.to_float(exponent), ln2, p))


def sigmoid(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return 1 / (1 + e^-x) as Wormhole's kernel computes it: by a table in both modes."""
    del approximate
    return plus(u, table(u, SIGMOID, x), HALF)


def tanh(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return the hyperbolic tangent as the kernel computes it: by a table of three ranges in both modes, off by up to
    0.145 (DEVICE_NUMERICS 3.3)."""
    del approximate
    return table(u, TANH, x)


def gelu(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return x times the normal distribution function as Wormhole's kernel computes it: by a table in both modes."""
    del approximate
    return u.fma(x, HALF, table(u, GELU, x))


def gelu_derivative(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return the derivative of gelu as Wormhole's kernel computes it: by a table and, in the exact mode, the normal
    density."""
    if approximate:
        y = table(u, GELU_DERIVATIVE_APPROX, x)
        return u.select(u.negative(y), plus(u, y, ONE), y)
    g = exp(u, multiply(u, multiply(u, x, x), MINUS_HALF), approximate=False)
    # Not one multiply-add: the kernel loads constants between product and sum (10: 3).
    product = multiply(u, multiply(u, g, x), 0x3ECC0000)
    return plus(u, plus(u, product, table(u, GELU_DERIVATIVE, x)), HALF)


def terms_of(series: tuple[int, ...], approximate: bool) -> tuple[int, ...]:
    """Return the coefficients of a sine or cosine series that the kernel sums up: the first three in the approximate
    mode, else all."""
    if approximate:
        return series[:APPROXIMATE_TERMS]
    return series


def sine(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return the sine as Wormhole's kernel computes it: by a series, with the argument reduced to [-pi/2, pi/2]."""
    v, odd = _reduce_by_pi(u, x)
    o = sine_series(u, v, terms_of(SINE, approximate), product=True)
    return u.select(odd, multiply(u, o, MINUS_ONE), o)


def cosine(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return the cosine as Wormhole's kernel computes it: by a series, with the argument reduced to [-pi/2, pi/2]."""
    v, odd = _reduce_by_pi(u, x)
    o = cosine_series(u, v, terms_of(COSINE, approximate))
    return u.select(odd, multiply(u, o, MINUS_ONE), o)


def sine_series(u: VectorUnit[V], v: V, terms: tuple[int, ...], *, product: bool) -> V:
    """Return v + c0 v^3 + c1 v^5 ... with the coefficients `terms`. `product`: v is itself a product, so that the first
    term is added in a step of its own instead of a multiply-add (DEVICE_NUMERICS 10: 3)."""
    o = t = v
    for c in terms:
        t = multiply(u, multiply(u, t, v), v)
        if product:
            o = plus(u, o, multiply(u, t, c))
        else:
            o = u.fma(t, c, o)
        product = False
    return o


def cosine_series(u: VectorUnit[V], v: V, terms: tuple[int, ...]) -> V:
    """Return 1 + c0 v^2 + c1 v^4 ... with the coefficients `terms`."""
    t = multiply(u, v, v)
    o = u.fma(t, terms[0], ONE)
    for c in terms[1:]:
        t = multiply(u, multiply(u, t, v), v)
        o = u.fma(t, c, o)
    return o


def _reduce_by_pi(u: VectorUnit[V], x: V) -> tuple[V, V]:
    """Return x minus the nearest multiple of pi, and the condition that it is an odd multiple, for which sine and
    cosine change their sign.

    The chip rounds x / pi stochastically; this is the deterministic choice (DEVICE_NUMERICS 6.3 states the bound). A
    quotient above 32767 counts as 32767.
    """
    v = multiply(u, x, 0x3EA2F983)  # 1 / pi
    w = u.to_integer(v, 32767)
    v = multiply(u, minus(u, v, u.to_float(w)), 0x40490FDB)  # pi
    return v, u.equal(u.bit_and(w, 1), 1)


def square(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return x * x as one rounded product, in both modes of the kernel."""
    del approximate
    return multiply(u, x, x)


def power(u: VectorUnit[V], x: V, exponent: int) -> V:
    """Return x to an integer exponent of at least 2 by repeated products; smaller exponents give x * x, as on the chip
    (DEVICE_NUMERICS 3.3)."""
    r = multiply(u, x, x)
    for _ in range(exponent - 2):
        r = multiply(u, r, x)
    return r


def absolute(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Return |x|, in both modes of the kernel; a negative NaN keeps its sign (DEVICE_NUMERICS 3.3)."""
    del approximate
    magnitude = u.bit_and(x, MAGNITUDE)
    return u.select(u.less(magnitude, 0x7F800001), magnitude, x)


def leaky_relu(u: VectorUnit[V], x: V, slope: int) -> V:
    """Return x, or x * slope where the sign bit is set; `slope` is an fp32 pattern with the lower half zero
    (`bf16_cut`)."""
    return u.select(u.negative(x), multiply(u, x, slope), x)


def relu_min(u: VectorUnit[V], x: V, threshold: int) -> V:
    """Return x, or 0 where it is below the threshold (an fp32 pattern): the relu of a fused op whose output is dest
    (DEVICE_NUMERICS 3.3). At the threshold x stays, other than in the packer's relu."""
    return u.select(u.negative(minus(u, x, threshold)), 0, x)


def relu_max(u: VectorUnit[V], x: V, threshold: int) -> V:
    """Return x clamped to 0 .. threshold (an fp32 pattern): the relu of a fused op whose output is dest
    (DEVICE_NUMERICS 3.3)."""
    above = minus(u, x, threshold)
    y = u.select(u.negative(above), x, u.select(u.equal(above, 0), x, threshold))
    return u.select(u.negative(y), 0, y)


def maximum(u: VectorUnit[V], a: V, b: V) -> V:
    """Return the larger of two floats, by the sign of the rounded a - b: `b` where that is negative, else `a`."""
    return u.select(u.negative(minus(u, a, b)), b, a)


def cast_to_fp16(u: VectorUnit[V], x: V) -> V:
    """Return fp32 with its fraction rounded to 10 bits, ties away from zero, so that the store into an fp16 Dst cuts
    nothing off it; exponent 0 gives +0, infinities and NaNs an infinity (DEVICE_NUMERICS 2.8)."""
    rounded = u.bit_and(u.add(x, 0x1000), 0xFFFFE000)
    field = u.exponent(x)
    finite = u.select(u.equal(field, 255), u.bit_and(x, SIGN | INFINITY), rounded)
    return u.select(u.equal(field, 0), 0, finite)


def to_sign_magnitude(u: VectorUnit[V], x: V) -> V:
    """Return an integer in two's complement as sign and magnitude; the lowest integer becomes minus zero."""
    return u.select(u.negative(x), u.bit_or(u.subtract(0, x), SIGN), x)


def from_sign_magnitude(u: VectorUnit[V], x: V) -> V:
    """Return an integer in sign and magnitude as two's complement; minus zero becomes 0."""
    return u.select(u.negative(x), u.subtract(0, u.bit_and(x, MAGNITUDE)), x)


LANES: Final = 32  # elements that a pass computes
TAPS: Final = 0xB400  # of the 16-bit Galois shift register (DEVICE_NUMERICS 3.3, dropout)
State = NDArray[np.uint32]
"""uint32[32]: the shift register of each lane."""


def seed_registers(seed: int, placement: tuple[int, int] = (0, 0)) -> State:
    """Return the shift registers of all lanes after a dropout's `seed` was loaded on the core at NoC coordinates (x,
    y), `placement`; only 16 bits of the seed count (DEVICE_NUMERICS 3.3)."""
    x, y = placement
    lane = np.arange(LANES, dtype=np.uint32)
    return (lane * np.uint32(2) << np.uint32(10)) ^ np.uint32((seed ^ x << y) & 0xFFFF)


def step_registers(state: State) -> State:
    """Return the shift registers of all lanes one step further."""
    return state >> np.uint32(1) ^ np.where(state & np.uint32(1) != 0, np.uint32(TAPS), np.uint32(0))


def random_words(state: State, tiles: int, vector: VectorMode = "rc") -> tuple[U32, State]:
    """Return the random word of each datum, uint32[tiles, 32, 32] with rows and columns as usual, 0 where the vector
    mode does not reach, and the shift registers afterwards."""
    words = np.zeros((tiles, 32, 32), dtype=np.uint32)
    reached = touched_mask(vector)
    for tile in words:
        for rows, columns in passes():
            if reached[rows[0], columns[0]]:
                tile[rows, columns] = state
                state = step_registers(state)
    return words, state


def passes() -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return for each of the 32 passes of the vector unit over a tile, face by face, the rows and columns in the tile
    of its 32 lanes."""
    places: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
    for face in range(4):
        for rows, columns in map(lane_positions, range(8)):
            places.append((rows + 16 * (face >> 1), columns + 16 * (face & 1)))
    return places


def dropout_threshold(probability: float) -> int:
    """Return the 16-bit word below which a random word drops its datum, for a probability of 0 to 1: truncated, so that
    0 drops none."""
    return int(probability * 65535)


def dropout(u: VectorUnit[V], x: V, random: V, scale: int, below: int) -> V:
    """Return x * scale, or 0 where the random word is less than `below` (`dropout_threshold`); `scale` is an fp32
    pattern with the lower half zero (`bf16_cut`)."""
    return u.select(u.less(random, below), 0, multiply(u, x, scale))
