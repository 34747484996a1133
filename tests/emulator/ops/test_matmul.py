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


def tensor(t, rows, cols, fill=0.0):
    return np.full((1, t, rows, cols, 32, 32), fill, F32)


def matmul(*tensors, labels=(), tile_dims=(), out_dim=(32, 32), transpose=False, vector="rc", **attributes):
    """Both faces on float32[1, t, R, C, 32, 32] each."""
    labels = [*labels, *["Float32"] * (len(tensors) - len(labels))]
    dims = [*tile_dims, *[(32, 32)] * (len(tensors) - len(tile_dims))]
    operands = [
        Operand(TileMap.identity(values.shape[1:4]), dim, label)
        for values, label, dim in zip(tensors, labels, dims, strict=True)
    ]
    written = {"m_k": tensors[0].shape[3], "u_kt": 1, **attributes}
    call = make_call("matmul", operands, out_dim, attributes=written, transpose=transpose, vector=vector)
    expected = reference(call, tensors)
    assert_same_bits(run(call, tensors), expected)
    return expected[0]


def shape(*operands, **attributes):
    call = make_call("matmul", operands, attributes={"m_k": 2, "u_kt": 1, **attributes})
    return ops.implementation("matmul").shape(call)


def test_lanes_are_summed_as_a_tree():
    a, b = tensor(1, 1, 1), tensor(1, 1, 1, 1.0)
    a[0, 0, 0, 0, 0, [0, 1, 5]] = 2.0**24, 1.0, 1.0
    # s0 = 2^24, s1 + s5 = 2; one after the other, either 1 would be lost.
    assert matmul(a, b)[0, 0, 0, 0, 0] == 2.0**24 + 2


def test_a_lane_is_a_chain_of_fused_multiply_adds():
    a, b = tensor(1, 1, 1), tensor(1, 1, 1)
    a[0, 0, 0, 0, 3, [0, 8]] = -1.0, 1 + 2.0**-12
    b[0, 0, 0, 0, [0, 8], 4] = 1.0, 1 + 2.0**-12
    assert matmul(a, b)[0, 0, 0, 3, 4] == 2.0**-11 + 2.0**-24


def test_tiles_of_the_inner_dimension_are_added_in_order():
    a, b = tensor(1, 1, 3), tensor(1, 3, 1, 0.0)
    a[..., 0, 0] = np.array([1.0, 2.0**24, -(2.0**24)], F32)
    b[..., 0, 0] = 1.0
    assert matmul(a, b)[0, 0, 0, 0, 0] == 0.0, "1 + 2^24 rounds to 2^24 before 2^24 goes off"


def test_rows_columns_and_slices():
    a, b = tensor(2, 2, 1), tensor(2, 1, 3)
    a[0, :, :, 0, 0, 0] = [[2, 3], [5, 7]]
    b[0, :, 0, :, 0, 0] = [[11, 13, 17], [19, 23, 29]]
    result = matmul(a, b)
    np.testing.assert_array_equal(result[0, :, :, 0, 0], [[22, 26, 34], [33, 39, 51]])
    np.testing.assert_array_equal(result[1, :, :, 0, 0], [[95, 115, 145], [133, 161, 203]])


def test_transpose_flag_turns_the_tiles_of_input_1():
    a, b = tensor(1, 1, 1), tensor(1, 1, 1)
    a[0, 0, 0, 0, 0, 1] = 1.0
    b[0, 0, 0, 0, 2, 1] = 5.0
    result = matmul(a, b, transpose=True)[0, 0, 0]
    assert result[0, 2] == 5.0
    assert np.count_nonzero(result) == 1


def test_inputs_and_result_are_blanked():
    a, b = tensor(1, 1, 1), tensor(1, 1, 1)
    a[..., 0, :] = 1.0
    b[..., :, :] = 1.0
    a[..., 20, :] = np.nan  # outside 16x32: NaN * 0
    b[..., 0, 5] = -2.0
    result = matmul(a, b, tile_dims=((16, 32), (32, 32)), out_dim=(16, 32))[0, 0, 0]
    assert result[0, 0] == 32.0
    assert np.isnan(result[20]).all(), "NaN is not blanked away"
    assert np.isnan(result).sum() == 32
    half = matmul(a, b, tile_dims=((32, 16), (16, 32)), out_dim=(1, 32))[0, 0, 0]
    assert half[0, 0] == 16.0
    assert half[0, 5] == 13.0


