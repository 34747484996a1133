import numpy as np
import pytest

from buda_emu.emulator import ops
from buda_emu.spec.blocking import Blocking
from buda_emu.support.errors import ProgramError
from op_examples.example import assert_same_bits, make_call, operand, reference, run

pytestmark = pytest.mark.tiny
F32 = np.float32


def splice_call(shapes, triples, blocking, granularity="ublock"):
    attributes = {"inputs": tuple(enumerate(triples)), "granularity": granularity}
    return make_call("splice", list(map(operand, shapes)), blocking=blocking, attributes=attributes, out_df="Bfp8_b")


def spliced(shapes, triples, blocking, granularity="ublock"):
    """Tile numbers of the result, [t, R, C]; input k holds k * 1000, k * 1000 + 1, ..."""
    call = splice_call(shapes, triples, blocking, granularity)
    tensors = []
    for number, shape in enumerate(shapes):
        tiles = 1000 * number + np.arange(np.prod(shape), dtype=F32)
        tensors.append(np.broadcast_to(tiles.reshape(1, *shape, 1, 1), (1, *shape, 32, 32)).copy())
    expected = reference(call, tensors)
    assert_same_bits(run(call, tensors), expected)
    assert ops.implementation("splice").shape(call) == expected.shape[1:4]
    assert (expected == expected[..., :1, :1]).all()
    return expected[0, ..., 0, 0].astype(int).tolist()


