"""The way to intermed_df and back in one kernel, against packer, unpacker and copy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.kernels.tensix.products.spills import SPILLS, spill_words
from buda_emu.arithmetic.kernels.tensix.words import BF16, FP16, FP32
from buda_emu.arithmetic.tensix.conversions.pack import pack
from buda_emu.arithmetic.tensix.conversions.unpack import unpack
from buda_emu.arithmetic.tensix.elementwise import copy_to_dst
from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits
from buda_emu.emulator.ops.on_device.reference_units import ReferenceUnits
from buda_emu.emulator.ops.on_device.units import Product, ProductBlock, Spill, Words


@kernel
def spill_in_place(words, way):
    spill_words(words, way)


NAMES = {BF16: "bf16", FP16: "fp16", FP32: "fp32"}
UP = {BF16: 16, FP16: 13, FP32: 0}


def words_of(stream, mode, middle, spread):
    """Words of Dst with all fractions, ties among them, zeros, and in 32 bits whatever there is."""
    exponent = np.clip(stream.integers(middle - spread, middle + spread + 1, 1024), 1, 31 if mode == FP16 else 255)
    if mode == BF16:
        exponent = np.clip(exponent, 12, 221)
    fraction = stream.integers(0, 1 << 23, 1024)
    words = stream.integers(0, 2, 1024) << 31 | exponent << 23 | fraction
    words = np.where(stream.random(1024) < 0.1, 0, words)
    if mode == FP32:
        words = np.where(stream.random(1024) < 0.02, fraction | 1 << 31, words)  # denormal
    cut = {BF16: 0xFFFF0000, FP16: 0x8FFFE000, FP32: 0xFFFFFFFF}[mode]
    return (words & cut).astype(np.uint32)


def image_of(words, mode):
    if mode == FP16:
        return words >> np.uint32(16) & np.uint32(0x8000) | words >> np.uint32(13) & np.uint32(0x7FFF)
    return words >> np.uint32(UP[mode])


@pytest.mark.tiny
@pytest.mark.parametrize("way", list(SPILLS))
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    middle=st.sampled_from([4, 16, 100, 127, 150, 215, 254]),
    spread=st.sampled_from([0, 1, 3, 8, 20]),
)
def test_the_way_to_l1_and_back(way, seed, middle, spread):
    mode, held_as, df, register = way
    words = words_of(np.random.default_rng(seed), mode, middle, spread)
    name = NAMES[mode]
    stored = pack(image_of(words, mode).reshape(1, 1024), name, held_as, df, 0, 0, "wormhole_b0")
    family = "a" if mode == FP16 else "b"
    back = copy_to_dst(unpack(stored[0], df, register, "wormhole_b0", stored[1]), family, name, "wormhole_b0")
    mine = words.view(np.int32).copy()
    spill_in_place(mine, SPILLS[way])
    assert np.array_equal(image_of(mine.view(np.uint32), mode), back.reshape(1024))


@pytest.mark.tiny
@pytest.mark.parametrize("way", list(SPILLS))
def test_a_zero_is_a_zero_in_all_bits(way):
    words = np.where(np.arange(1024) % 3 > 0, 15 << 23, 0).astype(np.int32)
    spill_in_place(words, SPILLS[way])
    assert not words[::3].any()
    assert words[1::3].all()


@pytest.mark.parametrize(
    ("mode", "held_as", "df", "register", "source"),
    [
        ("bf16", "Bfp8_b", "Bfp8_b", "Bfp8_b", "Bfp8_b"),
        ("bf16", "Bfp8_b", "Bfp4_b", "Bfp8_b", "Float16_b"),
        ("fp16", "Float16", "Float16", "Float16", "Float16"),
        ("fp32", "Float32", "Float32", "Tf32", "Tf32"),
        ("fp32", "Float16_b", "Float16_b", "Float16_b", "Float16_b"),
    ],
)
def test_products_with_spills(mode, held_as, df, register, source):
    """One entry is too small for singles: its tiles go block by block."""
    stream = np.random.default_rng(8)
    mask = np.uint32(0xFFFFE000 if source in ("Tf32", "Float16") else 0xFFFF0000)
    rows, inner, cols = 3, 5, 2
    tiles = [stream.standard_normal((2, n, 1024)).astype(np.float32) for n in (rows * inner, inner * cols)]
    if mode != "fp16":
        tiles[0][1] *= np.float32(1e-37)
    words = [part.view(np.uint32) & mask for part in tiles]
    if mode == "fp16":
        words = [unpack(part.view(np.uint32), "Float32", "Float16", "wormhole_b0") for part in tiles]
    index = [np.arange(part.shape[1], dtype=np.int32) for part in words]
    in0, in1 = (Words(source, part, at, np.uint32(0)) for part, at in zip(words, index, strict=True))
    spill = Spill(np.array([False, True, False, True, True]), held_as, df, register)
    images = []
    for units in (ReferenceUnits("wormhole_b0"), KernelUnits("wormhole_b0")):
        dst = np.zeros((2, rows * cols, 1024), np.uint32)
        product = Product(rows, inner, cols, 2, "HiFi2")
        units.matmul(dst, range(1, 2 * rows * cols), ProductBlock((in0, in1), product, mode, range(inner), spill))
        images.append(dst)
    assert images[0].any()
    assert np.array_equal(*images)
