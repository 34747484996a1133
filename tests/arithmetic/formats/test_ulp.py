"""One step of each format: expected units are worked out from FORMATS 1 by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.arithmetic.formats import quantise
from buda_emu.arithmetic.formats.bits import ulp
from buda_emu.spec.formats import FORMATS


def tile(*values, fill=0.0):
    out = np.full((32, 32), fill, np.float32)
    out[0, : len(values)] = values
    return out


@pytest.mark.parametrize(
    ("format_name", "value", "unit"),
    [
        ("Float32", 1.0, 2.0**-23), ("Float32", 1.999, 2.0**-23), ("Float32", 2.0, 2.0**-22),
        ("Float32", 0.0, 2.0**-149), ("Float32", np.inf, 2.0**104), ("Float32", np.nan, 2.0**104),
        ("Float16_b", 1.0, 2.0**-7), ("Float16_b", -3.0, 2.0**-6),
        ("Float16", 1.0, 2.0**-10), ("Float16", 2.0**-20, 2.0**-24),
        ("Tf32", 1.0, 2.0**-10),
        ("Int8", 100.0, 1.0), ("Int32", 3.0, 1.0), ("UInt16", 9.0, 1.0), ("RawUInt32", 7.0, 1.0),
    ],
)  # fmt: skip
def test_units_by_hand(format_name, value, unit):
    assert ulp(tile(value), format_name)[0, 0] == unit


@pytest.mark.parametrize(("format_name", "bits"), [("Bfp8_b", 7), ("Bfp4_b", 3), ("Bfp2_b", 1), ("Bfp8", 7)])
def test_a_block_shares_the_unit_of_its_largest(format_name, bits):
    units = ulp(tile(1.0, 4.5, 0.001), format_name)
    # exponent 2 of 4.5; the leading one is one of the bits
    assert (units[0, :16] == 2.0 ** (2 - (bits - 1))).all()
    assert units[0, 16] < units[0, 0]


@given(st.sampled_from(["Float32", "Float16_b", "Float16", "Tf32"]), st.floats(0.0078125, 1000, width=32))
def test_it_is_the_step_of_the_encoding(format_name, value):
    """The values a unit below and above are in the format, those between are not."""
    held = quantise(format_name, tile(value)[None])[0]
    unit = ulp(held, format_name)[0, 0]
    above = tile(*(held[0, 0] + unit * step for step in (0, 1)))
    assert (quantise(format_name, above[None])[0][0, :2] == above[0, :2]).all()
    if format_name != "Float32":
        between = tile(held[0, 0] + 0.5 * unit)
        assert quantise(format_name, between[None])[0][0, 0] != between[0, 0]


@given(st.sampled_from(sorted(FORMATS)), st.integers(0, 2**32 - 1))
def test_it_is_positive_and_finite_for_every_word(format_name, word):
    units = ulp(np.full((32, 32), word, np.uint32).view(np.float32), format_name)
    assert (units > 0).all()
    assert np.isfinite(units).all()


# ------------------------------------------------------------------------------------------------------- distance
# |a - b| in units of the larger magnitude, as a run's figures of every op have it.
FLOATS = sorted(name for name, spec in FORMATS.items() if spec.kind == "float")
BLOCKS = sorted(name for name, spec in FORMATS.items() if spec.kind == "block")
SEEDS = st.integers(0, 2**32 - 1)


def distance(a, b, format_name):
    larger = np.where(np.abs(b) > np.abs(a), b, a)
    return np.abs(a.astype(np.float64) - b) / ulp(larger, format_name)


def held(format_name, seed):
    """A tile of values that the format holds, from 2^-5 to 2^5."""
    stream = np.random.default_rng(seed)
    values = np.ldexp(stream.uniform(1, 2, (1, 32, 32)), stream.integers(-5, 5, (1, 32, 32)))
    return quantise(format_name, (values * stream.choice([-1, 1], values.shape)).astype(np.float32))[0]


@given(st.sampled_from(FLOATS + BLOCKS), SEEDS, SEEDS)
def test_the_distance_is_symmetric_and_zero_for_equals_alone(format_name, seed, other):
    a, b = held(format_name, seed), held(format_name, other)
    assert (distance(a, b, format_name) == distance(b, a, format_name)).all()
    assert ((distance(a, b, format_name) == 0) == (a == b)).all()
    assert (distance(a, a, format_name) == 0).all()


@given(st.sampled_from(FLOATS), SEEDS)
def test_neighbours_are_one_apart_and_half_a_step_below_a_power_of_two(format_name, seed):
    # A fraction of n bits: the neighbour above is 2^(e - n) further, where e is the exponent by frexp less one.
    low = np.abs(held(format_name, seed))
    bits = FORMATS[format_name].mantissa_bits
    _, exponent = np.frexp(low)
    high = (low + np.ldexp(1.0, exponent - 1 - bits)).astype(np.float32)
    at_power = np.frexp(high)[0] == 0.5
    assert (distance(low, high, format_name) == np.where(at_power, 0.5, 1.0)).all()
    assert (distance(-high, -low, format_name) == np.where(at_power, 0.5, 1.0)).all()
    if format_name != "Fp8_e4m3":  # which the reference packs as Lf8: not a rounding (FORMATS 3.6)
        assert (quantise(format_name, high[None])[0] == high).all()  # it is in the format,
        if format_name != "Float32":
            between = ((low.astype(np.float64) + high) / 2).astype(np.float32)
            assert (quantise(format_name, between[None])[0] != between).all()  # and nothing between is


@given(st.sampled_from(BLOCKS), SEEDS)
def test_neighbours_in_a_block_are_one_apart(format_name, seed):
    # Each block starts with 2^5: its magnitudes are whole multiples of 2^(5 - (bits - 1)), less than 2^bits.
    bits = FORMATS[format_name].mantissa_bits
    step = 2.0 ** (5 - (bits - 1))
    whole = np.random.default_rng(seed).integers(0, 2**bits - 1, (32, 32))
    whole[:, ::16] = 2 ** (bits - 1)
    low, high = (whole * step).astype(np.float32), ((whole + 1) * step).astype(np.float32)
    high[:, ::16] = low[:, ::16]
    expected = np.ones((32, 32))
    expected[:, ::16] = 0.0
    assert (quantise(format_name, low[None])[0] == low).all()
    assert (quantise(format_name, high[None])[0] == high).all()
    assert (distance(low, high, format_name) == expected).all()


@pytest.mark.parametrize(
    ("format_name", "least", "most"),
    [
        # the unit of the least normal, of exponent 1 - bias (a block: -bias), and of the largest value
        ("Float32", 2.0**-149, 2.0**104), ("Float16_b", 2.0**-133, 2.0**120), ("Tf32", 2.0**-136, 2.0**117),
        ("Float16", 2.0**-24, 2.0**6),  # exponent 31 is ordinary: up to 2^16
        ("Lf8", 2.0**-16, 2.0**14), ("Fp8_e4m3", 2.0**-9, 2.0**5),
        ("Bfp8", 2.0**-21, 2.0**10), ("Bfp2", 2.0**-15, 2.0**16),
        ("UInt8", 1.0, 1.0), ("RawUInt16", 1.0, 1.0),
    ],
)  # fmt: skip
def test_units_end_where_the_format_does(format_name, least, most):
    for value in (0.0, 1e-45, -1e-45):
        assert ulp(tile(fill=value), format_name)[0, 0] == least
    for value in (3.4028235e38, -np.inf, np.nan):
        units = ulp(tile(fill=value), format_name)
        assert units[0, 0] == most, value


@pytest.mark.parametrize(("format_name", "bits"), [("Bfp8_b", 7), ("Bfp4_b", 3), ("Bfp2_b", 1)])
def test_a_block_with_an_infinity_shares_the_exponent_255(format_name, bits):
    units = ulp(tile(1.0, np.inf, fill=3e38), format_name)
    assert (units[0, :16] == 2.0 ** (128 - (bits - 1))).all()  # of the finite ones too (FORMATS 4)
    assert (units[0, 16:] == 2.0 ** (127 - (bits - 1))).all()
    assert ulp(tile(), format_name)[0, 0] == 2.0 ** (-127 - (bits - 1))