def test_accumulate_adds_slices_in_order():
    a, b = tensor(4, 1, 1), tensor(4, 1, 1)
    b[..., 0, 0] = 1.0
    a[0, :, 0, 0, 0, 0] = [-0.0, -0.0, 3.0, 4.0]
    result = matmul(a, b, accumulate=True, z=2)
    np.testing.assert_array_equal(result[:, 0, 0, 0, 0], [0.0, 7.0])
    a[0, :, 0, 0, 0, 0] = [2.0**24, 1.0, 1.0, -(2.0**24)]
    assert matmul(a, b, accumulate=True, z=4)[0, 0, 0, 0, 0] == 0.0


def test_float_bias_uses_row_0_of_each_tile():
    a, b, bias = tensor(1, 1, 1), tensor(1, 1, 2), tensor(1, 1, 2, 9.0)
    bias[..., 0, :] = np.arange(64, dtype=F32).reshape(1, 1, 1, 2, 32)
    result = matmul(a, b, bias, bias=True)
    np.testing.assert_array_equal(result[0, 0, 1], np.tile(np.arange(32.0, 64.0), (32, 1)))


@pytest.mark.parametrize("labels", [("Int8",), ("Float32", "Int8"), ("Float32", "Float32", "Int32")])
def test_integer_bias_is_added_element_by_element(labels):
    a, b = tensor(1, 1, 1), tensor(1, 1, 1)
    bias = np.arange(1024, dtype=F32).reshape(1, 1, 1, 1, 32, 32)
    np.testing.assert_array_equal(matmul(a, b, bias, bias=True, labels=labels), bias[0])


def test_unsigned_integers_are_not_integer_mode():
    bias = np.arange(1024, dtype=F32).reshape(1, 1, 1, 1, 32, 32)
    result = matmul(tensor(1, 1, 1), tensor(1, 1, 1), bias, bias=True, labels=("UInt8", "UInt8", "UInt8"))
    np.testing.assert_array_equal(result[0, 0, 0], np.tile(np.arange(32.0), (32, 1)))


def test_requantisation():
    a, b, scale = tensor(1, 1, 1), tensor(1, 1, 1), tensor(1, 1, 1, 0.5)
    a[..., 0, 0], b[..., 0, 0] = 6.0, 1.0
    scale[..., 0, 1] = np.inf
    result = matmul(a, b, scale, requant=True, zero_point=2.0)[0, 0, 0]
    assert result[0, 0] == 5.0
    assert result[0, 1] == 2.0, "+0 * inf is +0"
    result = matmul(a, b, scale, dequant=True, zero_point=2.0)[0, 0, 0]
    assert result[0, 0] == 2.0
    assert result[0, 1] == -np.inf
    assert result[1, 0] == -1.0


def test_great_integers_cannot_be_requantised_without_a_bias():
    a, b, scale = tensor(1, 1, 1), tensor(1, 1, 1), tensor(1, 1, 1, 0.5)
    a[..., 0, 0], b[..., 0, 0] = 2.0**12, 2.0**12
    assert matmul(a, b, scale, requant=True, labels=("Int8",))[0, 0, 0, 0, 0] == 2.0**23
    a[..., 0, 0] += 1
    assert matmul(a, b, scale, requant=True)[0, 0, 0, 0, 0] == 2.0**23 + 2.0**11, "floats may be great"
    bias = tensor(1, 1, 1)
    assert matmul(a, b, bias, scale, bias=True, requant=True, labels=("Int8",))[0, 0, 0, 0, 0] == 2.0**23 + 2.0**11
    call = make_call(
        "matmul",
        [Operand(TileMap.identity((1, 1, 1)), label="Int8")] * 2 + [operand((1, 1, 1))],
        attributes={"m_k": 1, "u_kt": 1, "dequant": True},
    )
    for face in (reference, run):
        with pytest.raises(ProgramError, match=r"a_matmul: 1 element\(s\) beyond 2\^24"):
            face(call, [a, b, scale])


