"""tanhf: glibc's bits, its special values, and its distance from the hyperbolic tangent."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given

from buda_emu.arithmetic.kernels.functions.libm.tanhf import tanhf
from libm_bits import DENSE, SPARSE, digest, finite, ulps, words


def exact_tangent(x: float) -> Decimal:
    """tanh x, good to 50 digits for every float32 whose tangent is not 1 in float32."""
    with localcontext(prec=120):
        power = (2 * Decimal(max(-50.0, min(50.0, x)))).exp()
        return (power - 1) / (power + 1)


@pytest.mark.tiny
def test_special_values():
    assert words(tanhf, 0.0, -0.0, np.inf, -np.inf) == ["00000000", "80000000", "3f800000", "bf800000"]
    assert words(tanhf, 22.0, -22.0, 3e38, 9.0) == ["3f800000", "bf800000", "3f800000", "3f7fffff"]
    nan = np.uint32(0xFFA12345).view(np.float32)
    assert words(tanhf, nan) == ["ffe12345"]  # quiet, its sign and payload kept


def test_bits_of_the_library():
    assert digest(tanhf, DENSE) == "7a980b5529c6e8b61d54a18763bd752406d9ac08d5dfefd8affa3323858324a8"


@pytest.mark.tiny
def test_bits_of_the_library_on_few_values():
    assert digest(tanhf, SPARSE) == "94ae5f4bcd6bb420401a239943105f7df0258034af9500aef891d947343a4350"


def test_odd():
    for x in np.linspace(0, 25, 101, dtype=np.float32):
        assert tanhf(-x) == -tanhf(x)


@given(finite)
@example(1.0)
@example(float(np.nextafter(np.float32(1), np.float32(0))))
@example(2.0**-149)
def test_within_two_ulps(x: float) -> None:
    assert ulps(tanhf(np.float32(x)), exact_tangent(x)) < 2.2
