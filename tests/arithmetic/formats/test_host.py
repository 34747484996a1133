"""What the host reads and pushes (FORMATS 3.4, 3.10, 3.11)."""

import ml_dtypes
import numpy as np
import pytest

from buda_emu.arithmetic.formats import host_decode, host_read, host_widen, quantise
from buda_emu.arithmetic.formats.bits import from_bits, to_bits
from buda_emu.arithmetic.formats.host import host_dtype
from buda_emu.spec.formats import FORMATS, is_raw
from buda_emu.support.errors import HostError

HALVES = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)


def single(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def word(*patterns: int) -> np.ndarray:
    return from_bits(np.array(patterns, np.uint32))


@pytest.mark.parametrize("name", FORMATS)
def test_read_keeps_the_shape_and_has_the_stated_type(name):
    values = np.zeros((2, 3, 4), np.float32)
    elements = host_read(name, values)
    assert elements.shape == (2, 3, 4)
    assert elements.dtype == host_dtype(name)
    assert host_widen(name, elements).dtype == (np.uint32 if is_raw(name) else np.float32)


@pytest.mark.parametrize("name", ["Float16_b", "Bfp8_b", "Bfp4_b", "Bfp2_b", "Tf32"])
def test_b_formats_are_read_as_the_upper_half(name):
    assert host_read(name, word(0x3F80FFFF, 0x80000001, 0x7F800001)).tolist() == [0x3F80, 0x8000, 0x7F80]
    assert to_bits(host_widen(name, np.array([0x3F80, 0x8000], np.uint16))).tolist() == [0x3F800000, 0x80000000]


@pytest.mark.parametrize("name", ["Float16", "Bfp8", "Bfp4", "Bfp2", "Lf8", "Fp8_e4m3"])
def test_other_float_formats_are_read_as_halves(name):
    values = single(1.0, -1.5, 65504, 65536, 65599, 65600, 131008, 1e9, 2.0**-14, 2.0**-15, -(2.0**-15))
    read = host_read(name, values)
    assert read.tolist() == [0x3C00, 0xBE00, 0x7BFF, 0x7C00, 0x7C00, 0x7C01, 0x7FFF, 0x7FFF, 0x0400, 0, 0x8000]
    widened = host_widen(name, read)
    assert widened[:3].tolist() == [1.0, -1.5, 65504]
    assert np.isposinf(widened[3:5]).all()
    assert np.isnan(widened[5:8]).all()
    assert widened[8:].tolist() == [2.0**-14, 0, 0]


def test_integers_round_half_to_even_and_saturate():
    values = single(0.5, 1.5, 2.5, -0.5, -1.5, 300, -300, 1e9, -1e9, np.inf, -np.inf, np.nan)
    assert host_read("Int8", values).tolist() == [0, 2, 2, 0, -2, 127, -128, 127, -128, -128, -128, -128]
    assert host_read("UInt8", values).tolist() == [0, 2, 2, 0, 0, 255, 0, 0, 0, 0, 0, 0]
    assert host_read("UInt16", values).tolist() == [0, 2, 2, 0, 0, 300, 0, 65535, 0, 0, 0, 0]
    assert host_read("Int32", values)[5:9].tolist() == [300, -300, 1_000_000_000, -1_000_000_000]
    assert host_widen("Int32", np.array([-(2**31), 16777217], np.int32)).tolist() == [-(2.0**31), 16777216]


def test_integers_beyond_what_vector_instructions_hold():
    """FORMATS 3.11: the last values that saturate, and the first that do not."""
    edges = single(255.4, 32767.4, 32767.5, 65536, 2.0**31 - 128, 2.0**31, -(2.0**31), -3e9, np.inf)
    assert host_read("UInt8", edges).tolist() == [255, 255, 0, 0, 0, 0, 0, 0, 0]
    assert host_read("UInt16", edges).tolist() == [255, 32767, 32768, 65535, 65535, 0, 0, 0, 0]
    assert host_read("Int8", edges).tolist() == [127, 127, 127, 127, 127, -128, -128, -128, -128]
    assert host_read("Int32", edges)[3:].tolist() == [65536, 2**31 - 128, *[-(2**31)] * 4]
    assert host_read("Int32", from_bits(np.array([0x7F800001, 0xFFC00000], np.uint32))).tolist() == [-(2**31)] * 2


def test_raw_words_come_back_as_they_are():
    words = word(0x12345678, 0x7FA00001)  # the second is a signalling NaN
    assert host_widen("RawUInt32", host_read("RawUInt32", words)).tolist() == [0x12345678, 0x7FA00001]
    assert host_widen("RawUInt16", host_read("RawUInt16", words)).tolist() == [0x5678, 0x0001]
    assert host_widen("RawUInt8", host_read("RawUInt8", quantise("RawUInt8", words))).tolist() == [0x78, 0x01]


def test_host_halves_are_ieee():
    decoded = host_decode("Float16", HALVES.view(np.float16))
    oracle = HALVES.view(np.float16).astype(np.float32)
    ordinary = ~np.isnan(oracle)
    assert (to_bits(decoded)[ordinary] == to_bits(oracle)[ordinary]).all()
    assert np.isnan(decoded[~ordinary]).all()
    assert (to_bits(host_decode("Float16", HALVES)) == to_bits(decoded)).all()


def test_a_host_infinity_ends_as_the_largest_half():
    # FORMATS 3.4: host 0x7C00 ends as 0x7FFF
    assert host_read("Float16", quantise("Float16", host_decode("Float16", np.array([0x7C00], np.uint16)))) == [0x7FFF]


def test_host_bfloat16():
    decoded = host_decode("Float16_b", HALVES.view(ml_dtypes.bfloat16))
    assert (to_bits(decoded) == HALVES.astype(np.uint32) << 16).all()
    assert (to_bits(host_decode("Float16_b", HALVES)) == to_bits(decoded)).all()


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("Int8", np.int8), ("UInt8", np.uint8), ("UInt16", np.uint16), ("Int32", np.int32), ("Int32", np.int64)],
)
def test_host_integers_are_cast(name, dtype):
    limits = np.iinfo(dtype)
    array = np.array([[0, 1, min(limits.max, 2**31 - 1)], [max(limits.min, -(2**31)), 5, 7]], dtype)
    assert (host_decode(name, array) == array.astype(np.float32)).all()


def test_host_raw_words_are_copied():
    words = np.array([[5, 0xFFFFFFFF, 0x7FA00001]], np.uint32)
    assert (to_bits(host_decode("RawUInt32", words)) == words).all()
    assert (to_bits(host_decode("RawUInt32", words.view(np.float32))) == words).all()
    assert to_bits(host_decode("RawUInt16", np.array([7], np.uint16))).tolist() == [7]


def test_host_singles_pass_untouched():
    words = np.array([0x7FA00001, 0x80000000, 1], np.uint32)
    assert (to_bits(host_decode("Float32", words.view(np.float32))) == words).all()


@pytest.mark.parametrize(
    ("name", "dtype", "text"),
    [
        ("Bfp8_b", np.uint8, "cannot be declared as Bfp8_b"),
        ("Float16", np.float32, "Float16 cannot have elements of type float32"),
        ("Float32", np.float64, "Float32 cannot have elements of type float64"),
        ("Int8", np.float32, "Int8 cannot have elements of type float32"),
        ("RawUInt32", np.float64, "RawUInt32 cannot have elements of type float64"),
    ],
)
def test_wrong_declarations_are_refused(name, dtype, text):
    with pytest.raises(HostError, match=text):
        host_decode(name, np.zeros(4, dtype))
