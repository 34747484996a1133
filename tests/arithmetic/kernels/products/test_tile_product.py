import numpy as np
import pytest

from buda_emu.arithmetic.kernels.products.sparse import Terms, Weights, mark_finite_tiles, sparse_tiles
from buda_emu.arithmetic.kernels.products.tile_product import depthwise_tiles

pytestmark = pytest.mark.tiny
F32 = np.float32


def product(a, b):
    """a x b of [32, 32] each, one float32 operation at a time, k ascending."""
    total = np.zeros((32, 32), F32)
    with np.errstate(all="ignore"):
        for k in range(32):
            total = total + a[:, k : k + 1] * b[k]
    return total


def operand(tiles, index, pad_value=0.0, arrange=0):
    positions = np.array(index, np.int32)
    positions.flags.writeable = False
    return np.ascontiguousarray(tiles, F32).reshape(len(tiles), -1, 1024), positions, F32(pad_value), arrange


def same_bits(actual, expected):
    actual, expected = (np.where(np.isnan(x), F32(np.nan), x).view(np.uint32) for x in (actual, expected))
    np.testing.assert_array_equal(actual, expected)


def tiles_of(rng, w, n):
    return rng.normal(0, 1, (w, n, 32, 32)).astype(F32)


def depthwise(a, b, rows, cols, kernel_size, count, ranges):
    w = max(len(a[0]), len(b[0]))
    out = np.full((w, count, 1024), np.nan, F32)
    for start, stop in ranges:
        finite = np.isfinite(b[0]).all(axis=2)
        depthwise_tiles(start, stop, out, a, b, finite, (rows, cols, kernel_size))
    return out.reshape(w, count, 32, 32)


def test_depthwise_sums_the_products_of_its_group():
    rng = np.random.default_rng(1)
    left, right = tiles_of(rng, 2, 8), tiles_of(rng, 1, 4)  # t 2, rows 1, 2 groups of 2 columns
    a, b = operand(left, range(8)), operand(right, [0, 1, 2, 3, 3, 2, 1, 0])
    out = depthwise(a, b, 1, 2, 2, 4, [(3, 8), (0, 3)])
    for w in range(2):
        for t in range(2):
            for c in range(2):
                weights = [0, 1, 2, 3] if t == 0 else [3, 2, 1, 0]
                expected = product(left[w, 4 * t + c], right[0, weights[c]])
                expected = expected + product(left[w, 4 * t + 2 + c], right[0, weights[2 + c]])
                same_bits(out[w, 2 * t + c], expected)


@pytest.mark.parametrize("special", [0.0, np.inf, np.nan])
def test_rows_of_zeros_are_left_out_only_where_they_add_nothing(special):
    rng = np.random.default_rng(3)
    left, right = tiles_of(rng, 2, 3), tiles_of(rng, 1, 3)
    left[0, :, ::2] = 0
    left[1, 1] = -0.0
    right[0, 1, 5, 7] = special
    out = depthwise(operand(left, range(3)), operand(right, range(3)), 1, 1, 3, 1, [(0, 2)])
    for w in range(2):
        expected = product(left[w, 0], right[0, 0]) + product(left[w, 1], right[0, 1])
        same_bits(out[w, 0], expected + product(left[w, 2], right[0, 2]))


def test_depthwise_reads_pads():
    rng = np.random.default_rng(2)
    right = tiles_of(rng, 1, 1)
    out = depthwise(operand(right, [-1], 0.5), operand(right, [0]), 1, 1, 1, 1, [(0, 1)])
    same_bits(out[0, 0], product(np.full((32, 32), 0.5, F32), right[0, 0]))


