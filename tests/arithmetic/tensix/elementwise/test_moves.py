import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.kernels.tensix.elementwise import copy_to_dst_tiles, move_to_src_tiles
from buda_emu.arithmetic.kernels.tensix.words import MODES as MODE_CODES
from buda_emu.arithmetic.tensix.elementwise import KEPT, copy_to_dst, move_to_dst, move_to_src
from buda_emu.arithmetic.tensix.registers import kernel_setting
from buda_emu.support.errors import UnsupportedError
from device_vectors import mismatches, needs_vectors, vectors
from register_words import KINDS, PAIRINGS, dst_image, family, src_words


def by_kernel(kernel, words, *setting):
    """The kernel on an array of any shape, in the first part of as many tiles as it takes."""
    tiles = np.zeros((-(-words.size // 1024), 1024), np.uint32)
    tiles.reshape(-1)[: words.size] = words.ravel()
    out = np.full_like(tiles, 0xABCD)
    kernel(0, len(tiles), out, tiles, *setting)
    return out.ravel()[: words.size].reshape(words.shape)


@needs_vectors
@pytest.mark.parametrize(("case", "mode"), [("bf16", "bf16"), ("fp16", "fp16"), ("tf32_dst32", "fp32")])
def test_vectors_to_dst(case, mode):
    v = vectors("moves_pool")
    given, expected = v[f"mova2d_{case}_src"], v[f"mova2d_{case}_dst"]
    assert mismatches(move_to_dst(given, mode), expected) == 0


@needs_vectors
@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize(
    ("case", "mode", "register"),
    [
        ("bf16", "bf16", "Float16_b"),
        ("fp16", "fp16", "Float16"),
        ("dst32_to_bf16", "fp32", "Float16_b"),
        ("dst32_to_tf32", "fp32", "Tf32"),
    ],
)
def test_vectors_to_src(side, case, mode, register):
    v = vectors("moves_pool")
    given, expected = v[f"movd2{side}_{case}_dst"], v[f"movd2{side}_{case}_src"]
    assert mismatches(move_to_src(given, mode, register), expected) == 0
    setting = MODE_CODES[mode], KEPT[register]
    assert mismatches(by_kernel(move_to_src_tiles, given, *setting), expected) == 0


@pytest.mark.tiny
@pytest.mark.parametrize(
    ("family", "mode", "given", "expected"),
    [
        ("b", "bf16", 0x8000_0000, 0),
        ("b", "bf16", 0x807F_0000, 0),
        ("b", "bf16", 0xFFC1_0000, 0xFFC1),
        ("a", "fp16", 0x8000_0000 | 31 << 23 | 0x3FF << 13, 0xFFFF),
        ("b", "fp32", 0x3F80_2000, 0x3F80_2000),
        ("b", "fp32", 0x8000_0000, 0),
        ("b", "fp32", 0x8040_0000, 0),
        ("b", "fp32", 0xFFC0_2000, 0xFF80_0000),
        ("a", "fp32", 0x8000_0000 | 31 << 23 | 0x3FF << 13, 0x8000_0000 | 143 << 23 | 0x3FF << 13),
    ],
)
def test_copies_by_the_text(family, mode, given, expected):
    out = copy_to_dst(np.array([given], np.uint32), family, mode, "wormhole_b0")
    assert [hex(x) for x in out] == [hex(expected)]


@pytest.mark.tiny
def test_fp16_does_not_come_out_of_a_wide_dst():
    with pytest.raises(UnsupportedError, match="Float16"):
        move_to_src(np.zeros(4, np.uint32), "fp32", "Float16")


@pytest.mark.tiny
@settings(max_examples=24, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), pairing=st.sampled_from(PAIRINGS), kind=st.sampled_from(KINDS))
def test_kernels_are_the_reference(seed, pairing, kind):
    stream = np.random.default_rng(seed)
    register, mode = pairing
    setting = kernel_setting(family(register), mode, "wormhole_b0")
    words = src_words(stream, (2, 32, 32), register, kind)
    copied = copy_to_dst(words, family(register), mode, "wormhole_b0")
    assert mismatches(by_kernel(copy_to_dst_tiles, words, *setting[:2]), copied) == 0
    if (register, mode) != ("Float16", "fp32"):
        image = dst_image(stream, (2, 32, 32), mode, kind)
        out = by_kernel(move_to_src_tiles, image, setting[0], KEPT[register])
        assert mismatches(out, move_to_src(image, mode, register)) == 0
