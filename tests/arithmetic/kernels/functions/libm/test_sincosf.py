"""sinf and cosf: glibc's bits, their special values, and their distance from sine and cosine."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given

from buda_emu.arithmetic.kernels.functions.libm.sincosf import cosf, sinf
from libm_bits import DENSE, SPARSE, digest, finite, ulps, words

PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651"
)


def exact_sine(x: float, quarter_turns: int = 0) -> Decimal:
    """sin(x + quarter_turns * pi/2), good to 50 digits after the point for every float32."""
    with localcontext(prec=110):
        angle = Decimal(x).remainder_near(2 * PI) + quarter_turns * PI / 2
        term = total = angle
        for k in range(2, 80, 2):
            term *= -angle * angle / (k * (k + 1))
            total += term
        return total


@pytest.mark.tiny
def test_special_values():
    assert words(sinf, 0.0, -0.0, np.inf, -np.inf) == ["00000000", "80000000", "ffc00000", "ffc00000"]
    assert words(cosf, 0.0, -0.0, np.inf, -np.inf) == ["3f800000", "3f800000", "ffc00000", "ffc00000"]
    nan = np.uint32(0xFFA12345).view(np.float32)
    assert words(sinf, nan) == words(cosf, nan) == ["ffe12345"]  # quiet, the rest kept


def test_bits_of_the_library():
    assert digest(sinf, DENSE) == "c3ad5d1ab393404064f37e79dbce7f49683edb7891f3868e452a177f597db45b"
    assert digest(cosf, DENSE) == "132a68880a0534389d24a4a5d4d2fef0cbd494b248abffe37012720f0f08f6a3"


@pytest.mark.tiny
def test_bits_of_the_library_on_few_values():
    assert digest(sinf, SPARSE) == "ce437c8a6074940e2ead3237bf541960c44c104d33a4b725fbbf12008ebdf932"
    assert digest(cosf, SPARSE) == "0a34929794b6b754d8e41706e232453db0b053b6393e091842183bed8aec7a0b"


@given(finite)
@example(120 - 2.0**-17)
@example(120.0)
@example(3.4028234663852886e38)
@example(-3.4028234663852886e38)
@example(float(np.float32(np.pi / 2)))
@example(float(np.float32(-np.pi / 4)))
@example(2.0**-149)
def test_within_one_ulp(x: float) -> None:
    assert ulps(sinf(np.float32(x)), exact_sine(x)) < 1
    assert ulps(cosf(np.float32(x)), exact_sine(x, 1)) < 1
