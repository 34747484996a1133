"""Integer formats and raw words against FORMATS 3.7 to 3.9 and OPS 4.3, 4.4."""

import decimal
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.arithmetic.formats import quantise
from buda_emu.arithmetic.formats.bits import from_bits, to_bits
from buda_emu.arithmetic.formats.codecs import SCALAR_CODECS

FLOATS = st.floats(width=32, allow_nan=False)
NAN = math.nan


def half_away(value: float) -> int:
    """Exact rounding by decimal arithmetic."""
    return int(decimal.Decimal(value).to_integral_value(decimal.ROUND_HALF_UP))


def codes(name, *values):
    return SCALAR_CODECS[name].encode(np.array(values, np.float32)).tolist()


def through(name, *values):
    return quantise(name, np.array(values, np.float32)).tolist()


def test_examples_of_the_facts():
    assert codes("Int8", 2.5, -0.5, -123.0, 127.25, 480) == [0x03, 0x81, 0xFB, 0x7F, 0x7F]
    assert codes("UInt8", 256, -1) == [0xFF, 0x00]


@pytest.mark.parametrize(
    ("pattern", "int8", "uint8"),
    [
        (0x3F800000, 0x01, 0x01),
        (0xBF800000, 0x81, 0x00),
        (0x3F8FFFFF, 0x01, 0x01),
        (0x40490FDB, 0x03, 0x03),
        (0xC2F60000, 0xFB, 0x00),
        (0x43800000, 0x7F, 0xFF),
        (0x43F00000, 0x7F, 0xFF),
        (0x477FE000, 0x7F, 0xFF),
        (0x48000000, 0x7F, 0xFF),
        (0x38800000, 0x00, 0x00),
        (0xB8000000, 0x00, 0x00),
        (0x3C000000, 0x00, 0x00),
    ],
)
def test_table_of_the_facts(pattern, int8, uint8):
    value = from_bits(np.array([pattern], np.uint32))
    assert SCALAR_CODECS["Int8"].encode(value).tolist() == [int8]
    assert SCALAR_CODECS["UInt8"].encode(value).tolist() == [uint8]


def test_int8_round_trip():
    # OPS 4.3 and 12
    assert through("Int8", -0.3, 2.5, -2.5, 200, -200, 127.49, -128) == [0, 3, -3, 127, -127, 127, -127]
    assert to_bits(quantise("Int8", np.array([-0.3, -0.0], np.float32))).tolist() == [0, 0]  # the sign is lost
    assert through("Int8", math.inf, -math.inf, NAN) == [127, -127, 0]


def test_int32_is_asymmetric():
    # OPS 4.4: up to zero truncated, below zero rounded half away
    assert through("Int32", 2.7, -2.7, -2.5, -2.4, 2.5, 0.99, -0.5) == [2, -3, -3, -2, 2, 0, -1]
    assert codes("Int32", -2.7, 2.7, -0.3, -0.0) == [0x80000003, 2, 0x80000000, 0]
    assert through("Int32", 16777216, -16777218, 2147483520, -2147483520) == [
        16777216,
        -16777218,
        2147483520,
        -2147483520,
    ]


def test_int32_outside_of_its_range_is_what_x86_gives():
    assert through("Int32", 2.0**31, -(2.0**31), -(2.0**40), 2.0**32, math.inf, -math.inf, NAN) == [0] * 7
    assert through("Int32", 2.0**31 + 256, 2.0**32 + 512, 2.0**63) == [-256, 512, 0]


def test_minus_zero_codes_decode_to_plus_zero():
    assert to_bits(SCALAR_CODECS["Int8"].decode(np.array([0x80], np.uint8))).tolist() == [0]
    assert to_bits(SCALAR_CODECS["Int32"].decode(np.array([0x80000000], np.uint32))).tolist() == [0]


@pytest.mark.parametrize("name", ["Int8", "UInt8", "UInt16"])
def test_every_code_round_trips(name):
    all_codes = np.arange(1 << (16 if name == "UInt16" else 8)).astype(np.uint16 if name == "UInt16" else np.uint8)
    values = SCALAR_CODECS[name].decode(all_codes)
    minus_zero = (all_codes == 0x80) & (name == "Int8")
    assert (SCALAR_CODECS[name].encode(values) == np.where(minus_zero, 0, all_codes)).all()
    assert sorted(set(values.tolist())) == list(range(-127, 128) if name == "Int8" else range(len(all_codes)))


@pytest.mark.parametrize(("name", "low", "high"), [("Int8", -127, 127), ("UInt8", 0, 255), ("UInt16", 0, 65535)])
@given(value=FLOATS)
def test_rounding_is_half_away_then_clamped(name, low, high, value):
    expected = min(max(half_away(value), low), high) if math.isfinite(value) else (high if value > 0 else low)
    assert through(name, value) == [expected]


@pytest.mark.parametrize("name", ["Int8", "UInt8", "UInt16"])
def test_just_below_a_half_is_not_rounded_up(name):
    below = np.nextafter(np.float32(0.5), np.float32(0))
    assert through(name, below, 0.5, np.nextafter(np.float32(1.5), np.float32(0))) == [0, 1, 1]


@given(value=FLOATS.filter(lambda value: abs(value) < 2.0**31))
def test_int32_rule(value):
    assert through("Int32", value) == [float(np.float32(int(value) if value >= 0 else half_away(value)))]


@given(pattern=st.integers(0, 2**32 - 1))
def test_raw_words_keep_their_low_bits(pattern):
    word = from_bits(np.array([pattern], np.uint32))
    for bits in (8, 16, 32):
        assert to_bits(quantise(f"RawUInt{bits}", word)).tolist() == [pattern % 2**bits]
