"""The SFPU functions that rest on the C library: bits, special values, regions of a tile (OPS 5, 5.2, 12)."""

import os
import subprocess
import sys
from collections.abc import Mapping

import numpy as np
import pytest

from buda_emu.arithmetic.kernels.functions.transcendental import FUNCTIONS
from libm_bits import DENSE, SPARSE, digest, sample, words

INF, NAN = np.inf, np.nan
LARGEST = "7f7fffff"

# Of the formulas of OPS 5 in C, compiled without contraction, with glibc 2.36 on x86-64: (dense, sparse).
DIGESTS: Mapping[str, tuple[str, str]] = {
    "exp": (
        "3122259144848e005a27c67d34c04fc1a7e1fd64740658f975dbc38265c41da0",
        "14a8844de61bd7e12ff5fc3adb38add8042b27f5d657b8ecdd77abe8235f7676",
    ),
    "log": (
        "7e8c0529688ce4b524b3531edad9ae5fd0343de8a7bb07e27a47f290b4d732d7",
        "075efe4655eee591ddac548038fa3ad6814fba596ca0a365c0f5eb8da1a2ac2c",
    ),
    "sigmoid": (
        "eaf8004f549cc6d6bfea64c0bfcbde45ccbd245d95d6f8c850cd3e8045cc4d81",
        "09b069e346828c6427c99e54b78bd6758806e844479f2263adcd5bfb883ff3b9",
    ),
    "tanh": (
        "8a0acc0b996815963c6ae47286b2d03c0adf4daacc2586d3676b623cf14ac13c",
        "a0397cd0956d4ac18cc0b71b5d7c84eed22e9f339a23f9e9b676b4b83dd84f1c",
    ),
    "gelu": (
        "7f6a221f512d02380d16046e47aab7b23dfbe4f5428d99557f3fbe4780278c4d",
        "f4809b51749154a25893ab0430ef6984e83ccfbb20f52b435da62e7ddafec8c6",
    ),
    "gelu_derivative": (
        "6f28179c0c77911bb77042e08f6b0809e9d1c3c24ede226d350e9bc012f57b26",
        "bff807b8006bb7156bb00fbcc7f7af6ce189c7448f74196a37f97ade5ed54689",
    ),
    "sine": (
        "a4ac30e445c5b37f2830989d86c0231b8b046c0e4881d91e19d4e1abf946fb3a",
        "fe6c9df983aa261f651316e859cb97fc9cfc85d38432fedc2c480949f589ad9d",
    ),
    "cosine": (
        "9e2d17671933a595dbadf7f39230cb7e3aa31df4409ee73922b7818edc1ecf5e",
        "e4e3855983a76a01d5b23a53c2cf4518b85d2bfa14ef034348208ac759f5e7d2",
    ),
}


def scalar_words(name, *values):
    return words(FUNCTIONS[name][1], *values)


def test_every_function_is_here():
    assert sorted(FUNCTIONS) == sorted(DIGESTS)


@pytest.mark.tiny
@pytest.mark.parametrize("name", DIGESTS)
def test_bits_of_the_reference_on_few_values(name):
    assert digest(without_nan_bits(name), SPARSE) == DIGESTS[name][1]


@pytest.mark.parametrize("name", DIGESTS)
def test_bits_of_the_reference(name):
    assert digest(without_nan_bits(name), DENSE) == DIGESTS[name][0]


def without_nan_bits(name):
    scalar = FUNCTIONS[name][1]

    def function(x):
        result = np.float32(scalar(x))
        return np.float32(NAN) if np.isnan(result) else result

    return function


@pytest.mark.tiny
def test_check_values():
    # OPS 12
    assert scalar_words("exp", -3, -0.3, 0.7, 2, 100) == ["3d4bed86", "3f3da643", "4000e153", "40ec7326", LARGEST]
    gelu = scalar_words("gelu", -3, -1.5, -0.3, 0.1, 0.7, 2, -8)
    assert gelu == ["bb6e6150", "bdcdad6b", "bdeac2a7", "3d5d1d05", "3f07d372", "3ffa3042", "80000000"]
    derivative = scalar_words("gelu_derivative", -3, -1.5, -0.3, 0, 0.7, 2)
    assert derivative == ["bc45f81e", "be026140", "3e890d6d", "3f000000", "3f79fe34", "3f8aea7b"]


