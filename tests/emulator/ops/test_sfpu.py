"""Hand-checked values of the SFPU functions (OPS 5, 5.1, 5.2, 12)."""

import numpy as np
import pytest

from buda_emu.emulator import ops
from buda_emu.support.errors import ProgramError
from op_examples.example import assert_same_bits, make_call, operand, reference, run

pytestmark = pytest.mark.tiny
INF, NAN = np.inf, np.nan
LARGEST = float(np.finfo(np.float32).max)
SHAPE = (1, 1, 1)


def results(type, values, **attributes):
    """The first elements, by both faces, of a tile that begins with `values`."""
    tile = np.ones((1, *SHAPE, 32, 32), np.float32)
    tile.reshape(-1)[: len(values)] = values
    call = make_call(type, [operand(SHAPE)], attributes=attributes)
    expected = reference(call, [tile]).reshape(-1)[: len(values)]
    assert_same_bits(run(call, [tile]).reshape(-1)[: len(values)], expected)
    return expected


def words(type, *values, **attributes):
    return [f"{word:08x}" for word in results(type, values, **attributes).view(np.uint32)]


def texts(type, *values, **attributes):
    """Results as text, which tells -0 from 0."""
    return [str(value) for value in results(type, values, **attributes)]


def test_gelu_check_values():
    # OPS 12
    found = words("gelu", -3, -1.5, -0.3, 0.1, 0.7, 2, -8)
    assert found == ["bb6e6150", "bdcdad6b", "bdeac2a7", "3d5d1d05", "3f07d372", "3ffa3042", "80000000"]


def test_gelu_derivative_check_values():
    found = words("gelu_derivative", -3, -1.5, -0.3, 0, 0.7, 2)
    assert found == ["bc45f81e", "be026140", "3e890d6d", "3f000000", "3f79fe34", "3f8aea7b"]


def test_exp_check_values_and_limits():
    assert words("exp", -3, -0.3, 0.7, 2, 100) == ["3d4bed86", "3f3da643", "4000e153", "40ec7326", "7f7fffff"]
    assert results("exp", [NAN, INF, -INF]).tolist() == [LARGEST, LARGEST, 0]


def test_log():
    assert results("log", [0.0, -0.0]).tolist() == [np.float32(-15.9423847)] * 2
    assert np.isnan(results("log", [-1.0, NAN])).all()
    assert results("log", [1.0, INF]).tolist() == [0.0, INF]


def test_sigmoid_never_reaches_zero():
    tiny = np.float32(2.9387359e-39)
    assert results("sigmoid", [-INF, -100.0, NAN]).tolist() == [tiny] * 3
    assert results("sigmoid", [0.0, INF]).tolist() == [0.5, 1.0]


def test_gelu_specials():
    assert np.isnan(results("gelu", [-INF, NAN])).all()
    assert results("gelu", [INF])[0] == INF
    assert np.isnan(results("gelu_derivative", [INF, -INF])).all()


def test_tanh_sine_cosine():
    assert texts("tanh", 0.0, -0.0, INF, -INF) == ["0.0", "-0.0", "1.0", "-1.0"]
    assert texts("sine", 0.0, -0.0) == ["0.0", "-0.0"]
    assert results("cosine", [0.0])[0] == 1
    np.testing.assert_allclose(results("sine", [1.0, 100.0]), np.sin([1.0, 100.0]), rtol=1e-6)
    np.testing.assert_allclose(results("cosine", [1.0, 100.0]), np.cos([1.0, 100.0]), rtol=1e-6)


def test_square_abs():
    assert texts("square", -3, -0.0, INF) == ["9.0", "0.0", "inf"]
    assert texts("abs", -3, -0.0, -INF) == ["3.0", "0.0", "inf"]


def test_power_is_repeated_multiplication():
    assert texts("power", 2, -3, NAN, exp=3)[:2] == ["8.0", "-27.0"]
    assert texts("power", 2, NAN, -INF, exp=0) == ["1.0"] * 3
    assert texts("power", 2, NAN, -INF, exp=-4) == ["1.0"] * 3
    assert texts("power", 2, NAN) == ["1.0"] * 2, "absent: 0"
    x = np.float32(1.1)
    assert results("power", [1.1], exp=3)[0] == x * (x * x)


