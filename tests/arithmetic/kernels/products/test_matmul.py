"""The dense tile product: its definition in scalars, its reference in numpy and its kernel, bit for bit."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.kernels.fma import fma
from buda_emu.arithmetic.kernels.products.matmul import (
    AS_IT_IS,
    COLUMNS,
    DEPTH,
    GROUP,
    ONTO,
    PLUS,
    PLUS_ROW,
    Ending,
    Extent,
    Reading,
    matmul_blocks,
    matmul_reference,
    matmul_tiles,
)
from buda_emu.arithmetic.kernels.products.tile_product import dense_product
from buda_emu.arithmetic.kernels.tiles.tile_memory import (
    NO_RELU,
    RELU_FROM,
    RELU_WITHIN,
    WORKING_TILES,
    tile_at,
    transpose_tile,
    working_tiles,
)
from buda_emu.emulator.ops.common import relu

pytestmark = pytest.mark.tiny

Array = NDArray[Any]
LARGE = np.float32(3.0e38)


def values(shape: tuple[int, ...], kind: str, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    data = rng.standard_normal(shape).astype(np.float32)
    if kind == "wild":  # far apart, so that every rounding shows, subnormal results among them
        data *= np.float32(2) ** rng.integers(-70, 40, shape).astype(np.float32)
    if kind == "special":
        data.reshape(-1)[:: 1 + data.size // 40] = np.float32(np.nan)
        data.reshape(-1)[5 :: 1 + data.size // 30] = np.float32(np.inf)
        data.reshape(-1)[7 :: 1 + data.size // 20] = LARGE
        data[rng.random(shape) < 0.5] = np.float32(-0.0)
    return data


def assert_same_bits(x: Array, y: Array) -> None:
    """Equal bits; NaN is one value, whose sign and payload the processor chooses."""
    assert np.array_equal(np.isnan(x), np.isnan(y))
    number = ~np.isnan(x)
    assert np.array_equal(x[number].view(np.uint32), y[number].view(np.uint32))


def nothing(out: Array) -> Ending:
    """Ends a product as it is; the term is not read."""
    return Ending(AS_IT_IS, out, np.zeros(0, np.int32), np.float32(0))


def by_the_text(a: Array, b: Array) -> np.float32:
    """One element of D by OPS 6.1: a row of a, a column of b."""
    lanes = []
    for lane in range(8):
        total = np.float32(0)
        for q in range(4):
            total = fma(a[8 * q + lane], b[8 * q + lane], total)
        lanes.append(total)
    s0, s1, s2, s3, s4, s5, s6, s7 = lanes
    return np.float32(((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)))


@pytest.mark.parametrize("kind", ["normal", "wild"])
def test_reference_product_is_the_text(kind: str) -> None:
    a, b = values((2, 32, 32), kind)
    product = dense_product(a, b)
    for i, j in [(0, 0), (3, 17), (31, 31), (12, 5)]:
        assert product[i, j] == by_the_text(a[i], b[:, j])


def test_reference_adds_terms_in_ascending_order() -> None:
    a, b = values((1, 5, 32, 32), "normal", 1), values((5, 1, 32, 32), "normal", 2)
    expected = np.zeros((32, 32), np.float32)
    for k in range(5):
        expected = expected + dense_product(a[0, k], b[k, 0])
    assert_same_bits(matmul_reference(a, b)[0, 0], expected)


def run(
    a: Array,
    b: Array,
    transposed: bool = False,
    pads: tuple[float, float] = (0, 0),
    holes: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    cuts: tuple[int, ...] = (),
) -> tuple[Array, Array]:
    """Kernel and reference for a [wa, t, R, K, 32, 32] and b [wb, t, K, C, 32, 32] whose source tiles lie shuffled.

    `holes`: tiles, by number, that are pad instead. `cuts`: where the work items are split into calls.
    """
    t, rows, inner = a.shape[1:4]
    cols = b.shape[3]
    entries = max(a.shape[0], b.shape[0])
    sources, expected = [], []
    for operand, pad, hole, order in ((a, pads[0], holes[0], 11), (b, pads[1], holes[1], 12)):
        tiles = operand.reshape(operand.shape[0], -1, 1024)
        seen = tiles.copy()
        seen[:, list(hole)] = np.float32(pad)
        expected.append(seen.reshape(operand.shape))
        index = np.random.default_rng(order).permutation(tiles.shape[1]).astype(np.int32)
        source = np.empty_like(tiles)
        source[:, index] = tiles
        index[list(hole)] = [-1 - n for n in range(len(hole))]
        index.flags.writeable = False  # as those of a tile map
        sources.append((source, index, np.float32(pad)))
    right = expected[1].swapaxes(-1, -2) if transposed else expected[1]
    out = np.full((entries, t * rows * cols, 1024), np.nan, np.float32)
    items, columns = matmul_blocks(entries, t, rows, cols)
    (left, *of_left), (other, *of_other) = sources
    reading, extent = Reading(*of_left, *of_other, transposed), Extent(t, rows, inner, cols, columns)
    for start, stop in pairwise([0, *cuts, items]):
        matmul_tiles(start, stop, out, left, other, reading, extent, nothing(out))
    return out.reshape(entries, t, rows, cols, 32, 32), matmul_reference(expected[0], right)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 2)]),
    st.integers(1, 2),
    st.integers(1, 6),
    st.integers(1, 3),
    st.sampled_from([1, 3, 9, COLUMNS + 1]),
    st.booleans(),
    st.sampled_from(["normal", "wild", "special"]),
    st.data(),
)
def test_kernel_is_the_reference(
    entries: tuple[int, int], t: int, rows: int, inner: int, cols: int, transposed: bool, kind: str, data: st.DataObject
) -> None:
    a = values((entries[0], t, rows, inner, 32, 32), kind, 3)
    b = values((entries[1], t, inner, cols, 32, 32), kind, 4)
    items, _ = matmul_blocks(max(entries), t, rows, cols)
    cuts = tuple(sorted(data.draw(st.lists(st.integers(0, items), max_size=2))))
    holes = tuple(
        tuple(data.draw(st.lists(st.integers(0, t * count - 1), max_size=2, unique=True)))
        for count in (rows * inner, inner * cols)
    )
    ours, expected = run(a, b, transposed, (1.5, -2.25), holes, cuts)  # type: ignore[arg-type]
    assert_same_bits(ours, expected)


@pytest.mark.parametrize("rows", [1, GROUP - 1, GROUP, GROUP + 1])
def test_inner_dimensions_longer_than_a_block(rows: int) -> None:
    inner = DEPTH + 3
    ours, expected = run(values((1, 1, rows, inner, 32, 32), "wild", 5), values((1, 1, inner, 2, 32, 32), "wild", 6))
    assert_same_bits(ours, expected)


def test_sums_start_at_plus_zero() -> None:
    a = np.full((1, 1, 1, 1, 32, 32), -0.0, np.float32)
    b = np.full((1, 1, 1, 1, 32, 32), 1, np.float32)
    ours, _ = run(a, b)
    assert not np.signbit(ours).any()


@pytest.mark.parametrize("rows", [1, 4, 5])
@pytest.mark.parametrize("poison", [None, np.nan, np.inf])
@pytest.mark.parametrize("columns", [1, 4, 5, 32])  # of 4, the last block is too narrow to look at tiles of in0
def test_tiles_of_zeros_change_no_bit(rows: int, poison: float | None, columns: int) -> None:
    """They are left out where the other tile is finite; minus zeros, infinities and NaNs are as the text has them."""
    rng = np.random.default_rng(rows)
    inner, cols, zero = 20, 5, np.float32(0)
    a = rng.standard_normal((1, rows * inner, 1024)).astype(np.float32)
    b = rng.standard_normal((1, inner * cols, 1024)).astype(np.float32)
    for tiles in (a, b):
        tiles[:, rng.random(tiles.shape[1]) < 0.5] = 0
        tiles[:, rng.random(tiles.shape[1]) < 0.2] = -0.0
        if poison is not None:
            tiles[:, rng.random(tiles.shape[1]) < 0.1, rng.integers(1024)] = poison
        tiles[:, 7, :1023] = 0
    a_index, b_index = (np.arange(tiles.shape[1], dtype=np.int32) for tiles in (a, b))
    out = np.empty((1, rows * cols, 1024), np.float32)
    items = -(-rows // GROUP) * -(-cols // columns)
    reading, extent = Reading(a_index, zero, b_index, zero, False), Extent(1, rows, inner, cols, columns)
    matmul_tiles(0, items, out, a, b, reading, extent, nothing(out))
    expected = matmul_reference(a.reshape(rows, inner, 32, 32), b.reshape(inner, cols, 32, 32))
    assert_same_bits(out, expected.reshape(out.shape))


@pytest.mark.parametrize("inner", [1, 20])
@pytest.mark.parametrize("how", [AS_IT_IS, ONTO, PLUS, PLUS_ROW])
@pytest.mark.parametrize("mode", ["", "min", "max"])
def test_what_becomes_of_the_product(inner: int, how: int, mode: str) -> None:
    """The term is read through a tile map, a tile of it being pad; one entry of it serves both."""
    a, b = values((2, 5, inner, 32, 32), "wild", 5), values((1, inner, 3, 32, 32), "wild", 6)
    product = matmul_reference(a, b)
    term = values((1, 15, 32, 32), "special", 7)
    index = np.random.default_rng(8).permutation(15).astype(np.int32)
    index[4] = -1
    seen = term[:, index].reshape(1, 5, 3, 32, 32)
    seen[:, 1, 1] = np.float32(0.5)
    with np.errstate(all="ignore"):
        expected = {
            AS_IT_IS: product,
            ONTO: seen + product,
            PLUS: product + seen,
            PLUS_ROW: product + seen[..., :1, :],
        }[how]
    threshold = np.float32(0.25)
    if mode:
        expected = relu(expected, mode, float(threshold))
    code = {"": NO_RELU, "min": RELU_FROM, "max": RELU_WITHIN}[mode]
    out = np.full((2, 15, 1024), np.nan, np.float32)
    zero = np.float32(0)
    sources = [(x.reshape(len(x), -1, 1024), np.arange(x[0].size // 1024, dtype=np.int32)) for x in (a, b)]
    ending = Ending(how, term.reshape(1, 15, 1024), index, np.float32(0.5), code, threshold)
    items, columns = matmul_blocks(2, 1, 5, 3)
    reading = Reading(sources[0][1], zero, sources[1][1], zero, False)
    matmul_tiles(0, items, out, sources[0][0], sources[1][0], reading, Extent(1, 5, inner, 3, columns), ending)
    assert_same_bits(out, expected.reshape(out.shape))


def test_padding_of_zero_does_not_hide_infinity() -> None:
    a = np.full((1, 1, 1, 2, 32, 32), 1, np.float32)
    b = np.full((1, 1, 2, 1, 32, 32), np.inf, np.float32)
    ours, _ = run(a, b, holes=((1,), ()))
    assert np.isnan(ours).all()


@kernel
def transposed_through_work(out: Array, data: Array) -> None:
    work = working_tiles()
    transpose_tile(tile_at(work, 0, WORKING_TILES - 1), tile_at(data, 0, 0))
    transpose_tile(tile_at(out, 0, 1), tile_at(work, 0, WORKING_TILES - 1))
    transpose_tile(tile_at(out, 0, 0), tile_at(data, 0, 0))


def test_moving_a_tile_keeps_every_bit() -> None:
    words = np.random.default_rng(8).integers(0, 1 << 32, (1, 1, 1024), dtype=np.uint32)
    words[0, 0, :2] = 0x7F800001, 0xFF812345  # signalling NaNs
    out = np.zeros((1, 2, 1024), np.float32)
    transposed_through_work(out, words.view(np.float32))
    assert np.array_equal(out[0, 1].view(np.uint32), words[0, 0])
    assert np.array_equal(out[0, 0].view(np.uint32).reshape(32, 32), words.reshape(32, 32).T)


@pytest.mark.parametrize("features", ["+sse2", "+avx2,+fma", "+avx2,+avx512f,+avx512vl"])
def test_blocks_tile_the_tile(features: str) -> None:
    from buda_emu.arithmetic.kernels.intrinsics.dense_product import block_for

    block = block_for(features)
    assert 32 % block.rows == 0
    assert 32 % (block.width * block.vectors) == 0
    places = len(block.kept) * len(block.cells) * block.width
    assert places <= 1024  # of the parking tile
    assert math.prod((block.rows, block.vectors)) == len(set(block.cells))


def test_one_entry_serves_all_those_of_the_other_operand():
    one, two = values((1, 1, 1024), "wild", 1), values((2, 1, 1024), "wild", 2)
    index, zero = np.zeros(1, np.int32), np.float32(0)
    for a, b in ((one, two), (two, one)):
        out = np.empty((2, 1, 1024), np.float32)
        reading = Reading(index, zero, index, zero, False)
        matmul_tiles(0, 2, out, a, b, reading, Extent(1, 1, 1, 1, 1), nothing(out))
        left, right = (tiles.reshape(-1, 1, 1, 32, 32) for tiles in (a, b))
        assert_same_bits(out.reshape(2, 1, 1, 32, 32), matmul_reference(left, right))
