import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.kernels.tensix.products.tile_matmul import (
    int_copy_tiles,
    int_elwadd_tiles,
    int_elwmul_tiles,
    int_matmul_tiles,
)
from buda_emu.arithmetic.tensix.conversions.unpack import unpack
from buda_emu.arithmetic.tensix.products import int_copy, int_elwadd, int_elwmul, int_elwsub, int_mvmul, int_tile_matmul
from buda_emu.spec.precision import PHASES
from device_vectors import mismatches, needs_vectors, vectors
from tile_products import integer_product_of


@needs_vectors
def test_vectors():
    v = vectors("int8")
    out = np.empty_like(v["dst_in"])
    for n, (op, phase) in enumerate(zip(v["op"].tolist(), v["phase"].tolist(), strict=True)):
        a, b, dst = v["srca"][n], v["srcb"][n], v["dst_in"][n]
        if op == 0:
            out[n] = int_mvmul(dst, b, a, phase)
        elif op == 1:
            out[n] = int_elwmul(dst, a, b, phase)
        else:
            out[n] = int_elwadd(dst if phase else None, a, b)
    assert mismatches(out, v["dst_out"]) == 0


def signed(shape, seed):
    """Values and their words."""
    values = np.random.default_rng(seed).integers(-127, 128, shape)
    codes = np.where(values < 0, 128 - values, values).astype(np.uint8)
    return values, unpack(codes, "Int8", "Int8", "wormhole_b0")


def image(values):
    return np.where(values < 0, 0x8000_0000 - values, values).astype(np.uint32)


@pytest.mark.tiny
def test_four_phases_are_the_exact_product():
    (x, a), (y, b) = signed((32, 32), 1), signed((32, 32), 2)
    dst = np.zeros((32, 32), np.uint32)
    for phase in PHASES["HiFi4"]:
        dst = int_elwmul(dst, a, b, phase)
    assert np.array_equal(dst, image(x * y))
    assert np.array_equal(int_elwadd(None, a, b), image(x + y))
    assert np.array_equal(int_elwsub(None, a, b), image(x - y))
    assert np.array_equal(int_copy(a), image(x))


@pytest.mark.tiny
@pytest.mark.parametrize("core", ["grayskull", "wormhole_b0", "blackhole"])
def test_tiles(core):
    (x, in0), (y, in1) = signed((3, 32, 32), 3), signed((3, 32, 32), 4)
    out = int_tile_matmul(np.zeros((32, 32), np.uint32), in0, in1, core)
    assert np.array_equal(out, image((x @ y).sum(axis=0)))


@pytest.mark.tiny
def test_sums_saturate():
    words = unpack(np.full((1, 1), 127, np.uint8), "Int8", "Int8", "wormhole_b0")
    assert int_elwadd(np.array([[0x7FFF_FFFF]], np.uint32), words, words) == 0x7FFF_FFFF
    assert int_elwsub(np.array([[0xFFFF_FFFF]], np.uint32), words ^ np.uint32(1 << 31), words) == 0xFFFF_FFFF


def tile_of(words):
    """uint32[1, 1024] with the words in its first part."""
    tile = np.zeros((1, 1024), np.uint32)
    tile[0, : words.size] = words.ravel()
    return tile


@needs_vectors
def test_vectors_of_additions_by_the_kernel():
    v = vectors("int8")
    for n in np.flatnonzero(v["op"] == 2):
        dst = tile_of(v["dst_in"][n])
        accumulate = bool(v["phase"][n])
        int_elwadd_tiles(0, 1, dst, tile_of(v["srca"][n]), tile_of(v["srcb"][n]), False, accumulate)
        assert mismatches(dst[0, :256].reshape(16, 16), v["dst_out"][n]) == 0


@needs_vectors
def test_vectors_of_products_by_the_kernels():
    """The vectors have one phase each; the kernels run all four, so operands are cut down to what one phase takes."""
    v = vectors("int8")
    for n in np.flatnonzero(v["op"] != 2):
        phase = int(v["phase"][n])
        a = cut(v["srca"][n], (0xE0, 0x1F)[phase & 1])
        b = cut(v["srcb"][n], (0x3F0, 0x00F)[phase >> 1])
        if v["op"][n] == 1:
            dst = tile_of(v["dst_in"][n])
            int_elwmul_tiles(0, 1, dst, tile_of(a), tile_of(b))
            out = dst[0, :256].reshape(16, 16)
        else:
            faces = [np.zeros((1, 1, 1, 32, 32), np.uint32) for _ in range(3)]
            for face, words in zip(faces, (v["dst_in"][n], b, a), strict=True):
                face[..., :16, :16] = words
            out = matmul_by_kernel(*faces, faces_in_tile=1)[0, 0, 0, :16, :16]
        assert mismatches(out, v["dst_out"][n]) == 0


def cut(words, mask):
    """The words with some bits of their magnitudes."""
    magnitude = words >> 13 & mask
    return words & np.uint32(0x8000_0000) | np.where(magnitude == 0, 0, magnitude | 0x4000).astype(np.uint32) << 13


