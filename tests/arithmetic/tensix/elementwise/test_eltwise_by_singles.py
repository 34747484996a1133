"""Sums and products of tiles in singles against those in integers, and what is left to these."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.kernels.tensix.elementwise import (
    add_by_singles,
    elwadd_tiles,
    elwmul_tiles,
    multiply_by_singles,
)
from buda_emu.arithmetic.tensix.products import phase_mask
from buda_emu.arithmetic.tensix.registers import kernel_setting
from buda_emu.spec.precision import PHASES
from register_words import KINDS, PAIRINGS, family, src_words

TILES = 2


def few_fractions(stream, register, middle, spread):
    """Words among which ties and cancellations are frequent."""
    words = src_words(stream, (TILES, 1024), register, "normal") & np.uint32(0x80000000)
    exponent = np.clip(stream.integers(middle - spread, middle + spread + 1, words.shape), 0, 255)
    fraction = stream.choice(np.array([0, 1, 8, 16, 512, 1016, 1023, stream.integers(0, 1024)], np.uint32), words.shape)
    if register == "Float16_b":
        fraction &= np.uint32(0x3F8)
    if register == "Float16":
        exponent %= 32
    return words | exponent.astype(np.uint32) << np.uint32(23) | fraction << np.uint32(13)


def compare(a, b, register, mode, core, fidelity):
    """Whether tiles were left out, of each kind of op; all others are equal."""
    setting = kernel_setting(family(register), mode, core)
    seen = []
    for op in ("add", "subtract", "multiply"):
        dst, expected = np.full_like(a, 0x5555), np.zeros_like(a)
        left_out = np.zeros(TILES, np.bool_)
        if op == "multiply":
            multiply_by_singles(0, TILES, dst, a, b, phase_mask(fidelity), setting, left_out)
            elwmul_tiles(0, TILES, expected, a, b, phase_mask(fidelity), setting)
        else:
            add_by_singles(0, TILES, dst, a, b, op == "subtract", setting, left_out)
            elwadd_tiles(0, TILES, expected, a, b, op == "subtract", False, setting)
        assert np.array_equal(dst[~left_out], expected[~left_out]), op
        seen.append(bool(left_out.any()))
    return seen


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    pairing=st.sampled_from(PAIRINGS),
    kind=st.sampled_from((*KINDS, "few")),
    middles=st.tuples(*[st.integers(5, 254)] * 2),
    spread=st.sampled_from([0, 1, 3, 8, 14]),
    fidelity=st.sampled_from(sorted(PHASES)),
    core=st.sampled_from(["wormhole_b0", "blackhole"]),
)
def test_both_kernels_agree(seed, pairing, kind, middles, spread, fidelity, core):
    stream = np.random.default_rng(seed)
    register, mode = pairing
    if kind == "few":
        a, b = (few_fractions(stream, register, middle, spread) for middle in middles)
        b = np.where(stream.random(b.shape) < 0.2, a ^ np.uint32(0x80000000), b)
    else:
        a, b = (src_words(stream, (TILES, 1024), register, kind) for _ in range(2))
    compare(a, b, register, mode, core, fidelity)


@pytest.mark.parametrize(("register", "mode"), PAIRINGS)
def test_ordinary_numbers_are_taken(register, mode):
    stream = np.random.default_rng(2)
    a, b = (src_words(stream, (TILES, 1024), register, "normal") for _ in range(2))
    a[0, :100] = 0
    b[0, 50:150] &= np.uint32(0x807FFFFF)  # no exponent
    assert compare(a, b, register, mode, "wormhole_b0", "HiFi4") == [False, False, False]


@pytest.mark.parametrize(
    ("exponents", "left_out"),
    [((1, 1), [True, True, True]), ((255, 127), [True, True, True]), ((60, 70), [False, False, True])],
)
def test_what_is_left_to_integers(exponents, left_out):
    a, b = (np.full((TILES, 1024), exponent << 23, np.uint32) for exponent in exponents)
    assert compare(a, b, "Float16_b", "bf16", "wormhole_b0", "LoFi") == left_out


def test_infinities_times_zeros():
    stream = np.random.default_rng(4)
    a, b = (src_words(stream, (TILES, 1024), "Float16_b", "normal") for _ in range(2))
    a[:, ::7], b[:, ::5] = 0xFF800000, 0
    assert compare(a, b, "Float16_b", "bf16", "wormhole_b0", "HiFi2") == [True, True, True]
    assert compare(b, a, "Float16_b", "fp32", "wormhole_b0", "HiFi2") == [True, True, True]


@pytest.mark.tiny
@pytest.mark.parametrize(("register", "mode"), [("Float16", "fp16"), ("Tf32", "fp32")])
def test_in_plain_python_too(register, mode):
    stream = np.random.default_rng(3)
    a, b = (src_words(stream, (TILES, 1024), register, "wide") for _ in range(2))
    compare(a, b, register, mode, "wormhole_b0", "HiFi2")
