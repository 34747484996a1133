"""Scalar float formats against FORMATS 3, its rules restated for one pattern, and ml_dtypes where its rule equals."""

import ml_dtypes
import numpy as np
import pytest

from buda_emu.arithmetic.formats import quantise
from buda_emu.arithmetic.formats.bits import from_bits, to_bits
from buda_emu.arithmetic.formats.codecs import SCALAR_CODECS

ALL_16 = np.arange(1 << 16, dtype=np.uint32)
ALL_8 = np.arange(1 << 8, dtype=np.uint8)

# The table at the end of FORMATS 3: fp32 pattern -> Float16, Lf8, e4m3 by its own encode rule.
TABLE = """
3f800000 3c00 3c 38
bf800000 bc00 bc b8
3f8fffff 3c7f 3c 38
40490fdb 4248 42 44
c2f60000 d7b0 d7 ef
43800000 5c00 5c 78
43f00000 5f80 5f 7f
477fe000 7bff 7b 7f
47800000 7c00 7c 7f
47ffe000 7fff 7f 7f
48000000 7fff 7f 7f
7f800000 7fff 7f 7f
7fc00000 7fff 7f 7f
38800000 0400 04 00
387fffff 0000 00 00
b8000000 8000 80 80
3c800000 2400 24 08
3c000000 2000 20 00
"""
ROWS = [[int(word, 16) for word in line.split()] for line in TABLE.split("\n") if line]
# exponent bits, fraction bits of the formats without infinities
SMALL = {"Float16": (5, 10), "Lf8": (5, 2), "Fp8_e4m3": (4, 3)}


def encode_one(pattern: int, exponent_bits: int, fraction_bits: int) -> int:
    """FORMATS 3.4 to 3.6 for one pattern, in words: flush, saturate, else truncate."""
    bias = 2 ** (exponent_bits - 1) - 1
    sign, power, fraction = pattern >> 31, (pattern >> 23 & 0xFF) - 127, pattern & 0x7FFFFF
    if power <= -bias:
        magnitude = 0
    elif power > bias + 1:
        magnitude = 2 ** (exponent_bits + fraction_bits) - 1
    else:
        magnitude = (power + bias) << fraction_bits | fraction >> (23 - fraction_bits)
    return sign << (exponent_bits + fraction_bits) | magnitude


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]:08x}" for row in ROWS])
@pytest.mark.parametrize(("name", "column"), [("Float16", 1), ("Lf8", 2), ("Fp8_e4m3", 3)])
def test_table_of_the_facts(row, name, column):
    assert SCALAR_CODECS[name].encode(from_bits(np.array([row[0]], np.uint32))) == [row[column]]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("low_half", [0, 1, 0x8000, 0xFFFF])
def test_every_upper_half_encodes_by_the_rule(name, low_half):
    patterns = ALL_16 << np.uint32(16) | np.uint32(low_half)
    expected = [encode_one(int(pattern), *SMALL[name]) for pattern in patterns]
    assert SCALAR_CODECS[name].encode(from_bits(patterns)).tolist() == expected


@pytest.mark.parametrize("name", SMALL)
def test_every_code_round_trips_but_for_exponent_zero(name):
    exponent_bits, fraction_bits = SMALL[name]
    codes = np.arange(1 << (1 + exponent_bits + fraction_bits)).astype(SCALAR_CODECS[name].dtype)
    exponent = codes >> fraction_bits & ((1 << exponent_bits) - 1)
    sign = codes & (1 << (exponent_bits + fraction_bits))
    values = SCALAR_CODECS[name].decode(codes)
    assert np.isfinite(values).all()
    assert (SCALAR_CODECS[name].encode(values) == np.where(exponent == 0, sign, codes)).all()


