import numpy as np
import pytest

from buda_emu.emulator import ops
from buda_emu.support.errors import ProgramError
from op_examples.example import assert_same_bits, make_call, operand, reference, run

pytestmark = pytest.mark.tiny
INF, NAN = np.inf, np.nan
MINUS_ZERO = 0x80000000


def one_tile(values):
    tile = np.zeros((1, 1, 1, 1, 32, 32), np.float32)
    tile.reshape(-1)[: len(values)] = values
    return tile


def both_faces(type, a, b, **attributes):
    """The bits of the first elements by the reference, after a check that the kernel gives the same."""
    call = make_call(type, [operand((1, 1, 1)), operand((1, 1, 1))], attributes=attributes)
    sources = [one_tile(a), one_tile(b)]
    expected = reference(call, sources).reshape(-1)[: len(a)]
    assert_same_bits(run(call, sources).reshape(-1)[: len(a)], expected)
    return expected.view(np.uint32).tolist()


def bits(*values):
    return np.array(values, np.float32).view(np.uint32).tolist()


def test_multiply_by_plus_zero_is_plus_zero_against_everything():
    # OPS 5, multiply
    others = [INF, -INF, NAN, -3.0, -0.0, 5.0]
    zeros = [0.0] * len(others)
    assert both_faces("multiply", zeros, others) == bits(*zeros)
    assert both_faces("multiply", others, zeros) == bits(*zeros)


def test_multiply_by_minus_zero_is_ieee():
    assert both_faces("multiply", [-0.0, -0.0, 2.0], [3.0, -3.0, -0.0]) == bits(-0.0, 0.0, -0.0)
    product = np.array(both_faces("multiply", [-0.0, INF], [INF, -0.0]), np.uint32).view(np.float32)
    assert np.isnan(product).all()


def test_maximum_returns_the_second_unless_the_first_is_greater():
    assert both_faces("maximum", [0.0, -0.0, 2.0, -1.0], [-0.0, 0.0, 1.0, INF]) == bits(-0.0, 0.0, 2.0, INF)
    assert both_faces("maximum", [NAN], [3.0]) == bits(3.0)
    assert both_faces("maximum", [3.0], [NAN]) == bits(NAN)


def test_add_and_subtract_round_to_single_precision():
    assert both_faces("add", [1.0, 16777216.0], [2.0**-24, 1.0]) == bits(1.0, 16777216.0)
    assert both_faces("subtract", [1.0, 0.5], [2.0**-25, 0.5]) == bits(1.0, 0.0)


def test_quantisation_family():
    # OPS 6.4: in0 data, in1 scale; the zero point is added in float32; results are rounded later
    assert both_faces("quantization", [2.5, 4.0], [2.0, 0.3], zero_point=1.0) == bits(
        6.0, np.float32(np.float32(4) * np.float32(0.3)) + np.float32(1)
    )
    assert both_faces("requantization", [10.0], [0.25], zero_point=-3.0) == bits(-0.5)
    assert both_faces("dequantization", [10.0, 3.0], [0.5, INF], zero_point=3.0) == bits(3.5, 0.0)


def test_blanked_elements_are_multiplied_by_zero():
    call = make_call("add", [operand((1, 1, 1), tile_dim=(16, 32))] * 2)
    result = run(call, [one_tile([-1.0] * 1024), one_tile([-1.0] * 1023 + [NAN])]).reshape(32, 32)
    assert (result[:16] == -2).all()
    assert result[16, 0].view(np.uint32) == MINUS_ZERO
    assert np.isnan(result[31, 31])


def test_blanked_to_the_lesser_of_input_and_op():
    ones = one_tile([1.0] * 1024)
    for in_dim, out_dim in (((32, 32), (4, 32)), ((4, 32), (32, 32)), ((4, 32), (8, 32))):
        call = make_call("add", [operand((1, 1, 1), tile_dim=in_dim)] * 2, out_dim)
        for face in (run, reference):
            assert np.count_nonzero(face(call, [ones, ones])) == 4 * 32


def test_wrong_shapes_are_named():
    call = make_call("add", [operand((1, 2, 1)), operand((1, 1, 2))])
    with pytest.raises(ProgramError, match=r"op a_add: .*\[1, 2, 1\] and \[1, 1, 2\]"):
        ops.implementation("add").shape(call)
    with pytest.raises(ProgramError, match="op a_add: add takes 2 input"):
        ops.implementation("add").shape(make_call("add", [operand((1, 1, 1))] * 3))


def test_label_is_that_of_input_0():
    call = make_call("add", [operand((1, 1, 1), label="Bfp4_b"), operand((1, 1, 1), label="Float32")])
    assert ops.implementation("add").label(call) == "Bfp4_b"
