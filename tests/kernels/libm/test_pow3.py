"""The cube: the bits of glibc's pow(x, 3), its special values, and its distance from x^3."""

from fractions import Fraction
from math import ulp

import numpy as np
import pytest
from hypothesis import example, given

from buda_emu.kernels.libm.pow3 import cube
from libm_bits import SPARSE, finite, sample
from libm_bits64 import MIDDLE, digest64, words64


@pytest.mark.tiny
def test_special_values():
    assert words64(cube, 0.0, -0.0, np.inf, -np.inf) == [
        "0000000000000000",
        "8000000000000000",
        "7ff0000000000000",
        "fff0000000000000",
    ]
    assert words64(cube, 1.0, -1.0, 3.0, -0.5) == [
        "3ff0000000000000",
        "bff0000000000000",
        "403b000000000000",
        "bfc0000000000000",
    ]
    nan = np.uint64(0xFFF0000000012345).view(np.float64)
    assert words64(cube, nan) == ["7ff8000000012345"]  # quiet, its payload kept, without sign


@pytest.mark.tiny
def test_not_the_correctly_rounded_cube():
    x = np.float64(np.uint32(0x00032CC1).view(np.float32))
    assert x * x * x == float(Fraction(float(x)) ** 3)
    assert words64(cube, x) == ["27500011add69b21"]
    assert words64(lambda value: value * value * value, x) == ["27500011add69b20"]


def test_bits_of_the_library():
    assert (
        digest64(cube, map(np.float64, sample(MIDDLE)))
        == "94494b6c02696fffc072ace7cbe61104b6117b0400cf798c93cd06bc05e68796"
    )


@pytest.mark.tiny
def test_bits_of_the_library_on_few_values():
    assert (
        digest64(cube, map(np.float64, sample(SPARSE)))
        == "e4604d81a4bbb89476713b4b514acc296360d375c791bd02799a09669501c5bc"
    )


@given(finite)
@example(3.4028234663852886e38)
@example(-3.4028234663852886e38)
@example(2.0**-149)
@example(0.9999999403953552)
@example(1.0000001192092896)
def test_within_055_ulps(x: float) -> None:
    result = float(cube(np.float64(x)))
    assert abs(Fraction(result) - Fraction(x) ** 3) <= Fraction(ulp(result)) * Fraction(55, 100)
