"""Elementary functions against the simulator and, as sanity, against mathematics."""

import math

import numpy as np
import pytest

from buda_emu.arithmetic.tensix.functions.programs import record
from buda_emu.arithmetic.tensix.functions.table import bind, reference
from buda_emu.arithmetic.tensix.functions.vector_unit import NumpyUnit
from buda_emu.arithmetic.tensix.lanes import touched_mask
from device_vectors import CORES, mismatches, needs_vectors, vectors

BOTH = ("exp", "reciprocal", "sqrt", "gelu_derivative", "sine", "cosine")
ONE = ("sigmoid", "tanh", "gelu", "log", "square")
# What these files hold of sine, and of the exact gelu_derivative, has sums contracted that the compiler leaves apart
# (DEVICE_NUMERICS 10: 3); `test_cases.py` has them right.
CASES = {
    **{name: (name, {"approximate": False}) for name in BOTH + ONE if name not in ("sine", "gelu_derivative")},
    **{f"{name}_approx": (name, {"approximate": True}) for name in BOTH if name != "sine"},
    "power3": ("power", {"exponent": 3}),
    "lrelu_0x3dcc": ("lrelu", {"slope": 0x3DCC0000}),
}


def in_tiles(words):
    """Words as Dst images of whole tiles; the rest is zeros."""
    image = np.zeros(-(-words.size // 1024) * 1024, np.uint32)
    image[: words.size] = words
    return image.reshape(-1, 32, 32)


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
@pytest.mark.parametrize("case", CASES)
def test_vectors(case, suffix):
    v, (name, parameters) = vectors("sfpu"), CASES[case]
    define = bind(name, CORES[suffix], **parameters).define
    assert mismatches(define(NumpyUnit(suffix == "bh"), v["x"]), v[f"{case}_{suffix}"]) == 0
    image = in_tiles(v["x"])
    out = np.empty_like(image)
    record(define).run(
        image, out, touched_mask("rc"), "int32", blackhole=suffix == "bh"
    )  # as words: nothing is flushed
    assert mismatches(out.reshape(-1)[: v["x"].size], v[f"{case}_{suffix}"]) == 0


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
def test_vectors_of_maximum(suffix):
    v = vectors("sfpu")
    define = bind("maximum", CORES[suffix]).define
    assert mismatches(define(NumpyUnit(suffix == "bh"), v["max_a"], v["max_b"]), v[f"max_{suffix}"]) == 0
    a, b = in_tiles(v["max_a"]), in_tiles(v["max_b"])
    out = np.empty_like(a)
    record(define, 2).run(a, out, touched_mask("rc"), "int32", second=(b, "int32"), blackhole=suffix == "bh")
    assert mismatches(out.reshape(-1)[: v["max_a"].size], v[f"max_{suffix}"]) == 0


def gelu(x):
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def gelu_derivative(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2))) + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


# Function, approximate, range, largest absolute error, largest relative error: the printed digits of 3.3, where one
# number stands for gelu_derivative in both modes, which is that of the exact one.
ACCURACY = [
    ("exp", math.exp, False, -1, 1, 0.032, 0.013),
    ("exp", math.exp, False, 1, 2, None, 0.023),
    ("exp", math.exp, False, 2, 4, None, 0.046),
    ("exp", math.exp, False, 4, 8, None, 0.090),
    ("exp", math.exp, False, 8, 88, None, 0.53),
    ("exp", math.exp, True, -80, 80, None, 0.031),
    ("reciprocal", lambda x: 1 / x, False, 0.5, 4, None, 0.0015),
    ("reciprocal", lambda x: 1 / x, True, 0.5, 4, None, 0.038),
    ("sqrt", math.sqrt, False, 0.01, 100, None, 5.4e-6),
    ("sqrt", math.sqrt, True, 0.01, 100, None, 0.061),
    ("log", math.log, False, 0.01, 100, 0.016, None),
    ("sigmoid", sigmoid, False, -8, 8, 0.018, None),
    ("tanh", math.tanh, False, -4, 4, 0.145, 0.19),
    ("gelu", gelu, False, -6, 6, 0.023, None),
    ("gelu_derivative", gelu_derivative, False, -6, 6, 0.035, None),
    ("gelu_derivative", gelu_derivative, True, -6, 6, 0.0324, None),
    ("sine", math.sin, False, -20, 20, 1.5e-6, None),
    ("sine", math.sin, True, -20, 20, 1.6e-4, None),
    ("cosine", math.cos, False, -20, 20, 1.6e-6, None),
    ("cosine", math.cos, True, -20, 20, 8.9e-4, None),
]


@pytest.mark.tiny
@pytest.mark.parametrize(("name", "exact", "approximate", "low", "high", "absolute", "relative"), ACCURACY)
def test_accuracy(name, exact, approximate, low, high, absolute, relative):
    x = np.linspace(low, high, 4001).astype(np.float32)
    function = bind(name, approximate=approximate)
    y = reference(function, "fp32", in_tiles(x.view(np.uint32))).reshape(-1)[: x.size].view(np.float32)
    true = np.array([exact(float(value)) for value in x])
    error = np.abs(y - true)
    for printed, found in ((absolute, error.max()), (relative, (error[true != 0] / np.abs(true[true != 0])).max())):
        if printed is not None:
            assert printed in (float(f"{found:.2g}"), float(f"{found:.3g}"))
