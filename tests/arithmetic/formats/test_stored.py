"""Tiles as bits."""

import numpy as np
import pytest

from buda_emu.arithmetic.formats import quantise
from buda_emu.arithmetic.formats.stored import Bits, datum_type, stored_tile_bytes
from buda_emu.spec.formats import NETLIST_FORMATS, is_block

TILES = np.random.default_rng(1).normal(0, 3, (2, 3, 1024)).astype(np.float32)


def same(one, other):
    assert one.df == other.df
    assert np.array_equal(one.datums, other.datums)
    assert (one.exponents is None) == (other.exponents is None)
    if one.exponents is not None:
        assert np.array_equal(one.exponents, other.exponents)


@pytest.mark.tiny
@pytest.mark.parametrize("df", NETLIST_FORMATS)
def test_parts_and_copies(df):
    bits = Bits.encode(df, TILES)
    assert bits.datums.dtype == datum_type(df)
    assert bits.nbytes == 6 * stored_tile_bytes(df)
    assert (len(bits), bits.shape) == (2, (2, 3))
    assert (bits.exponents is not None) == is_block(df)
    same(bits.rows(), Bits.encode(df, TILES.reshape(6, 1024)))
    same(bits[1], Bits.encode(df, TILES[1]))
    copy = bits.copy()
    same(copy, bits)
    assert not np.shares_memory(copy.datums, bits.datums)
    empty = Bits.empty(df, 2, 3)
    assert (empty.datums.shape, empty.datums.dtype) == (bits.datums.shape, bits.datums.dtype)
    empty.assign(slice(0, 1), bits[1:])
    empty.assign(1, bits[0])
    same(empty, Bits.encode(df, TILES[::-1]))
    if copy.exponents is not None:
        assert not np.shares_memory(copy.exponents, bits.exponents)
        copy.exponents[...] = 0
        same(bits, Bits.encode(df, TILES))


@pytest.mark.tiny
@pytest.mark.parametrize("df", ["Float32", "Float16_b", "Bfp8_b"])
def test_on_memory_that_is_there(df):
    memory = np.zeros(6 * stored_tile_bytes(df) + 3, np.uint8)
    bits = Bits.on(memory, df, 2, 3)
    assert bits.shape == (2, 3)
    assert bits.datums.dtype == datum_type(df)
    bits.datums[...] = 1
    if bits.exponents is not None:
        bits.exponents[...] = 1
    assert np.count_nonzero(memory) == 6 * (1024 + 64 * is_block(df))
    assert not memory[-3:].any()


def test_the_types_that_hold_datums():
    found = {df: np.dtype(datum_type(df)).itemsize for df in ("Float32", "Int32", "Float16", "Float16_b", "UInt16")}
    assert found == {"Float32": 4, "Int32": 4, "Float16": 2, "Float16_b": 2, "UInt16": 2}
    assert {np.dtype(datum_type(df)).itemsize for df in ("Int8", "UInt8", "Lf8", "Bfp8", "Bfp4_b", "Bfp2")} == {1}


@pytest.mark.tiny
@pytest.mark.parametrize("df", ["Float16_b", "Bfp8_b", "Bfp4"])
def test_values_are_those_that_the_host_reads(df):
    expected = quantise(df, TILES.reshape(-1, 32, 32)).reshape(TILES.shape)
    assert np.array_equal(Bits.encode(df, TILES).values(), expected)
