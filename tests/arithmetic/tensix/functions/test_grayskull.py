"""Grayskull's formulas are sane against mathematics; nothing is claimed of their bits."""

import math

import numpy as np
import pytest

from buda_emu.arithmetic.tensix.functions.table import bind, reference

pytestmark = pytest.mark.tiny


def erf_gelu(x):
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def slope_of_gelu(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2))) + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize(
    ("name", "exact", "approximate", "low", "high", "absolute"),
    [
        ("exp", math.exp, False, -1, 1, 0.05),
        ("exp", math.exp, True, -2, 2, 0.5),
        ("reciprocal", lambda x: 1 / x, False, 0.5, 4, 0.005),
        ("reciprocal", lambda x: 1 / x, True, 0.5, 4, 0.08),
        ("sqrt", math.sqrt, False, 0.01, 100, 0.001),
        ("sqrt", math.sqrt, True, 0.01, 100, 0.7),
        ("log", math.log, False, 0.01, 100, 0.03),
        ("sigmoid", lambda x: 1 / (1 + math.exp(-x)), False, -8, 8, 0.12),
        ("gelu", erf_gelu, False, -6, 6, 0.2),
        ("gelu", erf_gelu, True, -6, 6, 0.3),
        ("gelu_derivative", slope_of_gelu, False, -6, 6, 0.2),
        ("sine", math.sin, False, 0, 6.28, 0.001),
        ("cosine", math.cos, False, 0, 6.28, 0.002),
    ],
)
def test_error(name, exact, approximate, low, high, absolute):
    x = np.linspace(low, high, 1024).astype(np.float32)
    image = x.view(np.uint32).reshape(1, 32, 32)
    y = reference(bind(name, "grayskull", approximate=approximate), "fp32", image).reshape(-1).view(np.float32)
    assert np.abs(y - np.array([exact(float(v)) for v in x])).max() < absolute