def matmul_by_kernel(dst, in0, in1, *, faces_in_tile=2, faces_first=False, transposed=False):
    """The kernel on dst [w, R, C, 32, 32], in0 [w, R, K, 32, 32], in1 [w, K, C, 32, 32]."""
    rows, inner, cols = in0.shape[1], in0.shape[2], in1.shape[2]
    out = np.ascontiguousarray(dst).reshape(dst.shape[0], rows * cols, 1024).copy()
    operands = []
    for words in (in0, in1):
        tiles = np.ascontiguousarray(words).reshape(words.shape[0], -1, 1024)
        operands += [tiles, np.arange(tiles.shape[1], dtype=np.int32)]
    for start in range(out.shape[0] * out.shape[1]):
        shape = (transposed, 1, rows, inner, cols, 0, inner, faces_in_tile)
        int_matmul_tiles(start, start + 1, out, integer_product_of(*operands, *shape, faces_first))
    return out.reshape(dst.shape)


def any_words(stream, shape, df):
    return unpack(stream.integers(0, 256, shape).astype(np.uint8), df, df, "wormhole_b0")


def any_image(stream, shape):
    """Dst images near their ends as well as near zero, -0 among them."""
    ends = np.array([0, 0x8000_0000, 0x7FFF_FFFF, 0xFFFF_FFFF, 0x7FFF_0000, 0xFFFF_0000], np.uint32)
    return np.where(stream.random(shape) < 0.5, stream.choice(ends, shape), stream.integers(0, 1 << 20, shape)).astype(
        np.uint32
    )


@pytest.mark.tiny
@settings(max_examples=4, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dfs=st.tuples(*[st.sampled_from(["Int8", "UInt8"])] * 2),
    core=st.sampled_from(["grayskull", "wormhole_b0"]),
)
def test_matmul_kernel_is_the_reference(seed, dfs, core):
    stream = np.random.default_rng(seed)
    dst = any_image(stream, (1, 1, 1, 32, 32))
    in0, in1 = (any_words(stream, (1, 1, 1, 32, 32), df) for df in dfs)
    expected = int_tile_matmul(dst[0, 0, 0], in0[0, 0], in1[0, :, 0], core)
    assert mismatches(matmul_by_kernel(dst, in0, in1, faces_first=core == "grayskull")[0, 0, 0], expected) == 0


def test_blocks_of_tiles_by_the_kernel():
    stream = np.random.default_rng(7)
    dst, in0 = any_image(stream, (2, 2, 3, 32, 32)), any_words(stream, (2, 2, 4, 32, 32), "Int8")
    in1 = any_words(stream, (2, 4, 3, 32, 32), "UInt8")
    expected = int_tile_matmul(dst, in0[:, :, None], in1.swapaxes(1, 2)[:, None], "wormhole_b0")
    assert mismatches(matmul_by_kernel(dst, in0, in1), expected) == 0
    assert mismatches(matmul_by_kernel(dst, in0, in1.swapaxes(-1, -2), transposed=True), expected) == 0


@pytest.mark.tiny
def test_all_rows_of_a_slice_have_its_columns():
    stream = np.random.default_rng(8)
    dst, in0 = np.zeros((1, 2, 1, 32, 32), np.uint32), any_words(stream, (1, 2, 1, 32, 32), "Int8")
    in0[..., 16:] = 0  # the second inner face adds nothing: one is enough
    in1 = any_words(stream, (1, 1, 1, 32, 32), "Int8")
    expected = int_tile_matmul(dst, in0[:, :, None], in1.swapaxes(1, 2)[:, None], "wormhole_b0")
    assert mismatches(matmul_by_kernel(dst, in0, in1, faces_in_tile=1), expected) == 0


@pytest.mark.tiny
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dfs=st.tuples(*[st.sampled_from(["Int8", "UInt8"])] * 2),
    subtract=st.booleans(),
    accumulate=st.booleans(),
)
def test_kernels_are_the_reference(seed, dfs, subtract, accumulate):
    stream = np.random.default_rng(seed)
    dst = any_image(stream, (1, 1024))
    a, b = (any_words(stream, (1, 1024), df) for df in dfs)
    out = dst.copy()
    int_elwadd_tiles(0, 1, out, a, b, subtract, accumulate)
    expected = (int_elwsub if subtract else int_elwadd)(dst if accumulate else None, a, b)
    assert mismatches(out, expected) == 0
    out, expected = dst.copy(), dst
    int_elwmul_tiles(0, 1, out, a, b)
    for phase in range(4):
        expected = int_elwmul(expected, a, b, phase)
    assert mismatches(out, expected) == 0
    int_copy_tiles(0, 1, out, a)
    assert mismatches(out, int_copy(a)) == 0


def test_slices_of_the_kernel():
    """t slices, each with rows of in0 and columns of in1 of its own; an index without a tile is a tile of zeros."""
    t, rows, inner, cols = 2, 1, 2, 2
    stream = np.random.default_rng(6)
    in0 = any_words(stream, (t, rows, inner, 32, 32), "Int8")
    in1 = any_words(stream, (t, inner, cols, 32, 32), "Int8")
    indices = [np.arange(words[..., 0, 0].size, dtype=np.int32) for words in (in0, in1)]
    indices[0][1] = -1
    in0[0, 0, 1] = 0
    out = np.zeros((1, t * rows * cols, 1024), np.uint32)
    first, second = (words.reshape(1, -1, 1024) for words in (in0, in1))
    shape = (False, t, rows, inner, cols, 0, inner, 2, False)
    product = integer_product_of(first, indices[0], second, indices[1], *shape)
    int_matmul_tiles(0, out.shape[1], out, product)
    dst = np.zeros((t, rows, cols, 32, 32), np.uint32)
    expected = int_tile_matmul(dst, in0[:, :, None], in1.swapaxes(1, 2)[:, None], "wormhole_b0")
    assert mismatches(out.reshape(expected.shape), expected) == 0