def test_lrelu():
    assert texts("lrelu", 2, -0.0, -3, INF) == ["2.0", "-0.0", str(np.float32(-3) * np.float32(0.01)), "inf"]
    assert texts("lrelu", -3, slope=0.5) == ["-1.5"]
    assert np.isnan(results("lrelu", [NAN])).all()


def test_reciprocal():
    assert texts("reciprocal", 4, -INF, 1e-45) == ["0.25", "-0.0", "inf"]
    assert results("reciprocal", [0.0, -0.0]).tolist() == [8388608.0] * 2


def test_sqrt():
    assert texts("sqrt", 4, -0.0, INF, 0.0) == ["2.0", "-0.0", "inf", "0.0"]


@pytest.mark.parametrize(
    ("type", "value"), [("sqrt", NAN), ("sqrt", -1e-45), ("sqrt", -INF), ("reciprocal", NAN), ("reciprocal", -1e-45)]
)
def test_what_aborts_the_run(type, value):
    tile = np.ones((1, *SHAPE, 32, 32), np.float32)
    tile[0, 0, 0, 0, 17, 20] = value
    call = make_call(type, [operand(SHAPE)])
    for face in (run, reference):
        with pytest.raises(ProgramError, match=f"op a_{type}: {type} of NaN"):
            face(call, [tile])
    aside = make_call(type, [operand(SHAPE)], vector="c")
    assert run(aside, [tile])[0, 0, 0, 0, 17, 15] == 1, "the element is not processed"


def test_dropout():
    tile = np.full((1, *SHAPE, 32, 32), -2.0, np.float32)
    tile.reshape(-1)[15] = INF  # the first one dropped with p = 0.1
    call = make_call("dropout", [operand(SHAPE)], attributes={"p": 0.1})
    for face in (run, reference):
        result = face(call, [tile]).reshape(-1)
        assert np.isnan(result[15]), "0 * inf"
        assert np.count_nonzero(result == 0) == 106
        assert np.signbit(result[result == 0]).all(), "a dropped negative value is -0"
        assert result[0] == np.float32(-2) * np.float32(1 / (1 - float(np.float32(0.1))))


def test_dropout_without_p_zeroes_everything():
    assert texts("dropout", 3, -3) == ["0.0", "-0.0"]
    assert texts("dropout", 3, -3, p=0.0) == ["3.0", "-3.0"]


@pytest.mark.parametrize(("vector", "rows", "columns"), [("rc", 32, 32), ("r", 4, 32), ("c", 32, 16)])
def test_vector_region(vector, rows, columns):
    tile = np.full((1, *SHAPE, 32, 32), -3.0, np.float32)
    call = make_call("exp", [operand(SHAPE)], vector=vector)
    for face in (run, reference):
        result = face(call, [tile])[0, 0, 0, 0]
        assert (result[:rows, :columns] > 0).all()
        outside = np.concatenate([result[rows:].ravel(), result[:rows, columns:].ravel()])
        assert (outside.view(np.uint32) == 0).all(), "+0, not exp(0)"


@pytest.mark.parametrize(
    ("tile_dim", "vector", "rows", "columns"),
    [((16, 32), "r", 16, 32), ((2, 32), "r", 2, 32), ((32, 16), "c", 32, 16)],
)
def test_tiny_tiles_are_processed_whole_then_blanked(tile_dim, vector, rows, columns):
    tile = np.full((1, *SHAPE, 32, 32), -3.0, np.float32)
    result = run(make_call("square", [operand(SHAPE, tile_dim=tile_dim)], tile_dim, vector=vector), [tile])[0, 0, 0, 0]
    assert (result[:rows, :columns] == 9).all()
    assert np.count_nonzero(result) == rows * columns


def test_tiny_input_of_a_full_size_op_is_blanked_to_the_input():
    tile = np.full((1, *SHAPE, 32, 32), -3.0, np.float32)
    call = make_call("exp", [operand(SHAPE, tile_dim=(16, 32))], vector="r")
    assert np.count_nonzero(run(call, [tile])) == 16 * 32


def test_unknown_vector_mode():
    with pytest.raises(ProgramError, match="op a_exp: vector mode 'z'"):
        ops.implementation("exp").shape(make_call("exp", [operand(SHAPE)], vector="z"))
