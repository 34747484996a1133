"""One step of each format: expected units are worked out from FORMATS 1 by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.numerics import quantise
from buda_emu.numerics.ulp import ulp
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
