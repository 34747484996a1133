"""expf: glibc's bits, its special values, and its distance from e^x."""

from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from buda_emu.arithmetic.kernels.functions.libm.expf import expf
from libm_bits import DENSE, SPARSE, digest, ulps, words

INF = np.inf


@pytest.mark.tiny
def test_check_values():
    # OPS 12
    assert words(expf, -3, -0.3, 0.7, 2) == ["3d4bed86", "3f3da643", "4000e153", "40ec7326"]


@pytest.mark.tiny
def test_limits():
    assert words(expf, 0.0, -0.0, INF, -INF) == ["3f800000", "3f800000", "7f800000", "00000000"]
    assert words(expf, 88.72283, 88.72284) == ["7f7fff84", "7f800000"]
    assert words(expf, -103.97, -103.98, -3e38) == ["00000001", "00000000", "00000000"]
    nan = np.uint32(0xFFA12345).view(np.float32)
    assert words(expf, nan) == ["ffe12345"]  # quiet, its sign and payload kept


def test_bits_of_the_library():
    assert digest(expf, DENSE) == "3db4e7f4ab8b5cc517cca6953bdcf3b7918b5f2b7b489b6b2ccd0fd5cb1b8829"


@pytest.mark.tiny
def test_bits_of_the_library_on_few_values():
    assert digest(expf, SPARSE) == "b434d256baea6d972d7307f57f5d3db48a4e4570cc6904ed10312858cb13b7cd"


@given(st.floats(-103.875, 88.625, width=32))
@example(-87.5)
def test_within_one_ulp(x: float) -> None:
    assert ulps(expf(np.float32(x)), Context(prec=40).exp(Decimal(x))) < 1
