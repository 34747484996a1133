import numpy as np
import pytest

from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator import ops
from buda_emu.emulator.ops.base import Operand
from buda_emu.support.errors import ProgramError
from op_examples.example import assert_same_bits, make_call, operand, reference, run

pytestmark = pytest.mark.tiny
F32 = np.float32


def depthwise(data, weights, bias=None, label="Float32", tile_dim=(32, 32)):
    """Both faces on float32[t, R, C, 32, 32]."""
    tensors = [tensor[np.newaxis] for tensor in (data, weights, bias) if tensor is not None]
    operands = [Operand(TileMap.identity(tensor.shape[1:4]), tile_dim, label) for tensor in tensors]
    attributes = {"m_k": weights.shape[1], "u_kt": 1, "bias": bias is not None}
    call = make_call("depthwise", operands, attributes=attributes)
    expected = reference(call, tensors)
    assert_same_bits(run(call, tensors), expected)
    return expected[0]


def diagonal(values):
    return np.asarray(values, F32)[..., np.newaxis, np.newaxis] * np.eye(32, dtype=F32)


def test_column_groups_meet_rows_of_weights():
    data = diagonal([[[1, 2, 10, 20, 100, 200], [3, 4, 30, 40, 300, 400]]])  # t 1, R 2, 3 groups of C 2
    weights = diagonal([[[2, 3], [5, 7], [11, 13]]])
    result = depthwise(data, weights)
    assert result.shape == (1, 2, 2, 32, 32)
    np.testing.assert_array_equal(
        result[0, :, :, 6, 6],
        [[2 + 50 + 1100, 6 + 140 + 2600], [6 + 150 + 3300, 12 + 280 + 5200]],
    )
    assert np.count_nonzero(result) == 4 * 32


def test_slices_have_their_own_weights():
    result = depthwise(diagonal([[[1]], [[2]]]), diagonal([[[10]], [[100]], [[1000]]]))
    np.testing.assert_array_equal(result[:, 0, 0, 0, 0], [10, 200])


def test_product_and_sum_are_rounded_apart():
    data, weights = np.zeros((2, 1, 1, 1, 32, 32), F32)
    data[..., 3, [0, 8]] = -1.0, 1 + 2.0**-12
    weights[..., [0, 8], 4] = 1.0, 1 + 2.0**-12
    assert depthwise(data, weights)[0, 0, 0, 3, 4] == 2.0**-11, "fused it would be 2^-11 + 2^-24"


def test_each_product_is_summed_apart():
    data, weights = np.zeros((1, 1, 2, 32, 32), F32), np.ones((1, 2, 1, 32, 32), F32)
    data[0, 0, 0, 0, 0] = 2.0**24
    data[0, 0, 1, 0, :2] = 1.0
    assert depthwise(data, weights)[0, 0, 0, 0, 0] == 2.0**24 + 2, "1 + 1 comes before 2^24"


@pytest.mark.parametrize("label", ["Float32", "Int8"])
def test_bias_uses_row_0_of_each_tile(label):
    bias = np.arange(1024, dtype=F32).reshape(1, 1, 1, 32, 32)
    result = depthwise(diagonal([[[0]]]), diagonal([[[0]]]), bias, label)
    np.testing.assert_array_equal(result[0, 0, 0], np.tile(np.arange(32.0), (32, 1)))


def test_result_is_blanked_to_the_tile_dim_of_input_0():
    ones = np.ones((1, 1, 1, 32, 32), F32)
    result = depthwise(ones, ones, tile_dim=(8, 32))[0, 0, 0]
    assert (result[:8] == 32).all()
    assert (result[8:] == 0).all()


def test_label_is_that_of_input_0():
    call = make_call("depthwise", [Operand(TileMap.identity((1, 1, 1)), label="Bfp8_b"), operand((1, 1, 1))])
    assert ops.implementation("depthwise").label(call) == "Bfp8_b"


@pytest.mark.parametrize(
    ("shapes", "attributes", "message"),
    [
        ([(1, 1, 4), (1, 2, 2)], {"u_kt": 2}, "u_kt 2, it must be 1"),
        ([(1, 1, 4), (1, 2, 2)], {"m_k": 4}, "m_k 4, 2 rows of weight tiles"),
        ([(1, 1, 5), (1, 2, 2)], {}, r"\[1, 1, 5\] by input 1 with \[1, 2, 2\]"),
        ([(2, 1, 4), (1, 2, 2)], {}, r"\[2, 1, 4\] by input 1 with \[1, 2, 2\]"),
        ([(1, 1, 4), (1, 2, 2)], {"bias": True}, r"takes 3 input\(s\), not 2"),
        ([(1, 1, 4), (1, 2, 2), (1, 1, 2)], {}, r"takes 2 input\(s\), not 3"),
        ([(1, 3, 4), (1, 2, 2), (1, 1, 2)], {"bias": True}, r"bias with dims \[1, 1, 2\] for a product of \[1, 3, 2\]"),
    ],
)
def test_what_the_reference_aborts_on(shapes, attributes, message):
    call = make_call("depthwise", list(map(operand, shapes)), attributes={"m_k": 2, "u_kt": 1, **attributes})
    with pytest.raises(ProgramError, match=f"op a_depthwise: .*{message}"):
        ops.implementation("depthwise").shape(call)
