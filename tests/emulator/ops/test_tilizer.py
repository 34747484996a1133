import numpy as np
import pytest

from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator import ops
from buda_emu.emulator.ops.base import Operand, serial
from buda_emu.support.errors import ProgramError, UnsupportedError
from op_examples.example import assert_same_bits, make_call, operand

pytestmark = pytest.mark.tiny
F32 = np.float32


def tilized(elements, shape, tile_dim=(32, 32), out_dim=(32, 32), label="Float32"):
    """Both faces on flat elements [w, n], padded to whole runs of 1024 as a flat queue holds them."""
    w, count = elements.shape
    runs = np.full((w, -(-count // 1024), 1024), np.nan, F32)
    runs.reshape(w, -1)[:, :count] = elements
    call = make_call("tilizer", [Operand(TileMap.identity(shape), tile_dim, label)], out_dim)
    implementation = ops.implementation("tilizer")
    assert implementation.shape(call) == shape
    out = np.full((w, int(np.prod(shape)), 1024), np.nan, F32)
    implementation.run(call, [runs], out, serial)
    expected = implementation.reference(call, [runs])
    assert_same_bits(out.reshape(expected.shape), expected, same_nans=True)
    return expected


def test_rows_of_the_host_tensor_become_rows_of_tiles():
    tensor = np.arange(2 * 2 * 64 * 96, dtype=F32).reshape(2, 2, 64, 96)
    tiles = tilized(tensor.reshape(2, -1), (2, 2, 3))
    np.testing.assert_array_equal(tiles[1, 1, 1, 2], tensor[1, 1, 32:, 64:])
    np.testing.assert_array_equal(tiles.swapaxes(3, 4).reshape(tensor.shape), tensor)


def test_tiles_of_the_queue_may_be_small():
    tensor = np.arange(1, 1 + 16 * 64, dtype=F32).reshape(1, 1, 16, 64)
    tiles = tilized(tensor.reshape(1, -1), (1, 2, 2), tile_dim=(8, 32))
    np.testing.assert_array_equal(tiles[0, 0, 1, 1, :8], tensor[0, 0, 8:, 32:])
    assert (tiles[..., 8:, :] == 0).all()
    odd = tilized(tensor.reshape(1, -1)[:, :512], (1, 1, 1), tile_dim=(16, 32))
    np.testing.assert_array_equal(odd[0, 0, 0, 0, :16], tensor.reshape(32, 32)[:16])


def test_result_is_blanked():
    tiles = tilized(np.full((1, 1024), -1.0, F32), (1, 1, 1), out_dim=(4, 32))
    assert (tiles[..., :4, :] == -1).all()
    assert (tiles[..., 4:, :] == 0).all()
    assert np.signbit(tiles).all(), "blanking multiplies by zero"


def test_raw_words_keep_their_order():
    bits = np.arange(0x7F800000, 0x7F800000 + 2048, dtype=np.uint32).view(F32).reshape(1, 2048)
    tiles = tilized(bits, (1, 1, 2), label="RawUInt32")
    np.testing.assert_array_equal(tiles.view(np.uint32).reshape(1, 2048), bits.view(np.uint32))


def test_label_is_that_of_the_queue():
    call = make_call("tilizer", [Operand(TileMap.identity((1, 1, 1)), label="Bfp8_b")])
    assert ops.implementation("tilizer").label(call) == "Bfp8_b"


def test_what_cannot_be_tilized():
    implementation = ops.implementation("tilizer")
    with pytest.raises(ProgramError, match=r"op a_tilizer: .* without TMs"):
        implementation.shape(make_call("tilizer", [Operand(TileMap.identity((1, 1, 1)).broadcast("r", 2))]))
    with pytest.raises(UnsupportedError, match=r"op a_tilizer: .* RawUInt32 into tiles of \(8, 32\)"):
        implementation.shape(make_call("tilizer", [Operand(TileMap.identity((1, 1, 1)), label="RawUInt32")], (8, 32)))
    with pytest.raises(ProgramError, match=r"takes 1 input\(s\), not 2"):
        implementation.shape(make_call("tilizer", [operand((1, 1, 1))] * 2))
