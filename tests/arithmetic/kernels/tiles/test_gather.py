import numpy as np
import pytest

from buda_emu.arithmetic.kernels.tiles.tile_memory import (
    AS_IS,
    FIRST_COLUMN,
    FIRST_ELEMENT,
    FIRST_ROW,
    TRANSPOSE,
    gather_tiles,
)

pytestmark = pytest.mark.tiny


def gather(source, index, arrange=AS_IS, pad_value=0.0, height=32, width=32, ranges=None):
    positions = np.array(index, np.int32)
    positions.flags.writeable = False
    out = np.full((2, len(index), 1024), np.nan, np.float32)
    for start, stop in ranges or [(0, 2 * len(index))]:
        gather_tiles(start, stop, out, source, positions, np.float32(pad_value), arrange, (height, width))
    return out


def numbered(entries, tiles):
    return np.arange(entries * tiles * 1024, dtype=np.float32).reshape(entries, tiles, 1024)


def test_tiles_come_from_where_the_index_says():
    source = numbered(2, 3)
    np.testing.assert_array_equal(gather(source, [2, 0, 2]), source[:, [2, 0, 2]])


def test_one_entry_serves_all():
    source = numbered(1, 2)
    result = gather(source, [1, 0])
    np.testing.assert_array_equal(result[0], source[0, [1, 0]])
    np.testing.assert_array_equal(result[1], result[0])


def test_pad_tiles():
    result = gather(numbered(2, 1), [-1, 0], TRANSPOSE, pad_value=0.1)
    assert (result[:, 0] == np.float32(0.1)).all()


@pytest.mark.parametrize(
    ("arrange", "expected"),
    [
        (TRANSPOSE, lambda tile: tile.T),
        (FIRST_ROW, lambda tile: np.repeat(tile[:1], 32, axis=0)),
        (FIRST_COLUMN, lambda tile: np.repeat(tile[:, :1], 32, axis=1)),
        (FIRST_ELEMENT, lambda tile: np.full((32, 32), tile[0, 0])),
    ],
)
def test_arrangements(arrange, expected):
    source = numbered(2, 1) + 5
    result = gather(source, [0], arrange)
    np.testing.assert_array_equal(result[1, 0].reshape(32, 32), expected(source[1, 0].reshape(32, 32)))


def test_blanking_multiplies_by_zero():
    source = numbered(2, 1) - 2000
    source[0, 0, 31 * 32 + 31] = np.nan
    source[0, 0, 31 * 32 + 30] = np.inf
    tile = gather(source, [0], height=4, width=16)[0, 0].reshape(32, 32)
    np.testing.assert_array_equal(tile[:4, :16], source[0, 0].reshape(32, 32)[:4, :16])
    assert tile[4, 0] == 0
    assert np.signbit(tile[4, 0])
    assert tile[0, 16] == 0
    assert np.isnan(tile[31, 30:]).all()


def test_ranges_fill_their_own_items_only():
    source = numbered(2, 2)
    result = gather(source, [1, 0], ranges=[(3, 4), (0, 1)])
    assert np.isnan(result[0, 1]).all()
    assert np.isnan(result[1, 0]).all()
    np.testing.assert_array_equal(result[1, 1], source[1, 0])


def test_signalling_nans_keep_their_bits():
    words = np.full((2, 1, 1024), 0x7F800001, np.uint32)
    words[:, :, ::3] = 0xFFA00002
    for arrange in (AS_IS, FIRST_COLUMN):
        result = gather(words.view(np.float32), [0, 0], arrange).view(np.uint32)
        assert result[0, 1, 0] == 0xFFA00002
        assert set(np.unique(result).tolist()) <= {0x7F800001, 0xFFA00002}
