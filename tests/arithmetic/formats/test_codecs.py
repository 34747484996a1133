"""The registry: complete, and quantisation alike for every format."""

import numpy as np
import pytest

from buda_emu.arithmetic.formats import quantise
from buda_emu.arithmetic.formats.bits import from_bits, to_bits
from buda_emu.arithmetic.formats.codecs import BLOCK_CODECS, SCALAR_CODECS
from buda_emu.spec.formats import FORMATS, is_block
from buda_emu.support.errors import UnsupportedError


def test_every_format_of_the_table_has_one_codec():
    assert set(BLOCK_CODECS) == {name for name in FORMATS if is_block(name)}
    assert set(SCALAR_CODECS) == set(FORMATS) - set(BLOCK_CODECS)


@pytest.mark.parametrize("name", FORMATS)
def test_quantise_returns_new_tiles_of_the_same_shape(name):
    tiles = from_bits(np.random.default_rng(5).integers(0, 1 << 32, (2, 3, 32, 32), dtype=np.uint32))
    before = to_bits(tiles).copy()
    result = quantise(name, tiles)
    assert result.dtype == np.float32
    assert result.shape == tiles.shape
    assert not np.shares_memory(result, tiles)
    assert (to_bits(tiles) == before).all()


@pytest.mark.parametrize("name", FORMATS)
def test_quantise_reads_strided_tiles(name):
    tiles = from_bits(np.random.default_rng(6).integers(0, 1 << 32, (32, 64, 32), dtype=np.uint32)).transpose(1, 2, 0)
    assert (to_bits(quantise(name, tiles)) == to_bits(quantise(name, np.ascontiguousarray(tiles)))).all()


@pytest.mark.parametrize("name", SCALAR_CODECS)
def test_rounding_word_matters_for_blocks_only(name):
    tiles = from_bits(np.random.default_rng(7).integers(0, 1 << 32, (1, 32, 32), dtype=np.uint32))
    assert (to_bits(quantise(name, tiles, "truncate")) == to_bits(quantise(name, tiles))).all()


def test_float32_changes_nothing():
    tiles = from_bits(np.random.default_rng(8).integers(0, 1 << 32, (1, 32, 32), dtype=np.uint32))
    assert (to_bits(quantise("Float32", tiles)) == to_bits(tiles)).all()


def test_unknown_format():
    with pytest.raises(UnsupportedError, match="'Float8'"):
        quantise("Float8", np.zeros((1, 32, 32), np.float32))


def test_values_must_be_float32():
    with pytest.raises(TypeError, match="float64"):
        quantise("Float16", np.zeros((1, 32, 32)))
