"""What holds of tile products on the chip: the sizes of their errors (DEVICE_NUMERICS 6.4), and some laws."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.kernels.tensix.products.tile_matmul import matmul_tiles
from buda_emu.arithmetic.tensix.conversions.unpack import unpack
from buda_emu.arithmetic.tensix.products import phase_mask
from buda_emu.arithmetic.tensix.registers import kernel_setting, to_word
from register_words import PAIRINGS, family
from tile_products import product_of

INNER = 2  # tiles: the text's errors are those of K = 64
SEEDS = st.integers(0, 1 << 20)
some = settings(max_examples=8, deadline=None)


def product(in0, in1, register, mode, fidelity):
    """The Dst images of in0 [R * INNER, 1024] words x in1 [INNER * C, 1024] words."""
    rows, cols = len(in0) // INNER, len(in1) // INNER
    dst = np.zeros((1, rows * cols, 1024), np.uint32)
    operands = []
    for words in (in0, in1):
        operands += [words[None], np.arange(len(words), dtype=np.int32), np.uint32(0)]
    setting = kernel_setting(family(register), mode, "wormhole_b0")
    shape = (False, 1, rows, INNER, cols, 0, INNER, 2, phase_mask(fidelity))
    matmul_tiles(0, rows * cols, dst, product_of(*operands, *shape, *setting, False))
    return dst[0]


def normal_words(tiles, register, seed):
    values = np.random.default_rng(seed).standard_normal((tiles, 1024)).astype(np.float32)
    return unpack(values.view(np.uint32), "Float32", register, "wormhole_b0")


def values_of(words, register):
    """float64 of Src words; without exponents 0."""
    if register == "Float16":
        words = np.where(words & np.uint32(0x7F80_0000) == 0, 0, words + np.uint32(112 << 23)).astype(np.uint32)
    return words.view(np.float32).astype(np.float64)


def rms_error(register, mode, fidelity, seed=1):
    in0, in1 = normal_words(4 * INNER, register, seed), normal_words(4 * INNER, register, seed + 1)
    shown = values_of(
        to_word(product(in0, in1, register, mode, fidelity), mode), register if mode == "fp16" else "Tf32"
    )
    a = values_of(in0, register).reshape(4, INNER, 32, 32)
    b = values_of(in1, register).reshape(INNER, 4, 32, 32)
    exact = np.einsum("rkij,kcjl->rcil", a, b).reshape(shown.shape)
    return float(np.sqrt(np.mean((shown - exact) ** 2)))


@pytest.mark.parametrize(
    ("register", "mode", "fidelity", "low", "high"),
    [
        *[(*pairing, "LoFi", 0.22, 0.22) for pairing in PAIRINGS],
        *[(*pairing, "HiFi2", 0.03, 0.05) for pairing in PAIRINGS],
        *[(*pairing, "HiFi2_B", 0.20, 0.20) for pairing in PAIRINGS],
        *[("Float16_b", "fp32", fidelity, 0.0026, 0.0026) for fidelity in ("HiFi3", "HiFi4")],
        *[("Tf32", "fp32", fidelity, 0.0045, 0.0045) for fidelity in ("HiFi3", "HiFi4")],
        *[("Float16", "fp16", fidelity, 0.0084, 0.0084) for fidelity in ("HiFi3", "HiFi4")],
        *[("Float16_b", "bf16", fidelity, 0.040, 0.040) for fidelity in ("HiFi3", "HiFi4")],
    ],
)
def test_errors_have_the_expected_size(register, mode, fidelity, low, high):
    assert 0.8 * low <= rms_error(register, mode, fidelity) <= 1.2 * high


@pytest.mark.parametrize(("register", "mode"), PAIRINGS)
@some
@given(seed=SEEDS)
def test_more_phases_are_no_worse(register, mode, seed):
    """On average, but for chance: a Dst of bf16 leaves nothing of what the third and the fourth phase bring."""
    errors = [rms_error(register, mode, fidelity, seed) for fidelity in ("LoFi", "HiFi2", "HiFi3", "HiFi4")]
    assert errors[3] < errors[0]
    assert all(more <= 1.02 * fewer for fewer, more in pairwise(errors))


@pytest.mark.parametrize(("register", "mode"), PAIRINGS)
@pytest.mark.parametrize("fidelity", ["LoFi", "HiFi3"])
@some
@given(seed=SEEDS, power=st.integers(1, 4))
def test_a_power_of_two_scales_the_result(register, mode, fidelity, seed, power):
    in0, in1 = normal_words(INNER, register, seed), normal_words(INNER, register, seed + 1)
    if mode == "fp16":  # so large that no sum falls below the least exponent: see the next test
        in0 = in0 & np.uint32(0x807F_E000) | np.uint32(19 << 23)
    near_one = in1 & np.uint32(0x807F_E000) | np.uint32((14 if register == "Float16" else 126) << 23)
    once = product(in0, near_one, register, mode, fidelity)
    scaled = product(in0, near_one + np.uint32(power << 23), register, mode, fidelity)
    step = power * {"bf16": 1 << 7, "fp16": 1 << 10, "fp32": 1 << 23}[mode]
    assert np.count_nonzero(once) > 1000
    assert np.array_equal(np.where(once == 0, 0, once + np.uint32(step)), scaled)


def test_what_falls_below_the_least_exponent_of_fp16_is_lost():
    """Products or sums of exponent 0 or less are +0 (DEVICE_NUMERICS 2.2, 2.3), whatever is added later: with four
    times the operand they are kept."""
    in0, in1 = normal_words(INNER, "Float16", 158), normal_words(INNER, "Float16", 159)
    near_one = in1 & np.uint32(0x807F_E000) | np.uint32(14 << 23)
    once = product(in0, near_one, "Float16", "fp16", "HiFi3")
    scaled = product(in0, near_one + np.uint32(2 << 23), "Float16", "fp16", "HiFi3")
    (place,) = np.flatnonzero(np.where(once == 0, 0, once + np.uint32(2 << 10)) != scaled)
    assert (once.flat[place], scaled.flat[place]) == (0xA008, 0xA805)


@pytest.mark.parametrize(("register", "mode"), PAIRINGS)
@some
@given(seed=SEEDS, order=st.permutations(range(32)))
def test_columns_and_rows_are_independent(register, mode, seed, order):
    in0, in1 = normal_words(INNER, register, seed), normal_words(INNER, register, seed + 1)
    plain = product(in0, in1, register, mode, "HiFi4").reshape(32, 32)
    columns = np.ascontiguousarray(in1.reshape(INNER, 32, 32)[:, :, order]).reshape(INNER, 1024)
    assert np.array_equal(product(in0, columns, register, mode, "HiFi4").reshape(32, 32), plain[:, order])
    rows = np.ascontiguousarray(in0.reshape(INNER, 32, 32)[:, order]).reshape(INNER, 1024)
    assert np.array_equal(product(rows, in1, register, mode, "HiFi4").reshape(32, 32), plain[order])


@pytest.mark.parametrize(("register", "mode"), PAIRINGS)
@pytest.mark.parametrize("fidelity", ["LoFi", "HiFi4"])
@some
@given(seed=SEEDS)
def test_a_tile_of_zeros_gives_zeros(register, mode, fidelity, seed):
    """Zeros of either sign leave Dst as it is, bit for bit."""
    zeros = np.zeros((INNER, 1024), np.uint32)
    zeros[:, ::2] = 0x8000_0000
    words = normal_words(INNER, register, seed)
    assert not product(words, zeros, register, mode, fidelity).any()
    assert not product(zeros, words, register, mode, fidelity).any()
    half = words.copy()
    half[1] = 0  # the second of two inner tiles
    once = product(half, words, register, mode, fidelity)
    assert np.array_equal(product(half, np.concatenate((words[:1], zeros[:1])), register, mode, fidelity), once)
    assert once.any()
