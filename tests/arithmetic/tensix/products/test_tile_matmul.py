import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.kernels.tensix.products.tile_matmul import matmul_tiles
from buda_emu.arithmetic.tensix.products import phase_mask, tile_matmul
from buda_emu.arithmetic.tensix.registers import kernel_setting
from buda_emu.spec.precision import PHASES
from device_vectors import CORES, FAMILIES, MODES, mismatches, needs_vectors, vectors
from register_words import KINDS, PAIRINGS, dst_image, family, src_words
from tile_products import product_of

FIDELITIES = ("LoFi", "HiFi2", "HiFi3", "HiFi4", "HiFi2_B")


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
def test_vectors(suffix):
    v = vectors("tile_matmul")
    out = np.zeros_like(v["in0"])
    for n, (_, _, mode, fidelity) in enumerate(v["meta"].tolist()):
        dst = out[n, 0]
        for k in range(2):
            setting = (PHASES[FIDELITIES[fidelity]], FAMILIES[int(v["meta"][n, 0])], MODES[mode], CORES[suffix])
            dst = tile_matmul(dst, v["in0"][n, k : k + 1], v["in1"][n, k : k + 1], *setting)
            out[n, k] = dst
    assert mismatches(out, v[f"out_{suffix}"]) == 0


def words(shape, seed):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return values.view(np.uint32) & np.uint32(0xFFFF0000)


@pytest.mark.tiny
def test_tiles_without_a_second_inner_face():
    in0, in1 = words((2, 32, 32), 1), words((2, 32, 32), 2)
    in0[:, :, 16:] = 0
    setting = ((0, 1), "b", "fp32", "wormhole_b0")
    dst = np.zeros((16, 32), np.uint32)
    whole = tile_matmul(dst, in0[:, :16], in1, *setting)
    assert np.array_equal(whole, tile_matmul(dst, in0[:, :16, :16], in1[:, :16], *setting))


@pytest.mark.tiny
def test_order_of_faces_and_phases():
    in0, in1 = words((1, 32, 32), 1), words((1, 32, 32), 2)
    dst = np.zeros((32, 32), np.uint32)
    wormhole = tile_matmul(dst, in0, in1, (0, 1), "b", "bf16", "wormhole_b0")
    grayskull = tile_matmul(dst, in0, in1, (0, 1), "b", "bf16", "grayskull")
    assert np.any(wormhole != grayskull)
    half = tile_matmul(dst, in0[..., :16], in1[:, :16], (0, 1), "b", "bf16", "grayskull")
    assert np.array_equal(grayskull, tile_matmul(half, in0[..., 16:], in1[:, 16:], (0, 1), "b", "bf16", "grayskull"))


def by_kernel(dst, in0, in1, mask, setting, *, faces=2, ranges=None, faces_first=False, transposed=False):
    """The kernel on dst [w, R, C, 32, 32], in0 [w or 1, R, K, 32, 32], in1 [w or 1, K, C, 32, 32]."""
    rows, inner, cols = in0.shape[1], in0.shape[2], in1.shape[2]
    out = np.ascontiguousarray(dst).reshape(dst.shape[0], rows * cols, 1024).copy()
    operands = []
    for words in (in0, in1):
        tiles = np.ascontiguousarray(words).reshape(words.shape[0], -1, 1024)
        operands += [tiles, np.arange(tiles.shape[1], dtype=np.int32), np.uint32(0)]
    items = out.shape[0] * out.shape[1]
    for first, last in ranges or [(0, inner)]:
        for start in range(0, items, 3):  # in parts, as threads take them
            stop = min(start + 3, items)
            shape = (transposed, 1, rows, inner, cols, first, last, faces, mask)
            matmul_tiles(start, stop, out, product_of(*operands, *shape, *setting, faces_first))
    return out.reshape(dst.shape)


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
def test_vectors_by_the_kernel(suffix):
    v = vectors("tile_matmul")
    out = np.zeros_like(v["in0"])
    for n, (srca, _, mode, fidelity) in enumerate(v["meta"].tolist()):
        setting = kernel_setting(FAMILIES[srca], MODES[mode], CORES[suffix])
        dst = np.zeros((1, 1, 1, 32, 32), np.uint32)
        for k in range(2):
            in0, in1 = v["in0"][n, k].reshape(1, 1, 1, 32, 32), v["in1"][n, k].reshape(1, 1, 1, 32, 32)
            dst = by_kernel(dst, in0, in1, phase_mask(FIDELITIES[fidelity]), setting)
            out[n, k] = dst[0, 0, 0]
    assert mismatches(out, v[f"out_{suffix}"]) == 0


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
def test_vectors_of_faces_by_the_kernel(suffix):
    v = vectors("mvmul")
    out = np.empty_like(v["dst_in"])
    for meta in np.unique(v["meta"], axis=0):
        cases = np.flatnonzero((v["meta"] == meta).all(axis=1))
        tiles = []
        for name in ("dst_in", "srcb", "srca"):
            padded = np.zeros((len(cases), 1, 1, 32, 32), np.uint32)
            padded[:, 0, 0, :16, :16] = v[name][cases]
            tiles.append(padded)
        setting = kernel_setting(FAMILIES[int(meta[0])], MODES[int(meta[2])], CORES[suffix])
        out[cases] = by_kernel(*tiles, 1 << int(meta[3]), setting, faces=1)[:, 0, 0, :16, :16]
    assert mismatches(out, v[f"dst_out_{suffix}"]) == 0


