import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.kernels.tensix.elementwise import reduce_max_tiles
from buda_emu.arithmetic.kernels.tensix.products.accumulate import RegisterOperand
from buda_emu.arithmetic.tensix.conversions.unpack import unpack
from buda_emu.arithmetic.tensix.elementwise import KEPT, max_pool, reduce_max
from buda_emu.arithmetic.tensix.registers import kernel_setting
from buda_emu.support.errors import UnsupportedError
from device_vectors import MODES, REGISTERS, mismatches, needs_vectors, vectors
from register_words import KINDS, PAIRINGS, family, src_words


@needs_vectors
def test_vectors():
    v = vectors("moves_pool")
    cases = [name.removesuffix("_srca") for name in v if name.startswith("gmpool") and name.endswith("_srca")]
    assert len(cases) == 18
    for case in cases:
        _, register, mode, valid, _ = case.split("_")
        dst = v[f"{case}_din"] if valid == "v1" else None
        out = max_pool(dst, v[f"{case}_srca"], REGISTERS[int(register[1:])], MODES[int(mode[1:])])
        assert mismatches(out, v[f"{case}_out"]) == 0, case


def patterns(values):
    return np.asarray(values, np.float32).view(np.uint32)


@pytest.mark.tiny
@pytest.mark.parametrize("dim", ["r", "c"])
@pytest.mark.parametrize(("register", "mode"), [("Float16_b", "bf16"), ("Float16_b", "fp32"), ("Tf32", "fp32")])
def test_the_largest_of_each_line(dim, register, mode):
    values = np.random.default_rng(3).integers(-99, 99, (2, 3, 32, 32)).astype(np.float32)
    out = reduce_max(patterns(values), dim, register, mode, "wormhole_b0")
    axis = 2 if dim == "r" else 3
    expected = np.zeros((2, 32, 32), np.float32)
    if dim == "r":
        expected[:, 0, :] = values.max(axis=(1, axis))
    else:
        expected[:, :, 0] = values.max(axis=(1, axis))
    as_words = out << np.uint32(16) if mode == "bf16" else out
    assert np.array_equal(as_words, patterns(expected))


@pytest.mark.tiny
def test_minus_zero_goes_with_the_way_back():
    tiles = np.full((1, 32, 32), 0x8000_0000, np.uint32)
    assert not reduce_max(tiles, "c", "Float16_b", "fp32", "blackhole").any()
    lowest = np.full((1, 32, 32), 0xFFFF_E000, np.uint32)  # below all numbers, above a cleared Dst
    assert reduce_max(lowest, "r", "Tf32", "fp32", "blackhole")[0, 0] == 0xFFFF_E000
    assert reduce_max(lowest, "c", "Tf32", "fp32", "blackhole")[0, 0] == 0xFF80_0000


@pytest.mark.tiny
def test_integers_are_refused():
    with pytest.raises(UnsupportedError, match="Int8"):
        max_pool(None, np.zeros((16, 16), np.uint32), "Int8", "int32")


@pytest.mark.tiny
@pytest.mark.parametrize("dim", ["r", "c"])
@pytest.mark.parametrize("mode", ["fp16", "fp32"])
def test_halves(dim, mode):
    values = np.random.default_rng(4).integers(-99, 99, (3, 32, 32)).astype(np.float16)
    words = unpack(values.view(np.uint16), "Float16", "Float16", "wormhole_b0")
    out = reduce_max(words, dim, "Float16", mode, "wormhole_b0")
    line = out[0] if dim == "r" else out[:, 0]
    read = line.astype(np.uint16).view(np.float16) if mode == "fp16" else line.view(np.float32)
    assert np.array_equal(read, values.max(axis=(0, 1 if dim == "r" else 2)))


def by_kernel(dst, tiles, dim, register, mode, accumulate=False):
    """The kernel on tiles [w, m, n, 32, 32], whose maxima are m tiles for each w."""
    w, m, n = tiles.shape[:3]
    source = tiles.reshape(w, m * n, 1024)
    index = np.arange(m * n, dtype=np.int32)
    setting = kernel_setting(family(register), mode, "wormhole_b0")
    out = dst.reshape(w, m, 1024).copy()
    for start in range(w * m):  # in parts, as threads take them
        operand = RegisterOperand(source, index, np.uint32(0), dim == "c")
        reduce_max_tiles(start, start + 1, out, operand, KEPT[register], setting, accumulate)
    return out.reshape(dst.shape)


@needs_vectors
def test_vectors_by_the_kernel():
    v = vectors("moves_pool")
    cases = [name.removesuffix("_srca") for name in v if name.startswith("gmpool") and name.endswith("_srca")]
    assert len(cases) == 18
    for case in cases:
        _, register, mode, valid, _ = case.split("_")
        dst = np.full((1, 1, 32, 32), 0xABCD, np.uint32)
        dst[0, 0, 0, :16] = v[f"{case}_din"]
        tile = np.tile(v[f"{case}_srca"], (2, 2)).reshape(1, 1, 1, 32, 32)  # the same rows again change nothing
        setting = REGISTERS[int(register[1:])], MODES[int(mode[1:])], valid == "v1"
        out = by_kernel(dst, tile, "r", *setting)
        assert mismatches(out[0, 0, 0, :16], v[f"{case}_out"]) == 0, case


@pytest.mark.tiny
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    pairing=st.sampled_from(PAIRINGS),
    kind=st.sampled_from(KINDS),
    dim=st.sampled_from(["r", "c"]),
)
def test_kernel_is_the_reference(seed, pairing, kind, dim):
    register, mode = pairing
    tiles = src_words(np.random.default_rng(seed), (2, 1, 2, 32, 32), register, kind)
    expected = reduce_max(tiles, dim, register, mode, "wormhole_b0")
    blank = np.full((2, 1, 32, 32), 0xABCD, np.uint32)
    whole = by_kernel(blank, tiles, dim, register, mode)
    assert mismatches(whole, expected) == 0
    first = by_kernel(blank, tiles[:, :, :1], dim, register, mode)
    assert mismatches(by_kernel(first, tiles[:, :, 1:], dim, register, mode, accumulate=True), expected) == 0


def test_padding_of_the_kernel():
    source = np.zeros((1, 1, 1024), np.uint32)
    out = np.zeros((1, 1, 1024), np.uint32)
    index = np.array([0, -1], np.int32)
    operand = RegisterOperand(source, index, np.uint32(0x3F80_0000))
    reduce_max_tiles(0, 1, out, operand, KEPT["Tf32"], kernel_setting("b", "fp32", "wormhole_b0"), False)
    assert np.all(out[0, 0, :32] == 0x3F80_0000)
    assert not out[0, 0, 32:].any()
