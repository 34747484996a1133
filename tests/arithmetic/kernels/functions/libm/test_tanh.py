"""tanh: glibc's bits, its special values, and its distance from the hyperbolic tangent."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from buda_emu.arithmetic.kernels.functions.libm.tanh import tanh
from libm_bits import SPARSE, sample, words
from libm_bits64 import MIDDLE, digest64, ulps64, words64

ROOT_OF_TWO_OVER_PI = float.fromhex("0x1.9884533d4365p-1")


def gelu_argument(x: np.float32) -> np.float64:
    """k * (x + 0.044715 x^3), as gelu forms it (OPS 5)."""
    with np.errstate(all="ignore"):
        wide = np.float64(x)
        return np.float64(ROOT_OF_TWO_OVER_PI * (wide + 0.044715 * (wide * wide * wide)))


def gelu(x: np.float32) -> np.float32:
    """0.5 x (1 + tanh(k (x + 0.044715 x^3))) in double precision (OPS 5)."""
    return np.float32(0.5 * np.float64(x) * (1 + tanh(gelu_argument(x))))


def ladder(steps: int) -> list[np.float64]:
    """From -24 to 24, evenly: the tangent is 1 from about 19 on."""
    return [np.float64(-24 + 48 * k / steps) for k in range(steps + 1)]


def exact_tangent(x: float) -> Decimal:
    """tanh x, good to 50 digits where it is not 1 in float64."""
    with localcontext(prec=750):
        power = (2 * Decimal(max(-50.0, min(50.0, x)))).exp()
        return (power - 1) / (power + 1)


@pytest.mark.tiny
def test_check_values():
    # OPS 12
    assert words(gelu, -3, -1.5, -0.3, 0.1) == ["bb6e6150", "bdcdad6b", "bdeac2a7", "3d5d1d05"]
    assert words(gelu, 0.7, 2, -8) == ["3f07d372", "3ffa3042", "80000000"]


@pytest.mark.tiny
def test_special_values():
    one, zero = "3ff0000000000000", "0000000000000000"
    assert words64(tanh, np.inf, 1e300, 22.0, 20.0, 0.0) == [one, one, one, one, zero]
    assert words64(tanh, -np.inf, -1e300, -0.0) == ["bff0000000000000", "bff0000000000000", "8000000000000000"]
    assert words64(tanh, 5e-324, 2.0**-60) == ["0000000000000001", "3c30000000000000"]
    nan = np.uint64(0xFFF0000000012345).view(np.float64)
    assert words64(tanh, nan) == ["fff8000000012345"]  # quiet, its sign and payload kept


def test_bits_of_the_library():
    assert (
        digest64(tanh, map(gelu_argument, sample(MIDDLE)))
        == "43e5f8b70a7e895eebd109819325949a45bf8af47ffa0537f8139b2c5f42966d"
    )
    assert digest64(tanh, ladder(5_000)) == "95b76c02ffa4430caef73c04c349f5d2bad667a3e95dc0dda86133e2aadbbf61"


@pytest.mark.tiny
def test_bits_of_the_library_on_few_values():
    assert (
        digest64(tanh, map(gelu_argument, sample(SPARSE)))
        == "b1e5c8e7d0f54ba26492b910a3597583e1905e7fbba2970189a78aff824658bb"
    )
    assert digest64(tanh, ladder(500)) == "efc41f81eb4647c9c094d2b0a3bb7adf302af8710aa7e2439b74a678eaf63e94"


@given(st.floats(allow_nan=False))
def test_odd(x: float) -> None:
    assert tanh(np.float64(-x)) == -tanh(np.float64(x))


@given(st.floats(-25, 25))
@example(1.0)
@example(0.9999999999999999)
@example(0.17328679513998633)  # about ln 2 / 4: from here on the argument is reduced
@example(2.0**-1022)
def test_within_two_ulps(x: float) -> None:
    assert ulps64(tanh(np.float64(x)), exact_tangent(x)) < 2.2
