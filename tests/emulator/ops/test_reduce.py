import numpy as np
import pytest

from buda_emu.emulator import ops
from buda_emu.support.errors import ProgramError
from op_examples.example import make_call, operand, reference, run

pytestmark = pytest.mark.tiny
NAN, INF = np.nan, np.inf


def reduced(tiles, dim, z=0):
    """Both faces on float32[t, R, C, 32, 32]."""
    source = np.asarray(tiles, np.float32)[np.newaxis]
    call = make_call("reduce", [operand(source.shape[1:4])], attributes={"type": "max", "dim": dim, "z": z})
    expected = reference(call, [source])
    np.testing.assert_array_equal(run(call, [source]).view(np.uint32), expected.view(np.uint32))
    return expected[0]


def counting(t, rows, cols):
    return -np.arange(t * rows * cols * 1024, dtype=np.float32).reshape(t, rows, cols, 32, 32)


def test_columns_leave_a_column_and_zeros():
    tiles = counting(1, 2, 2)
    result = reduced(tiles, "c")
    assert result.shape == (1, 2, 1, 32, 32)
    np.testing.assert_array_equal(result[0, :, 0, :, 0], tiles[0, :, 0, :, 0])
    assert (result[..., 1:] == 0).all(), "zero, not -inf, beside the results"


def test_rows_leave_a_row_and_zeros():
    tiles = counting(2, 2, 1)
    result = reduced(tiles, "r")
    assert result.shape == (2, 1, 1, 32, 32)
    np.testing.assert_array_equal(result[:, 0, :, 0, :], tiles[:, 0, :, 0, :])
    assert (result[..., 1:, :] == 0).all()


def test_both_leave_one_element():
    result = reduced(counting(2, 2, 2) - 5, "rc")
    assert result.shape == (2, 1, 1, 32, 32)
    assert result[0, 0, 0, 0, 0] == -5
    assert np.count_nonzero(result[0]) == 1


def test_z_takes_runs():
    tiles = counting(4, 1, 1)
    result = reduced(tiles, "z", z=2)
    np.testing.assert_array_equal(result, tiles[::2])


def test_nan_is_ignored_along_rows_and_columns():
    tiles = np.full((1, 1, 1, 32, 32), NAN)
    tiles[0, 0, 0, 3, 5] = -2.0
    for dim, place in (("r", (0, 5)), ("c", (3, 0)), ("rc", (0, 0))):
        assert reduced(tiles, dim)[(0, 0, 0, *place)] == -2.0
    assert reduced(tiles, "c")[0, 0, 0, 4, 0] == -INF, "a line of nothing but NaN"


def test_along_z_nan_replaces_and_is_replaced():
    # OPS 6.7: new unless new < accumulator
    def line(*values):
        tiles = np.zeros((len(values), 1, 1, 32, 32))
        tiles[:, 0, 0, 0, 0] = values
        return reduced(tiles, "z", z=len(values))[0, 0, 0, 0, 0]

    assert np.isnan(line(5.0, NAN))
    assert line(5.0, NAN, 1.0) == 1.0
    assert line(NAN, 2.0, 1.0) == 2.0


def test_the_first_of_equal_zeros_is_kept():
    tiles = np.full((1, 1, 2, 32, 32), -1.0)
    tiles[0, 0, 0, 0, 7] = -0.0
    tiles[0, 0, 1, 0, 0] = 0.0
    assert np.signbit(reduced(tiles, "c")[0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"type": "max"}, "attribute dim"),
        ({"dim": "r"}, "type: max"),
        ({"type": "max", "dim": "z"}, "z 0"),
        ({"type": "max", "dim": "z", "z": 3}, "t 4 into runs of z 3"),
    ],
)
def test_what_cannot_be_reduced(attributes, message):
    call = make_call("reduce", [operand((4, 1, 1))], attributes=attributes)
    with pytest.raises(ProgramError, match=f"op a_reduce: .*{message}"):
        ops.implementation("reduce").shape(call)


def test_shapes():
    call_of = {
        dim: make_call("reduce", [operand((4, 2, 3))], attributes={"type": "max", "dim": dim, "z": 2})
        for dim in ("r", "c", "rc", "z")
    }
    shapes = {dim: ops.implementation("reduce").shape(call) for dim, call in call_of.items()}
    assert shapes == {"r": (4, 1, 3), "c": (4, 2, 1), "rc": (4, 1, 1), "z": (2, 2, 3)}