@pytest.mark.tiny
def test_gelu_of_infinities():
    assert np.isnan(FUNCTIONS["gelu"][1](np.float32(-INF)))
    assert FUNCTIONS["gelu"][1](np.float32(INF)) == INF
    assert all(np.isnan(FUNCTIONS["gelu_derivative"][1](np.float32(x))) for x in (INF, -INF))


@pytest.mark.tiny
def test_exp_is_never_infinite():
    assert scalar_words("exp", INF, -INF, NAN, 88.73) == [LARGEST, "00000000", LARGEST, LARGEST]


@pytest.mark.tiny
def test_log_of_zero_is_the_log_of_epsilon():
    assert [np.float32(FUNCTIONS["log"][1](np.float32(zero))) for zero in (0.0, -0.0)] == [np.float32(-15.9423847)] * 2
    assert np.isnan(FUNCTIONS["log"][1](np.float32(-1)))


@pytest.mark.tiny
def test_sigmoid_never_reaches_zero():
    least = f"{np.float32(2.9387359e-39).view(np.uint32):08x}"
    assert scalar_words("sigmoid", -INF, -100, NAN) == [least] * 3
    assert scalar_words("sigmoid", 0, INF) == ["3f000000", "3f800000"]


@pytest.mark.tiny
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("runs", "length"), [(1, 1024), (1, 128), (32, 16)])
def test_kernel_is_the_scalar_on_the_region(name, runs, length):
    kernel, scalar = FUNCTIONS[name]
    tiles = np.linspace(-130, 130, 2 * 2 * 1024, dtype=np.float32).reshape(2, 2, 1024)
    tiles[0, 1, :4] = [INF, -INF, NAN, -0.0]
    region = (np.arange(1024) % 32 < length if runs > 1 else np.arange(1024) < length).nonzero()[0]
    expected = tiles.copy()
    for tile in (1, 2):
        entry = expected[tile // 2, tile % 2]
        entry[region] = [scalar(x) for x in entry[region]]
    kernel(1, 3, tiles, (runs, length))
    np.testing.assert_array_equal(tiles.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize(("name", "limit"), [("sine", 120), ("cosine", 120), ("gelu_derivative", 32)])
def test_fast_form_below_a_limit_has_the_bits_of_the_general_one(name, limit):
    kernel, scalar = FUNCTIONS[name]
    x = sample(DENSE)
    x = x[np.abs(x) < limit]
    x = x[: x.size // 1024 * 1024]
    tiles = x.reshape(1, -1, 1024).copy()
    kernel(0, tiles.shape[1], tiles, (1, 1024))
    expected = np.array([scalar(value) for value in x], np.float32)
    np.testing.assert_array_equal(tiles.reshape(-1).view(np.uint32), expected.view(np.uint32))


PLAIN_PYTHON = """
import sys
from buda_emu.arithmetic.kernels.functions.transcendental import FUNCTIONS
from libm_bits import words
for name, (_, scalar) in FUNCTIONS.items():
    print(name, *words(scalar, *map(float, sys.argv[1:])))
"""


def test_plain_python_has_the_compiled_bits(child_environment, root):
    values = [-1e30, -90.0, -7.3, -1.0, -0.3, -0.0, 1e-40, 0.2, 0.9, 3.75, 60.1, 150.0, 2e20]
    environment = {**child_environment, "NUMBA_DISABLE_JIT": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(root), str(root / "tests" / "helpers" / "bits")])
    command = [sys.executable, "-W", "error", "-c", PLAIN_PYTHON, *map(str, values)]
    printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    assert printed.splitlines() == [" ".join([name, *scalar_words(name, *values)]) for name in FUNCTIONS]