def sparse(weights, acts, terms, term_weight, term_row, cols, group_cols=None):
    rows = len(terms[0]) - 1
    form = Weights.of(np.ascontiguousarray(weights).reshape(len(weights), -1, 1024))
    finite = np.zeros(acts[0].shape[:2], np.bool_)
    mark_finite_tiles(0, finite.size, finite, acts[0])
    w = max(len(weights), len(acts[0]))
    out = np.full((w, rows * cols, 1024), np.nan, F32)
    lists = Terms(*(np.array(numbers, np.int64) for numbers in (terms, term_weight, term_row)))
    sparse_tiles(0, w * rows * cols, out, form, acts, finite, lists, (cols, group_cols or cols))
    return out.reshape(w, rows, cols, 32, 32)


def sprinkled(rng, w, n):
    """Tiles with no, one or some elements in a row; zeros of both signs."""
    values = tiles_of(rng, w, n)
    zeros = np.where(rng.integers(0, 2, values.shape), F32(0), F32(-0.0))
    return np.where(rng.integers(0, 30, values.shape) == 0, values, zeros)


@pytest.mark.parametrize("finite", [True, False])
def test_sparse_products_leave_zeros_out_only_where_that_changes_no_bit(finite):
    rng = np.random.default_rng(3)
    weights, acts = sprinkled(rng, 1, 3), tiles_of(rng, 2, 4)
    acts[0, 1] = -0.0
    acts[1, 2] *= F32(1e-44)
    if not finite:
        acts[0, 0, 5, 7], acts[1, 3, 1, 1], acts[1, 3, 2, 1] = np.inf, np.nan, -np.inf
    out = sparse(weights, operand(acts, [0, 1, 2, 3]), [[0, 3, 3, 4]], [0, 1, 2, 1], [1, 0, 1, 0], cols=2)
    for w in range(2):
        for c in range(2):
            expected = np.zeros((32, 32), F32)
            for weight, row in ((0, 1), (1, 0), (2, 1)):
                with np.errstate(all="ignore"):
                    expected = expected + product(weights[0, weight], acts[w, 2 * row + c])
            same_bits(out[w, 0, c], expected)
            same_bits(out[w, 1, c], np.zeros((32, 32), F32))
            same_bits(out[w, 2, c], product(weights[0, 1], acts[w, c]))


def test_column_groups_have_their_own_terms_and_entries_their_own_weights():
    rng = np.random.default_rng(4)
    weights, acts = sprinkled(rng, 2, 2), tiles_of(rng, 1, 4)
    out = sparse(weights, operand(acts, [3, 2, 1, 0]), [[0, 1], [1, 2]], [0, 1], [0, 0], cols=4, group_cols=2)
    for w in range(2):
        for c in range(4):
            same_bits(out[w, 0, c], product(weights[w, c // 2], acts[0, 3 - c]))


@pytest.mark.parametrize("pad_value", [-0.0, 2.5, np.inf, np.nan])
def test_sparse_products_with_pads(pad_value):
    rng = np.random.default_rng(5)
    weights = sprinkled(rng, 1, 1)
    out = sparse(weights, operand(tiles_of(rng, 1, 1), [-1], pad_value), [[0, 1]], [0], [0], cols=1)
    same_bits(out[0, 0, 0], product(weights[0, 0], np.full((32, 32), pad_value, F32)))


def test_transposed_activations():
    rng = np.random.default_rng(6)
    weights, acts = sprinkled(rng, 1, 1), tiles_of(rng, 1, 1)
    out = sparse(weights, operand(acts, [0], arrange=1), [[0, 1]], [0], [0], cols=1)
    same_bits(out[0, 0, 0], product(weights[0, 0], acts[0, 0].T))


def test_finite_tiles():
    tiles = np.zeros((2, 3, 1024), F32)
    tiles[0, 1, 1023], tiles[1, 0, 0], tiles[1, 2, 5] = np.inf, np.nan, -np.inf
    tiles[0, 2, 7] = np.finfo(F32).max
    marks = np.zeros((2, 3), np.bool_)
    mark_finite_tiles(0, 2, marks, tiles)
    mark_finite_tiles(2, 6, marks, tiles)
    assert marks.tolist() == [[True, False, True], [False, True, False]]
