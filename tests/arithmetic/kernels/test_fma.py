"""Fused multiply-add against exact rational arithmetic."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.kernels.fma import fma, fma_f32

F32_MAX = Fraction(2**24 - 1) * 2**104
F32_TINY = Fraction(1, 2**149)

floats32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
floats64 = st.floats(allow_nan=False, allow_infinity=False)


@kernel
def compiled_fma(a: Any, b: Any, c: Any) -> Any:
    return fma(a, b, c)


def nearest_float32(exact: Fraction) -> float:
    """Round to nearest even by definition: on the grid of the value's binade, then past the largest number."""
    magnitude = abs(exact)
    step = F32_TINY
    while magnitude >= step * 2**24:
        step *= 2
    rounded = round(magnitude / step) * step  # Python rounds a half to even
    return float(rounded) if rounded <= F32_MAX else float("inf")


def same(x: Any, y: Any) -> bool:
    return bool(np.isnan(x) and np.isnan(y)) or (x == y and np.signbit(x) == np.signbit(y))


@settings(max_examples=400, deadline=None)
@given(floats32, floats32, floats32)
@example(2.0**-126, 2.0**-24, -(2.0**-149))
@example(1 + 2.0**-23, 1 + 2.0**-23, 2.0**-60)
@example(1 + 2.0**-12, 1 + 2.0**-12, 2.0**-80)
@example(1 + 2.0**-12, 1 + 2.0**-12, -(2.0**-80))
@example(-(1 + 2.0**-12), 1 + 2.0**-12, 2.0**-80)
@example(3.4028234663852886e38, 2.0, -3.4028234663852886e38)
@example(3.4028234663852886e38, 3.4028234663852886e38, -3.4028234663852886e38)
def test_float32_is_the_nearest_to_the_exact_value(a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        expected = a * b + c  # exact in double, sign of zero included
    else:
        expected = nearest_float32(exact) * (1 if exact > 0 else -1)
    arguments = np.float32(a), np.float32(b), np.float32(c)
    for result in (fma(*arguments), compiled_fma(*arguments), fma_f32(*arguments)[()]):
        assert isinstance(result, (np.float32, float))
        assert same(result, expected)


@settings(max_examples=400, deadline=None)
@given(floats64, floats64, floats64)
@example(2.0**-600, 2.0**-600, 0.0)
@example(-(2.0**-600), 2.0**-600, 0.0)
@example(1e200, 1e200, -1e308)
@example(0.1, 10.0, -1.0)
@example(0.0, -1.0, 0.0)
@example(-0.0, 1.0, -0.0)
@example(3.0, 5.0, -15.0)
def test_float64_is_the_same_in_python_and_compiled(a: float, b: float, c: float) -> None:
    assert same(fma(a, b, c), compiled_fma(a, b, c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact and abs(exact) < Fraction(2) ** 1000:
        assert compiled_fma(a, b, c) == float(exact)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_infinity_and_nan(kind: type) -> None:
    inf, nan, one, zero, big = map(kind, ("inf", "nan", 1, 0, "1e38" if kind is np.float32 else "1e308"))
    cases = [
        (inf, one, one, inf),
        (inf, zero, one, nan),
        (inf, one, -inf, nan),
        (big, big, -inf, -inf),
        (big, big, one, inf),
        (nan, zero, zero, nan),
        (zero, one, nan, nan),
        (-big, big, nan, nan),
    ]
    for a, b, c, expected in cases:
        assert same(fma(a, b, c), expected)
        assert same(compiled_fma(a, b, c), expected)


@kernel
def fill(out: Any, a: Any, b: Any, c: Any) -> None:
    for i in range(out.size):
        out[i] = fma(a[i], b[i], c[i])


def test_arrays_agree_with_the_machine() -> None:
    rng = np.random.default_rng(7)
    words = rng.integers(0, 1 << 32, (3, 3, 5000), dtype=np.uint32)
    words[1] = words[1] & 0x807FFFFF | rng.integers(55, 75, words[1].shape, dtype=np.uint32) << 23  # subnormal products
    words[1, 2] &= 0x80FFFFFF
    for a, b, c in words.view(np.float32):
        compiled = np.empty_like(a)
        fill(compiled, a, b, c)
        ours = fma_f32(a, b, c)
        number = ~np.isnan(compiled)
        assert np.array_equal(number, ~np.isnan(ours))
        assert np.array_equal(ours[number].view(np.uint32), compiled[number].view(np.uint32))


def test_arrays_broadcast() -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert fma_f32(a, np.float32(2), np.ones(3, np.float32)).tolist() == (a * 2 + 1).tolist()
