"""What holds of tile products on the chip: the sizes of their errors (DEVICE_NUMERICS 6.4), and some laws."""

import numpy as np
import pytest

from buda_emu.kernels.tensix.tile_matmul import matmul_tiles
from buda_emu.tensix.fidelity import phase_mask
from buda_emu.tensix.unpack import unpack
from buda_emu.tensix.words import kernel_setting, to_word
from register_words import PAIRINGS, family

INNER = 2  # tiles: the text's errors are those of K = 64


def product(in0, in1, register, mode, fidelity):
    """The Dst images of in0 [R * INNER, 1024] words x in1 [INNER * C, 1024] words."""
    rows, cols = len(in0) // INNER, len(in1) // INNER
    dst = np.zeros((1, rows * cols, 1024), np.uint32)
    operands = []
    for words in (in0, in1):
        operands += [words[None], np.arange(len(words), dtype=np.int32), np.uint32(0)]
    setting = kernel_setting(family(register), mode, "wormhole_b0")
    shape = (False, 1, rows, INNER, cols, 0, INNER, 2, phase_mask(fidelity))
    matmul_tiles(0, rows * cols, dst, *operands, *shape, *setting, False)
    return dst[0]


def normal_words(tiles, register, seed):
    values = np.random.default_rng(seed).standard_normal((tiles, 1024)).astype(np.float32)
    return unpack(values.view(np.uint32), "Float32", register, "wormhole_b0")


def values_of(words, register):
    """float64 of Src words; without exponents 0."""
    if register == "Float16":
        words = np.where(words & np.uint32(0x7F80_0000) == 0, 0, words + np.uint32(112 << 23)).astype(np.uint32)
    return words.view(np.float32).astype(np.float64)


def rms_error(register, mode, fidelity):
    in0, in1 = normal_words(4 * INNER, register, 1), normal_words(4 * INNER, register, 2)
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
def test_more_phases_are_no_worse(register, mode):
    errors = [rms_error(register, mode, fidelity) for fidelity in ("LoFi", "HiFi2", "HiFi3", "HiFi4")]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize(("register", "mode"), PAIRINGS)
@pytest.mark.parametrize("fidelity", ["LoFi", "HiFi3"])
def test_a_power_of_two_scales_the_result(register, mode, fidelity):
    in0, in1 = normal_words(INNER, register, 3), normal_words(INNER, register, 4)
    near_one = in1 & np.uint32(0x807F_E000) | np.uint32((14 if register == "Float16" else 126) << 23)
    once = product(in0, near_one, register, mode, fidelity)
    twice = product(in0, near_one + np.uint32(1 << 23), register, mode, fidelity)
    step = {"bf16": 1 << 7, "fp16": 1 << 10, "fp32": 1 << 23}[mode]
    assert np.count_nonzero(once) > 1000
    assert np.array_equal(np.where(once == 0, 0, once + np.uint32(step)), twice)


@pytest.mark.parametrize(("register", "mode"), PAIRINGS)
def test_columns_and_rows_are_independent(register, mode):
    in0, in1 = normal_words(INNER, register, 5), normal_words(INNER, register, 6)
    order = np.random.default_rng(7).permutation(32)
    plain = product(in0, in1, register, mode, "HiFi4").reshape(32, 32)
    columns = np.ascontiguousarray(in1.reshape(INNER, 32, 32)[:, :, order]).reshape(INNER, 1024)
    assert np.array_equal(product(in0, columns, register, mode, "HiFi4").reshape(32, 32), plain[:, order])
    rows = np.ascontiguousarray(in0.reshape(INNER, 32, 32)[:, order]).reshape(INNER, 1024)
    assert np.array_equal(product(rows, in1, register, mode, "HiFi4").reshape(32, 32), plain[order])


@pytest.mark.parametrize(("register", "mode"), PAIRINGS)
def test_a_tile_of_zeros_gives_zeros(register, mode):
    zeros = np.zeros((INNER, 1024), np.uint32)
    zeros[:, ::2] = 0x8000_0000
    assert not product(normal_words(INNER, register, 8), zeros, register, mode, "HiFi4").any()
    assert not product(zeros, normal_words(INNER, register, 8), register, mode, "HiFi4").any()
