"""Functions of float64 against the C library's, far below the last place of a float."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from buda_emu.foreign.vpux.kernels import elementwise as el

X = np.concatenate([np.linspace(-30, 30, 4001), np.logspace(-12, 2, 300), -np.logspace(-12, 2, 300), [0.0]])
CASES: dict[str, tuple[Callable[..., Any], Callable[[float], float], Any]] = {
    "exp": (el.exp, math.exp, X),
    "log": (el.log, math.log, np.logspace(-300, 300, 2001)),
    "sin": (lambda x: el.sin_cos(x)[0], math.sin, X * 1000),
    "cos": (lambda x: el.sin_cos(x)[1], math.cos, X * 1000),
    "sinh": (el.sinh, math.sinh, X),
    "cosh": (el.cosh, math.cosh, X),
    "tanh": (el.tanh, math.tanh, X),
    "atan": (el.atan, math.atan, X),
    "asin": (el.asin, math.asin, np.linspace(-1, 1, 2001)),
    "acos": (el.acos, math.acos, np.linspace(-1, 1, 2001)),
    "asinh": (el.asinh, math.asinh, X),
    "acosh": (el.acosh, math.acosh, 1 + np.abs(X)),
    "atanh": (el.atanh, math.atanh, np.linspace(-0.999, 0.999, 2001)),
    "erf": (el.erf, math.erf, X),
}


@pytest.mark.parametrize("name", CASES)
def test_function(name: str) -> None:
    function, reference, points = CASES[name]
    with np.errstate(all="ignore"):
        got = function(points)
    np.testing.assert_allclose(got, [reference(float(x)) for x in points], rtol=2e-9, atol=1e-12)


def test_edges() -> None:
    edges = np.array([np.inf, -np.inf, np.nan, 1000.0, -1000.0])
    with np.errstate(all="ignore"):
        assert el.exp(edges).tolist()[:2] == [math.inf, 0]
        assert el.exp(edges).tolist()[3:] == [math.inf, 0]
        assert math.isnan(el.exp(edges)[2])
        assert el.log(np.array([0.0, np.inf])).tolist() == [-math.inf, math.inf]
        assert np.isnan(el.log(np.array([-1.0, np.nan]))).all()
        assert el.tanh(edges).tolist()[:2] == [1, -1]
        assert el.erf(edges).tolist()[:2] == [1, -1]
        assert np.isnan(el.sin_cos(edges)[0][:3]).all()
        assert el.atan(edges).tolist()[:2] == [math.pi / 2, -math.pi / 2]


@pytest.mark.parametrize("y", [0.0, 1.0, 2.0, -2.0, 3.0, 0.5, -0.5, 7.25, 100.0])
def test_power(y: float) -> None:
    x = np.array([-3.0, -1.0, 0.0, 0.5, 1.0, 2.0, 10.0])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(el.power(x, np.full_like(x, y)), np.power(x, y), rtol=1e-12)
