"""logf: glibc's bits, its special values, and its distance from the logarithm."""

from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from buda_emu.arithmetic.kernels.functions.libm.logf import logf
from libm_bits import DENSE, SPARSE, digest, ulps, words

INF = np.inf


@pytest.mark.tiny
def test_check_value():
    assert logf(np.float32(2.0**-23)) == np.float32(-15.9423847)  # OPS 12


@pytest.mark.tiny
def test_special_values():
    assert words(logf, 1.0, INF, 0.0, -0.0) == ["00000000", "7f800000", "ff800000", "ff800000"]
    assert words(logf, -1.0, -INF, -(2.0**-149)) == ["ffc00000"] * 3
    nan = np.uint32(0x7FA12345).view(np.float32)
    assert words(logf, nan) == ["7fe12345"]  # quiet, its sign and payload kept


def test_bits_of_the_library():
    assert digest(logf, DENSE) == "6393370ac910cc6946bc7db2bf2bfc174d857ce3e26cd0634ad6c5f122e8d6cf"


@pytest.mark.tiny
def test_bits_of_the_library_on_few_values():
    assert digest(logf, SPARSE) == "c54093db1f3fb55b448a02eb6bc1f23fd4af839e4a443f0d176e43a88811a7dd"


@given(st.floats(0, exclude_min=True, allow_infinity=False, width=32))
@example(2.0**-149)
@example(2.0**-126)
@example(1 + 2.0**-23)
@example(1 - 2.0**-24)
def test_within_one_ulp(x: float) -> None:
    assert ulps(logf(np.float32(x)), Context(prec=60).ln(Decimal(x))) < 1