def by_reference(dst, in0, in1, phases, setting):
    return tile_matmul(dst, in0[:, :, None], in1.swapaxes(1, 2)[:, None], phases, *setting)


@pytest.mark.tiny
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    pairing=st.sampled_from(PAIRINGS),
    kind=st.sampled_from(KINDS),
    fidelity=st.sampled_from(sorted(PHASES)),
    core=st.sampled_from(["grayskull", "wormhole_b0", "blackhole"]),
)
def test_kernel_is_the_reference(seed, pairing, kind, fidelity, core):
    stream = np.random.default_rng(seed)
    register, mode = pairing
    dst = dst_image(stream, (1, 1, 1, 32, 32), mode, kind)
    in0, in1 = (src_words(stream, (1, 1, 1, 32, 32), register, kind) for _ in range(2))
    setting = (family(register), mode, core)
    expected = by_reference(dst, in0, in1, PHASES[fidelity], setting)
    faces_first = core == "grayskull"
    out = by_kernel(dst, in0, in1, phase_mask(fidelity), kernel_setting(*setting), faces_first=faces_first)
    assert mismatches(out, expected) == 0


@pytest.mark.parametrize(("register", "mode"), PAIRINGS)
def test_blocks_of_tiles_by_the_kernel(register, mode):
    kind, core = "wide", "wormhole_b0"
    stream = np.random.default_rng(11)
    dst = dst_image(stream, (2, 2, 1, 32, 32), mode, kind)
    in0 = src_words(stream, (2, 2, 2, 32, 32), register, kind)
    in1 = src_words(stream, (1, 2, 1, 32, 32), register, kind)
    setting = (family(register), mode, core)
    expected = by_reference(dst, in0, in1, (0, 1), setting)
    out = by_kernel(dst, in0, in1, 0b11, kernel_setting(*setting), ranges=[(0, 1), (1, 2)])
    assert mismatches(out, expected) == 0
    turned = np.ascontiguousarray(in1.swapaxes(-1, -2))
    assert mismatches(by_kernel(dst, in0, turned, 0b11, kernel_setting(*setting), transposed=True), expected) == 0


def test_padding_tiles_of_the_kernel():
    one = np.uint32(0x3F80_0000)
    setting = kernel_setting("b", "fp32", "wormhole_b0")
    words = src_words(np.random.default_rng(1), (1, 2, 1024), "Tf32", "normal")
    out = np.zeros((1, 1, 1024), np.uint32)
    index0, index1 = np.array([0, -1], np.int32), np.array([-1, 1], np.int32)
    shape = (False, 1, 1, 2, 1, 0, 2, 2, 0b1111)
    matmul_tiles(0, 1, out, product_of(words, index0, one, words, index1, np.uint32(0), *shape, *setting, False))
    ones = np.full((1, 32, 32), one)
    dst = np.zeros((32, 32), np.uint32)
    for in0, in1 in ((words[:, 0], np.zeros((1, 32, 32), np.uint32)), (ones, words[:, 1])):
        tiles = in0.reshape(1, 32, 32), in1.reshape(1, 32, 32)
        dst = tile_matmul(dst, *tiles, (0, 1, 2, 3), "b", "fp32", "wormhole_b0")
    assert np.array_equal(out.reshape(32, 32), dst)


def test_slices_of_the_kernel():
    """t slices, each with rows of in0 and columns of in1 of its own."""
    t, rows, inner, cols = 2, 2, 2, 1
    stream = np.random.default_rng(5)
    in0 = src_words(stream, (1, t, rows, inner, 32, 32), "Float16_b", "normal")
    in1 = src_words(stream, (1, t, inner, cols, 32, 32), "Float16_b", "normal")
    out = np.zeros((1, t * rows * cols, 1024), np.uint32)
    operands = []
    for words in (in0, in1):
        tiles = words.reshape(1, -1, 1024)
        operands += [tiles, np.arange(tiles.shape[1], dtype=np.int32), np.uint32(0)]
    setting = kernel_setting("b", "bf16", "wormhole_b0")
    product = product_of(*operands, False, t, rows, inner, cols, 0, inner, 2, 1, *setting, False)
    matmul_tiles(0, out.shape[1], out, product)
    dst = np.zeros((t, rows, cols, 32, 32), np.uint32)
    expected = by_reference(dst, in0[0], in1[0], (0,), ("b", "bf16", "wormhole_b0"))
    assert mismatches(out.reshape(expected.shape), expected) == 0
