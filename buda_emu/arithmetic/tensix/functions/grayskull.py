"""Elementary functions by the formulas of Grayskull's kernels (DEVICE_NUMERICS 3.4).

The arithmetic of its vector unit is not known: these run on Wormhole's, and nothing is claimed of their bits. Constants
that the text prints with four digits and calls constants of the unit are the nearest fp16 numbers, the others fp32.
"""

from typing import Final

import numpy as np

from buda_emu.arithmetic.formats.bits import single
from buda_emu.arithmetic.tensix.functions import elementary as wormhole
from buda_emu.arithmetic.tensix.functions.elementary import (
    HALF,
    MINUS_HALF,
    MINUS_ONE,
    ONE,
    minus,
    multiply,
    plus,
    table,
)
from buda_emu.arithmetic.tensix.functions.lut import lut8
from buda_emu.arithmetic.tensix.functions.vector_unit import V, VectorUnit
from buda_emu.spec.single import INFINITY


def _of_the_unit(value: float) -> int:
    return single(float(np.float16(value)))


EXP_SLOPE: Final = _of_the_unit(0.8369)
INVERSE: Final = _of_the_unit(1.4424)
LN2: Final = _of_the_unit(0.6929)
LOG: Final = (single(0.1058), single(-0.7122), single(2.0869), single(-1.4753))
PI: Final = single(3.14159264)

SIGMOID: Final = lut8((0x3DFF, 0x21D8, 0xFF10))
GELU_CORE: Final = lut8((0x18FF, 0x2010, 0xFF00))
GELU_CORE_APPROX: Final = lut8((0x18FF, 0x212C, 0xFF00))


def exp(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Compute e^x as the kernel of Grayskull does."""
    if not approximate:
        return wormhole.exp_exact(u, x, EXP_SLOPE, single(0.8634), INVERSE)
    v = u.fma(x, INVERSE, single(192.0))
    y = u.shift_left(u.add(v, 0xBD3F0000), 7)
    y = u.select(u.negative(minus(u, x, single(-42.0))), 0, y)
    return u.select(u.negative(minus(u, x, single(89.0))), y, INFINITY)


def reciprocal(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Compute 1 / x as Wormhole does, with Grayskull's constant."""
    return wormhole.reciprocal(u, x, approximate, INVERSE)


def sqrt(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Compute the square root, without a test for zero."""
    if approximate:
        return wormhole.sqrt(u, x, approximate)
    r = u.subtract(0x5F370000, u.shift_right(x, 1))
    for _ in range(2):
        square = multiply(u, multiply(u, r, r), x)
        r = multiply(u, plus(u, u.fma(square, MINUS_HALF, ONE), HALF), r)
    return multiply(u, r, x)


def log(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Compute the natural logarithm as Wormhole does, with Grayskull's constants."""
    return wormhole.log(u, x, approximate, LOG, LN2)


def sigmoid(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Compute 1 / (1 + e^-x) as the kernel of Grayskull does."""
    del approximate
    return plus(u, table(u, SIGMOID, x), HALF)


def gelu(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Compute x times the normal distribution function."""
    return multiply(u, u.fma(x, _core(u, x, approximate), x), HALF)


def gelu_derivative(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Compute the derivative of gelu as the kernel of Grayskull does."""
    g = exp(u, multiply(u, multiply(u, x, x), MINUS_HALF), approximate=False)
    density = multiply(u, multiply(u, g, single(0.39844)), x)
    return plus(u, u.fma(_core(u, x, approximate), HALF, density), HALF)


def _core(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Look up the function within gelu whose values are in -1 .. 1."""
    if approximate:
        return table(u, GELU_CORE_APPROX, x)
    cube = multiply(u, multiply(u, x, x), x)
    return table(u, GELU_CORE, multiply(u, u.fma(cube, single(0.044715), x), single(0.7969)))


def sine(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Compute the sine of an argument in 0 .. 2 pi."""
    terms = wormhole.SINE
    if approximate:
        terms = terms[: wormhole.APPROXIMATE_TERMS]
    return multiply(u, wormhole.sine_series(u, minus(u, x, PI), terms, product=False), MINUS_ONE)


def cosine(u: VectorUnit[V], x: V, approximate: bool) -> V:
    """Compute the cosine of an argument in 0 .. 2 pi."""
    terms = wormhole.COSINE
    if approximate:
        terms = terms[: wormhole.APPROXIMATE_TERMS]
    return multiply(u, wormhole.cosine_series(u, minus(u, x, PI), terms), MINUS_ONE)