@pytest.mark.parametrize("name", SMALL)
def test_decoded_values_are_sign_times_fraction_times_power(name):
    exponent_bits, fraction_bits = SMALL[name]
    codes = np.arange(1 << (1 + exponent_bits + fraction_bits)).astype(SCALAR_CODECS[name].dtype)
    wide = codes.astype(np.int64)
    exponent, fraction = wide >> fraction_bits & ((1 << exponent_bits) - 1), wide & ((1 << fraction_bits) - 1)
    power = exponent - (2 ** (exponent_bits - 1) - 1)
    expected = np.where(wide >> (exponent_bits + fraction_bits), -1, 1) * (1 + fraction / 2**fraction_bits) * 2.0**power
    normal = exponent > 0
    values = SCALAR_CODECS[name].decode(codes)
    assert (values[normal] == expected[normal]).all()
    assert (np.abs(values[~normal]) < 2.0**-126).all()
    # exponent 0 of the single with the fraction bits copied
    assert (to_bits(values[~normal]) & 0x7FFFFFFF == fraction[~normal] << (23 - fraction_bits)).all()


def test_float16_agrees_with_ieee_where_both_are_normal():
    # IEEE has denormals (exponent 0) and infinities and NaNs (exponent 31), this format has neither.
    codes = ALL_16.astype(np.uint16)
    exponent = codes >> 10 & 31
    both = (exponent > 0) & (exponent < 31)
    assert (SCALAR_CODECS["Float16"].decode(codes)[both] == codes.view(np.float16).astype(np.float32)[both]).all()


@pytest.mark.parametrize(
    ("name", "oracle", "fraction_bits", "not_shared"),
    [
        # float8_e5m2 has denormals and, at exponent 31, infinities and NaNs.
        ("Lf8", ml_dtypes.float8_e5m2, 2, {0, 31}),
        # float8_e4m3fn has denormals; its only special is the code of all ones, a NaN where this format says 480.
        ("Fp8_e4m3", ml_dtypes.float8_e4m3fn, 3, {0}),
    ],
)
def test_small_floats_agree_with_ml_dtypes_where_the_rule_is_the_same(name, oracle, fraction_bits, not_shared):
    exponent = (ALL_8 & 0x7F) >> fraction_bits
    shared = ~np.isin(exponent, list(not_shared)) & ~((ALL_8 & 0x7F == 0x7F) & (name == "Fp8_e4m3"))
    assert shared.sum() > 200
    expected = ALL_8.view(oracle).astype(np.float32)
    assert (SCALAR_CODECS[name].decode(ALL_8)[shared] == expected[shared]).all()


def test_fp8_e4m3_reaches_480():
    assert SCALAR_CODECS["Fp8_e4m3"].decode(np.array([0x7F, 0xFF], np.uint8)).tolist() == [480.0, -480.0]


def test_fp8_e4m3_tiles_are_written_by_the_lf8_encoder():
    values = np.array([1.0, 2.0, 0.5, -1.0], np.float32)
    assert quantise("Fp8_e4m3", values).tolist() == [1.5, 2.0, 1.0, -1.5]  # FORMATS 3.6


def test_bfloat16_codes_are_those_of_ml_dtypes():
    codes = ALL_16.astype(np.uint16)
    values = SCALAR_CODECS["Float16_b"].decode(codes)
    assert (SCALAR_CODECS["Float16_b"].encode(values) == codes).all()
    oracle = codes.view(ml_dtypes.bfloat16).astype(np.float32)
    ordinary = ~np.isnan(oracle)
    assert (to_bits(values)[ordinary] == to_bits(oracle)[ordinary]).all()
    assert np.isnan(values[~ordinary]).all()


def test_bfloat16_truncates_where_ml_dtypes_rounds():
    value = from_bits(np.array([0x3F80FFFF], np.uint32))
    assert SCALAR_CODECS["Float16_b"].encode(value).tolist() == [0x3F80]
    assert value.astype(ml_dtypes.bfloat16).view(np.uint16).tolist() == [0x3F81]


@pytest.mark.parametrize(("name", "mask"), [("Tf32", 0xFFFFE000), ("Float16_b", 0xFFFF0000), ("Float32", 0xFFFFFFFF)])
@pytest.mark.parametrize("low_half", [0, 1, 0x1FFF, 0x2000, 0xFFFF])
def test_wide_formats_cut_low_bits_of_every_pattern(name, mask, low_half):
    patterns = ALL_16 << np.uint32(16) | np.uint32(low_half)
    assert (to_bits(quantise(name, from_bits(patterns))) == patterns & np.uint32(mask)).all()


def test_tf32_turns_a_nan_with_only_low_payload_into_an_infinity():
    assert np.isposinf(quantise("Tf32", from_bits(np.array([0x7F800001], np.uint32)))).all()