def test_gelu_in_place():
    a, b = tensor(1, 1, 1), tensor(1, 1, 1)
    a[..., :, 0], b[..., 0, :] = 2.0, 1.0
    result = matmul(a, b, sfpu_op="gelu", vector="r")[0, 0, 0]
    gelu_of_2 = np.uint32(0x3FFA3042).view(F32)  # OPS 12
    assert (result[:4] == gelu_of_2).all()
    assert (result[4:] == 2.0).all(), "the rest keeps the product"
    assert (matmul(a, b, sfpu_op="gelu", vector="c")[0, 0, 0, :, 16:] == 2.0).all()
    assert (matmul(a, b, sfpu_op="gelu") == gelu_of_2).all()
    assert (matmul(a, b, sfpu_op="invalid") == 2.0).all()


def test_label_is_that_of_input_0():
    call = make_call("matmul", [Operand(TileMap.identity((1, 1, 1)), label="Bfp4_b"), operand((1, 1, 1))])
    assert ops.implementation("matmul").label(call) == "Bfp4_b"


def test_shapes():
    in0, in1 = operand((4, 3, 2)), operand((4, 2, 5))
    assert shape(in0, in1) == (4, 3, 5)
    assert shape(in0, in1, accumulate=True, z=4) == (1, 3, 5)
    assert shape(in0, operand((6, 2, 5))) == (4, 3, 5), "slices of input 1 beyond those of input 0 are not read"
    assert shape(in0, in1, operand((4, 3, 5)), operand((4, 3, 5)), bias=True, dequant=True) == (4, 3, 5)
    assert shape(in0, in1, operand((2, 3, 5)), accumulate=True, z=2, bias=True) == (2, 3, 5)


@pytest.mark.parametrize(
    ("in1", "more", "attributes", "message"),
    [
        ((4, 3, 5), [], {}, r"\[4, 3, 2\] by input 1 with \[4, 3, 5\]"),
        ((3, 2, 5), [], {}, r"\[4, 3, 2\] by input 1 with \[3, 2, 5\]"),
        ((4, 2, 5), [], {"m_k": 3}, "m_k 3 and u_kt 1"),
        ((4, 2, 5), [], {"u_kt": 0}, "m_k 2 and u_kt 0"),
        ((4, 2, 5), [], {"accumulate": True}, "t 4 in runs of z 0"),
        ((4, 2, 5), [], {"accumulate": True, "z": 3}, "t 4 in runs of z 3"),
        ((4, 2, 5), [(4, 3, 5)], {}, r"needs 2 input\(s\), it has 3"),
        ((4, 2, 5), [], {"bias": True}, r"needs 3 input\(s\), it has 2"),
        ((4, 2, 5), [(4, 3, 1)], {"bias": True}, r"bias with dims \[4, 3, 1\] for a product of \[4, 3, 5\]"),
        ((4, 2, 5), [(1, 3, 5)], {"requant": True}, r"scale with dims \[1, 3, 5\]"),
        ((4, 2, 5), [], {"sfpu_op": "exp"}, "sfpu_op exp, only gelu runs"),
    ],
)
def test_what_the_reference_aborts_on(in1, more, attributes, message):
    operands = [operand((4, 3, 2)), operand(in1), *map(operand, more)]
    with pytest.raises(ProgramError, match=f"op a_matmul: .*{message}"):
        shape(*operands, **attributes)


def test_one_slice_cannot_be_accumulated():
    with pytest.raises(ProgramError, match="accumulate t 1"):
        shape(operand((1, 3, 2)), operand((1, 2, 5)), accumulate=True, z=1)


def test_one_input_is_too_few():
    call = make_call("matmul", [operand((1, 1, 1))], blocking=Blocking((1, 1), 1, (1, 1), (1, 1), "r"))
    with pytest.raises(ProgramError, match="needs 2 inputs, it has 1"):
        ops.implementation("matmul").shape(call)
