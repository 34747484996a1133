"""exp, sigmoid, gelu and its derivative by the short way: the definition's bits, and seldom a doubt."""

import numpy as np
import pytest

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.kernels.functions.transcendental import (
    FUNCTIONS,
    exp_or_nan,
    gelu_derivative_or_nan,
    gelu_or_nan,
)

NAMES = ("exp", "sigmoid", "gelu", "gelu_derivative")
ENDS = [0.0, -0.0, 1e-45, -1e-45, 1e-38, -3.25, -5.5, -7.4, 20.0, 19.999998, -37.41, -38.58, -38.6, -38.61, -38.63,
        -40.0, 88.7, 88.73, -87.4, -103.9, -104.0, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan]  # fmt: skip
SHORT_WAYS = {"exp": exp_or_nan, "gelu": gelu_or_nan, "gelu_derivative": gelu_derivative_or_nan}


def patterns(seed):
    """Ends, all exponents, and many of the magnitudes where the functions are not trivial."""
    rng = np.random.default_rng(seed)
    everywhere = rng.integers(0, 2**32, 20_000, np.uint64).astype(np.uint32).view(np.float32)
    near, wide = rng.uniform(-8, 22, 60_000), rng.uniform(-110, 90, 20_000)
    return np.concatenate([np.array(ENDS, np.float32), wide.astype(np.float32), everywhere, near.astype(np.float32)])


@pytest.mark.parametrize("name", NAMES)
def test_the_bits_are_those_of_the_definition(name):
    run, scalar = FUNCTIONS[name]
    x = patterns(1)
    tiles = np.zeros((1, -(-x.size // 1024), 1024), np.float32)
    tiles.reshape(-1)[: x.size] = x
    run(0, tiles.shape[1], tiles, (1, 1024))
    expected = np.array([scalar(value) for value in x[:60_000]], np.float32)
    found = tiles.reshape(-1)[:60_000]
    same = (found.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(found) & np.isnan(expected))
    assert same.all(), x[:60_000][~same]


@pytest.mark.tiny
@pytest.mark.parametrize("name", NAMES)
def test_a_few_numbers_of_each_size(name):
    run, scalar = FUNCTIONS[name]
    x = np.concatenate([np.array(ENDS, np.float32), np.linspace(-6, 8, 80, dtype=np.float32)])
    tiles = np.zeros((1, 1, 1024), np.float32)
    tiles[0, 0, : x.size] = x
    run(0, 1, tiles, (1, x.size))
    np.testing.assert_array_equal(tiles[0, 0, : x.size], [scalar(value) for value in x])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("runs", "length"), [(1, 1024), (1, 128), (32, 16)])
def test_regions_take_the_same_way(name, runs, length):
    run, scalar = FUNCTIONS[name]
    x = patterns(2)[:2048].reshape(1, 2, 1024).copy()
    tiles = x.copy()
    run(1, 2, tiles, (runs, length))
    inside = np.zeros(1024, bool)
    for start in range(runs):
        inside[32 * start : 32 * start + length] = True
    np.testing.assert_array_equal(tiles[0, 0], x[0, 0])
    np.testing.assert_array_equal(tiles[0, 1, ~inside], x[0, 1, ~inside])
    np.testing.assert_array_equal(tiles[0, 1, inside], [scalar(value) for value in x[0, 1, inside]])


@pytest.mark.parametrize("name", SHORT_WAYS)
def test_the_definition_is_seldom_asked(name):
    short_way = SHORT_WAYS[name]

    @kernel
    def answers(x, found):
        for k in range(x.shape[0]):
            found[k] = short_way(x[k])

    x = np.random.default_rng(3).uniform(-60, 60, 200_000).astype(np.float32)
    found = np.empty_like(x)
    answers(x, found)
    assert np.isnan(found).mean() < 2e-3
