import numpy as np
import pytest

from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator import ops
from buda_emu.emulator.ops.base import Operand
from buda_emu.spec.blocking import Blocking
from buda_emu.support.errors import ProgramError
from op_examples.example import assert_same_bits, make_call, operand, reference, run

pytestmark = pytest.mark.tiny
F32 = np.float32


def embedding_call(table, indices, blocking, count, label="RawUInt32"):
    operands = [operand(table), Operand(TileMap.identity(indices), label=label)]
    return make_call("embedding", operands, blocking=blocking, attributes={"num_indices": count}, out_df="Float16_b")


def looked_up(table, words, blocking, count, label="RawUInt32"):
    """Both faces on float32[t, R, C, 32, 32] and uint32 words of that form; element rows [t, rows, columns]."""
    call = embedding_call(table.shape[:3], words.shape[:3], blocking, count, label)
    tensors = [table[np.newaxis], words.astype(np.uint32).view(F32)[np.newaxis]]
    expected = reference(call, tensors)
    assert_same_bits(run(call, tensors), expected, same_nans=True)
    t, rows, cols = expected.shape[1:4]
    return expected[0].swapaxes(2, 3).reshape(t, rows * 32, cols * 32)


def flat_table(rows, cols):
    """A table of rows x cols tiles: element x of row n is 1000 * n + x, consecutive in tiles of 1024."""
    elements = np.arange(rows * 32)[:, np.newaxis] * 1000 + np.arange(cols * 32)
    return elements.astype(F32).reshape(1, rows, cols, 32, 32)


def words(shape, values):
    """Raw words of `shape` tiles that begin with `values`."""
    flat = np.zeros(np.prod(shape) * 1024, np.uint32)
    flat[: len(values)] = values
    return flat.reshape(*shape, 32, 32)


def test_rows_of_a_flat_table():
    numbers = [3, 0, 63, 5, 5] + [0] * 26 + [1]
    result = looked_up(flat_table(2, 3), words((1, 1, 1), numbers), Blocking((1, 1), 1, (1, 3), (1, 1), "r"), 32)
    assert result.shape == (1, 32, 96)
    np.testing.assert_array_equal(result[0, :, 0], np.array(numbers) * 1000)
    np.testing.assert_array_equal(result[0, 2], 63000 + np.arange(96))


def test_the_greatest_word_means_zeros():
    result = looked_up(
        flat_table(1, 1), words((1, 1, 1), [5, 0xFFFFFFFF]), Blocking((1, 1), 1, (1, 1), (1, 1), "r"), 32
    )
    assert result[0, 0, 0] == 5000
    assert (result[0, 1] == 0).all()


def test_grid_rows_have_their_own_indices_and_slices_the_same():
    numbers = np.concatenate([np.full(1024, 7), np.full(1024, 9)])
    result = looked_up(flat_table(1, 1), words((1, 2, 1), numbers), Blocking((2, 1), 2, (1, 1), (1, 1), "r"), 32)
    assert result.shape == (2, 64, 32)
    np.testing.assert_array_equal(result[:, :, 0], [[7000] * 32 + [9000] * 32] * 2)


def test_raw_words_run_tile_by_tile_and_others_row_by_row():
    numbers = np.arange(2048).reshape(1, 1, 2, 32, 32) % 64
    numbers[0, 0, 1] += 64
    blocking = Blocking((1, 1), 1, (2, 1), (1, 1), "r")
    raw = looked_up(flat_table(4, 1), numbers, blocking, 64)
    np.testing.assert_array_equal(raw[0, :, 0] / 1000, np.arange(64))
    by_row = looked_up(flat_table(4, 1), numbers, blocking, 64, label="Float32")
    np.testing.assert_array_equal(by_row[0, :, 0] / 1000, [*range(32), *range(64, 96)])


def test_rows_beyond_the_indices_are_zeros():
    result = looked_up(flat_table(1, 1), words((1, 1, 1), [1] * 64), Blocking((1, 1), 1, (2, 1), (1, 1), "r"), 40)
    assert result.shape == (1, 64, 32)
    assert (result[0, :40, 0] == 1000).all()
    assert (result[0, 40:] == 0).all()


def test_label_is_the_declared_format():
    call = embedding_call((1, 1, 1), (1, 1, 1), Blocking((1, 1), 1, (1, 1), (1, 1), "r"), 32)
    assert ops.implementation("embedding").label(call) == "Float16_b"


@pytest.mark.parametrize("number", [64, 65, 1 << 20, 0xFFFFFFFE])
def test_an_index_beyond_the_table(number):
    call = embedding_call((1, 2, 2), (1, 1, 1), Blocking((1, 1), 1, (1, 2), (1, 1), "r"), 32)
    tensors = [flat_table(2, 2)[np.newaxis], words((1, 1, 1), [3, number]).view(F32)[np.newaxis]]
    for face in (reference, run):
        with pytest.raises(
            ProgramError, match=f"op a_embedding: embedding index {number} is beyond a table of 64 rows"
        ):
            face(call, tensors)


@pytest.mark.parametrize(
    ("table", "indices", "grid", "count", "label", "message"),
    [
        ((1, 2, 3), (1, 1, 1), (1, 1), 32, "RawUInt32", "table is 3 tiles wide, the op 2"),
        ((1, 2, 2), (1, 3, 1), (2, 1), 32, "RawUInt32", "cannot split 3 index rows over 2 grid rows"),
        ((1, 2, 2), (1, 1, 1), (1, 1), 0, "RawUInt32", "num_indices"),
        ((1, 2, 2), (1, 2, 1), (2, 1), 1056, "RawUInt32", "num_indices 1056, a grid row has 1024"),
        ((1, 2, 2), (1, 1, 1), (1, 1), 32, "RawUInt16", "labelled RawUInt16"),
        ((1, 2, 2), (1, 1, 1), (1, 1), 32, "Int32", "labelled Int32"),
    ],
)
def test_what_the_reference_aborts_on(table, indices, grid, count, label, message):
    call = embedding_call(table, indices, Blocking(grid, 1, (1, 2), (1, 1), "r"), count, label)
    with pytest.raises(ProgramError, match=f"op a_embedding: .*{message}"):
        ops.implementation("embedding").shape(call)
