import numpy as np
import pytest

from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator import ops
from buda_emu.emulator.ops.base import Operand
from buda_emu.support.errors import ProgramError, UnsupportedError
from op_examples.example import make_call, operand, reference, run

pytestmark = pytest.mark.tiny


def test_raw_words_keep_their_bits():
    # signalling NaNs among them: no step of a copy may treat a word as a number
    words = np.arange(1024, dtype=np.uint32) * np.uint32(0x00400401) + np.uint32(0x7F800001)
    source = words.view(np.float32).reshape(1, 1, 1, 1, 32, 32)
    call = make_call("nop", [operand((1, 1, 1), label="RawUInt32")])
    np.testing.assert_array_equal(run(call, [source]).view(np.uint32).reshape(-1), words)
    turned = make_call("datacopy", [operand((1, 1, 1), label="RawUInt32")], transpose=True)
    np.testing.assert_array_equal(run(turned, [source]).view(np.uint32).reshape(32, 32), words.reshape(32, 32).T)


def test_transpose_tm_and_flag_make_a_matrix_transpose():
    # OPS 7.4
    matrix = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    tiles = matrix.reshape(1, 1, 2, 32, 3, 32).swapaxes(3, 4)
    call = make_call("nop", [Operand(TileMap.identity((1, 2, 3)).transpose())], transpose=True)
    assert ops.implementation("nop").shape(call) == (1, 3, 2)
    result = run(call, [tiles]).swapaxes(3, 4).reshape(96, 64)
    np.testing.assert_array_equal(result, matrix.T)


def test_pad_tiles_are_full_of_the_value():
    padded = TileMap.identity((1, 1, 1)).pad(1, 0, -7.25)
    call = make_call("nop", [Operand(padded)])
    ones = np.ones((1, 1, 1, 1, 32, 32), np.float32)
    for result in (run(call, [ones]), reference(call, [ones])):
        assert (result[0, 0, 0] == 1).all()
        assert (result[0, 0, 1] == np.float32(-7.25)).all()


def test_one_input_only():
    with pytest.raises(ProgramError, match="op a_nop: nop takes 1 input"):
        ops.implementation("nop").shape(make_call("nop", [operand((1, 1, 1))] * 2))


@pytest.mark.parametrize("word", ["buffer", "drainer", "relu", ""])
def test_words_that_are_no_runnable_op(word):
    with pytest.raises(UnsupportedError, match=repr(word)):
        ops.implementation(word)
