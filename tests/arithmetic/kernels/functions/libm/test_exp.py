"""exp: glibc's bits, its limits, and its distance from e^x."""

from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from buda_emu.arithmetic.kernels.functions.libm.exp import exp, exp_in_range
from buda_emu.arithmetic.kernels.functions.libm.tanh import tanh
from libm_bits import SPARSE, sample, words
from libm_bits64 import MIDDLE, digest64, ulps64, words64

INF = np.inf
ROOT_OF_TWO_OVER_PI = float.fromhex("0x1.9884533d4365p-1")


def gelu_derivative(single: np.float32) -> np.float32:
    """0.5 (1 + tanh(k (x + 0.044715 x^3))) + x e^(-0.5 x^2) (0.5 k) in double precision (OPS 5)."""
    x = np.float64(single)
    area = 0.5 * (1 + tanh(np.float64(ROOT_OF_TWO_OVER_PI * (x + 0.044715 * (x * x * x)))))
    return np.float32(area + x * exp(np.float64(-0.5 * x * x)) * (0.5 * ROOT_OF_TWO_OVER_PI))


def gauss(stride: int) -> list[np.float64]:
    """The arguments that gelu_derivative forms from a sample of float32 (OPS 5)."""
    with np.errstate(all="ignore"):
        return [np.float64(-0.5 * np.float64(x) * np.float64(x)) for x in sample(stride)]


def ladder(steps: int) -> list[np.float64]:
    """From below the least argument with a result to above the largest, evenly."""
    return [np.float64(-750 + 1464 * k / steps) for k in range(steps + 1)]


@pytest.mark.tiny
def test_check_values():
    # OPS 12
    assert words(gelu_derivative, -3, -1.5, -0.3) == ["bc45f81e", "be026140", "3e890d6d"]
    assert words(gelu_derivative, 0, 0.7, 2) == ["3f000000", "3f79fe34", "3f8aea7b"]


@pytest.mark.tiny
def test_limits():
    assert words64(exp, 0.0, -0.0, INF, -INF) == [
        "3ff0000000000000",
        "3ff0000000000000",
        "7ff0000000000000",
        "0000000000000000",
    ]
    assert words64(exp, 709.782712893384, 709.7827128933841) == ["7fefffffffffff2a", "7ff0000000000000"]
    assert words64(exp, -745.1332191019411, -745.1332191019412) == ["0000000000000001", "0000000000000000"]
    assert words64(exp, 1024.0, -1024.0, 1e300, -1e300) == ["7ff0000000000000", "0000000000000000"] * 2
    assert words64(exp, 2.0**-54, -(2.0**-60), 5e-324) == ["3ff0000000000000"] * 3
    nan = np.uint64(0xFFF0000000012345).view(np.float64)
    assert words64(exp, nan) == ["fff8000000012345"]  # quiet, its sign and payload kept


def test_bits_of_the_library():
    assert digest64(exp, gauss(MIDDLE)) == "ddc1a2dd5f9896106e15eb01f1010fcda48d1e0652ed45e554fb5061d674bc86"
    assert digest64(exp, ladder(5_000)) == "169996da2931e1142e8723c94ef3c3259189f7b7d523bd66a267f5a5aebb2761"


@pytest.mark.tiny
def test_bits_of_the_library_on_few_values():
    assert digest64(exp, gauss(SPARSE)) == "de2f9bf0c66e7202963f2bc7e10fd7f33e74874d7f3dbcb660c5c28a92ad4ca2"
    assert digest64(exp, ladder(500)) == "88d2e829689e6c3c5a605c250c16322aa2208d13380b488124f13dd95c766351"


@given(st.floats(-511.9, 511.9))
@example(-0.0)
def test_form_without_branches(x: float) -> None:
    assert exp_in_range(np.float64(x)) == exp(np.float64(x))


@given(st.floats(-745, 709))
@example(-708.3964185322641)  # the result is the least normal number, or nearly
@example(-740.0)
@example(512.0)
@example(-512.0)
def test_within_one_ulp(x: float) -> None:
    assert ulps64(exp(np.float64(x)), Context(prec=60).exp(Decimal(x))) < 1