def one_core(t, rows, cols, ublock=(1, 1), order="r"):
    return Blocking((1, 1), t, (rows // ublock[0], cols // ublock[1]), ublock, order)


def test_t_slices_one_input_after_the_other():
    assert spliced([(2, 1, 1), (1, 1, 1)], [(0, 2, 2), (0, 1, 1)], one_core(3, 1, 1), "t") == [[[0]], [[1]], [[1000]]]


def test_t_slices_in_turns():
    result = spliced([(4, 1, 2), (2, 1, 2)], [(0, 2, 2), (0, 1, 1)], one_core(6, 1, 2), "t")
    assert result == [[[0, 1]], [[2, 3]], [[1000, 1001]], [[4, 5]], [[6, 7]], [[1002, 1003]]]


def test_index_is_skipped_again_in_every_round():
    # skip 1, take 1 of the 2 that are stepped over: of 6 slices 1 and 4
    result = spliced([(6, 1, 1), (2, 1, 1)], [(1, 1, 2), (0, 1, 1)], one_core(4, 1, 1), "t")
    assert [row[0][0] for row in result] == [1, 1000, 4, 1001]


def test_an_input_alone_is_selected_from():
    assert [row[0][0] for row in spliced([(6, 1, 1)], [(1, 2, 2)], one_core(4, 1, 1), "t")] == [1, 2, 4, 5]


def test_ublocks_in_row_order():
    # one ublock row of each in turns; numbered along the rows of 2
    result = spliced([(1, 2, 2), (1, 2, 2)], [(0, 2, 2), (0, 2, 2)], one_core(1, 4, 2))
    assert result == [[[0, 1], [1000, 1001], [2, 3], [1002, 1003]]]


def test_ublocks_in_column_order():
    # the same numbers run down the columns: a concatenation of columns is one in column order
    result = spliced([(1, 2, 1), (1, 2, 2)], [(0, 2, 2), (0, 4, 4)], one_core(1, 2, 3, order="c"))
    assert result == [[[0, 1000, 1001], [1, 1002, 1003]]]
    # and in row order rows are filled up one after the other
    result = spliced([(1, 2, 1), (1, 2, 2)], [(0, 1, 1), (0, 2, 2)], one_core(1, 2, 3))
    assert result == [[[0, 1000, 1001], [1, 1002, 1003]]]


@pytest.mark.parametrize("order", ["r", "c"])
def test_tiles_stay_in_order_inside_a_ublock(order):
    result = spliced([(1, 2, 2), (1, 2, 2)], [(0, 1, 1), (0, 1, 1)], one_core(1, 4, 2, (2, 2), order))
    assert result == [[[0, 1], [2, 3], [1000, 1001], [1002, 1003]]]


def test_inputs_of_another_block_shape_are_numbered_over_their_own():
    # 1 x 4 and 2 x 2 ublocks into 2 x 4
    result = spliced([(1, 1, 4), (1, 2, 2)], [(0, 4, 4), (0, 4, 4)], one_core(1, 2, 4))
    assert result == [[[0, 1, 2, 3], [1000, 1001, 1002, 1003]]]
    result = spliced([(1, 1, 4), (1, 2, 2)], [(0, 4, 4), (0, 4, 4)], one_core(1, 2, 4, order="c"))
    assert result == [[[0, 2, 1000, 1001], [1, 3, 1002, 1003]]]


def test_each_core_and_slice_apart():
    blocking = Blocking((2, 2), 2, (2, 1), (1, 1), "r")
    result = spliced([(2, 2, 2), (2, 2, 2)], [(0, 1, 1), (0, 1, 1)], blocking)
    assert result[0] == [[0, 1], [1000, 1001], [2, 3], [1002, 1003]]
    assert result[1] == [[4, 5], [1004, 1005], [6, 7], [1006, 1007]]


def test_label_is_the_declared_format():
    assert ops.implementation("splice").label(splice_call([(1, 1, 1)], [(0, 1, 1)], one_core(1, 1, 1))) == "Bfp8_b"


@pytest.mark.parametrize(
    ("triple", "t_out"),
    [((0, 5, 5), 4), ((2, 1, 3), 4), ((0, 2, 3), 2), ((4, 1, 1), 1), ((0, 2, 1), 4), ((0, 0, 1), 1), ((-1, 2, 3), 2)],
)
def test_triples_that_do_not_fit(triple, t_out):
    call = splice_call([(4, 1, 1)], [triple], one_core(t_out, 1, 1), "t")
    with pytest.raises(ProgramError, match=r"a_splice: splice input0 \[.*\] does not fit 4 units"):
        ops.implementation("splice").shape(call)


@pytest.mark.parametrize(
    ("shapes", "triples", "t_out", "message"),
    [
        ([(4, 1, 1)], [(0, 2, 2)], 2, r"uses \[2\] of the inputs' \[4\] units"),
        ([(4, 1, 1)], [(0, 2, 2)], 6, "overruns input 0"),
        ([(4, 1, 1)], [(0, 2, 2)], 3, "overruns input 0 or the 3 units"),
        ([(4, 1, 1), (2, 1, 1)], [(0, 1, 1), (0, 1, 1)], 6, "overruns input 1"),
        ([(4, 2, 1)], [(0, 4, 4)], 4, r"along t, input 0 has 2 x 1 tiles, the op \[1, 1\]"),
    ],
)
def test_inputs_that_do_not_fill_the_result(shapes, triples, t_out, message):
    call = splice_call(shapes, triples, one_core(t_out, 1, 1), "t")
    with pytest.raises(ProgramError, match=f"op a_splice: .*{message}"):
        ops.implementation("splice").shape(call)


@pytest.mark.parametrize("shape", [(2, 2, 2), (1, 3, 2), (1, 2, 3)])
def test_blocks_that_do_not_split(shape):
    call = splice_call([shape], [(0, 1, 1)], Blocking((1, 1), 1, (1, 1), (2, 2), "r"))
    with pytest.raises(ProgramError, match=r"input 0 with dims .* does not split"):
        ops.implementation("splice").shape(call)


def test_one_triple_for_each_input():
    call = splice_call([(1, 1, 1), (1, 1, 1)], [(0, 1, 1)], one_core(2, 1, 1), "t")
    with pytest.raises(ProgramError, match=r"splice of 2 input\(s\) with attributes \['input0'\]"):
        ops.implementation("splice").shape(call)
