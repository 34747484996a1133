import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator import ops
from buda_emu.emulator.ops.base import Operand
from buda_emu.emulator.ops.topk import Row, network
from buda_emu.spec.blocking import Blocking
from buda_emu.support.errors import ProgramError, UnsupportedError
from op_examples.example import assert_same_bits, make_call, operand, reference, run

pytestmark = pytest.mark.tiny
F32 = np.float32


def topk_call(cols, k, cores=1, **attributes):
    blocking = Blocking((1, cores), 1, (1, 1), (1, -(-k // 32) or 1), "r")
    values, indices = (Operand(TileMap.identity((1, 1, cols)), label=label) for label in ("Float16_b", "UInt16"))
    return make_call("topk", [values, indices], blocking=blocking, attributes={"k": k, "sort": "max", **attributes})


def topk(values, indices, k, cores=1, **attributes):
    """Both faces on rows [32, n]; the rows of the result."""
    tensors = [
        np.ascontiguousarray(rows, F32).reshape(1, 1, 1, 32, -1, 32).swapaxes(3, 4) for rows in (values, indices)
    ]
    call = topk_call(tensors[0].shape[3], k, cores, **attributes)
    expected = reference(call, tensors)
    assert_same_bits(run(call, tensors), expected)
    return expected[0, 0, 0].swapaxes(0, 1).reshape(32, -1)


def row_of(values, k, kreduce=False):
    row = Row(values, range(len(values)))
    row.network(k, kreduce)
    return row


# ------------------------------------------------------------------------------------------------ the network itself


def test_compare_exchange():
    def exchanged(largest, a, b):
        row = Row([a, b], [0, 1])
        row.compare_exchange(largest, 0, 1)
        return row.indices == [1, 0]

    assert exchanged(True, 1.0, 2.0)
    assert not exchanged(True, 2.0, 1.0)
    assert exchanged(True, -1.0, -1.0), "negative equals change places"
    assert not exchanged(True, 1.0, 1.0)
    assert not exchanged(True, -0.0, 0.0)
    assert exchanged(False, 2.0, 1.0)
    assert not exchanged(False, 1.0, 2.0)
    assert exchanged(False, 1.0, 1.0), "the other way round, equals that are not negative do"
    assert exchanged(False, 0.0, -0.0)
    assert not exchanged(False, -1.0, -1.0)
    for a, b in ((np.nan, 1.0), (1.0, np.nan), (np.nan, np.nan)):
        assert not exchanged(True, a, b)
        assert not exchanged(False, a, b)


def test_a_bitonic_pass_sorts():
    row = Row([1.0, 5.0, 7.0, 8.0, 6.0, 4.0, 3.0, 2.0], range(8))
    row.bitonic_pass(0, 8, largest=True)
    assert row.values == [8, 7, 6, 5, 4, 3, 2, 1]
    row = Row([9.0, 1.0, 5.0, 4.0, 2.0, 9.0], range(6))
    row.bitonic_pass(1, 4, largest=False)
    assert row.values == [9, 1, 2, 4, 5, 9]


def test_flip_exchanges_once_more():
    row = Row([1.0, 2.0], [0, 1])
    row.bitonic_pass(0, 2, largest=True, flip=True)
    assert row.values == [1, 2]


def test_k_1_takes_the_first_of_the_greatest():
    assert row_of([3.0, 7.0, 7.0, 5.0], 1).indices[0] == 1
    assert row_of([-3.0, -1.0, -2.0, -1.0], 1).indices[0] == 3, "of equal negative ones the later"


def test_runs_that_are_taken_as_sorted():
    # kreduce with k <= 16: no sorting, only the merge of the run 0..3 (descending) with the run 4..7 (ascending)
    assert row_of([9.0, 7.0, 5.0, 3.0, 1.0, 2.0, 6.0, 8.0], 4, kreduce=True).values[:4] == [9, 8, 7, 6]


@pytest.mark.parametrize("kreduce", [False, True])
@pytest.mark.parametrize(("elements", "k"), [(32, 1), (32, 16), (32, 32), (96, 32), (256, 64), (256, 128)])
def test_the_kernels_network_is_that_of_a_row(elements, k, kreduce):
    class Recorder(Row):
        def __init__(self):
            super().__init__(range(elements), range(elements))
            self.steps = []

        def compare_exchange(self, largest, i, j):
            self.steps.append([i, j, int(largest), 0])

        def swap(self, i, j):
            assert self.steps[-1][:2] == [i, j]
            self.steps[-1][3] = 1

    def steps_of_each(steps):
        """Exchanges that share no element may come in any order."""
        return [[step for step in steps if element in step[:2]] for element in range(elements)]

    recorder = Recorder()
    recorder.network(k, kreduce)
    assert steps_of_each(network(elements, k, kreduce).tolist()) == steps_of_each(recorder.steps)


def test_flips_are_in_phases_3_and_4_of_long_sorts():
    steps = network(256, 64, False)
    flipped = steps[steps[:, 3] == 1]
    assert set(flipped[:, 0] % 128 // 64) == {1}
    assert len(flipped) == 2 * 32 * (4 + 5), "two halves of 64, phases of 4 and 5 passes"
    assert not network(256, 32, False)[:, 3].any()
    assert not network(256, 64, True)[:, 3].any()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 5), st.integers(0, 5), st.randoms(use_true_random=False))
def test_values_come_out_sorted(runs, k_bits, random):
    k = 1 << k_bits
    values = [float(random.randint(-6, 6)) for _ in range(k << runs)]
    row = row_of(values, k)
    assert row.values[:k] == sorted(values, reverse=True)[:k]
    assert [values[index] for index in row.indices] == row.values


# ------------------------------------------------------------------------------------------------------------- the op


def test_values_and_indices():
    rng = np.random.default_rng(1)
    values = np.stack([rng.permutation(64) for _ in range(32)]) - 20.5
    indices = np.stack([rng.permutation(64) for _ in range(32)])
    best = topk(values, indices, 8)
    assert best.shape == (32, 32)
    np.testing.assert_array_equal(best[:, :8], -np.sort(-values)[:, :8])
    assert (best[:, 8:] == 0).all()
    where = topk(values, indices, 8, sort="argmax")
    np.testing.assert_array_equal(where[:, :8], np.take_along_axis(indices, np.argsort(-values), 1)[:, :8])
    assert_same_bits(topk(values, indices, 8, sort=""), where)


def test_each_core_keeps_its_own():
    values = np.tile(np.arange(128), (32, 1))
    best = topk(values, values, 64, cores=2)
    np.testing.assert_array_equal(best[5], [*range(63, -1, -1), *range(127, 63, -1)])


def test_indices_are_truncated():
    values = np.tile(np.arange(32.0, 0, -1), (32, 1))
    indices = np.zeros((32, 32))
    indices[:, :6] = 2.9, -2.9, -0.5, 1e30, np.nan, -(2.0**31)
    where = topk(values, indices, 8, sort="argmax")
    np.testing.assert_array_equal(where[0, :6], [2, -2, 0, -(2.0**31), -(2.0**31), -(2.0**31)])
    assert not np.signbit(where[0, 2])


def test_labels_and_shape():
    implementation = ops.implementation("topk")
    assert implementation.label(topk_call(2, 4)) == "Float16_b"
    assert implementation.label(topk_call(2, 4, sort="argmax")) == "UInt16"
    assert implementation.label(topk_call(2, 4, sort="")) == "UInt16"
    assert implementation.shape(topk_call(4, 4, cores=2)) == (1, 1, 2)
    assert implementation.shape(topk_call(4, 64)) == (1, 1, 2)


def test_what_cannot_be_run():
    implementation = ops.implementation("topk")
    for k in (0, -4, 128):
        with pytest.raises(ProgramError, match=f"op a_topk: topk with k {k} of rows of 64 elements"):
            implementation.shape(topk_call(2, k))
    with pytest.raises(UnsupportedError, match="op a_topk: topk with k 5"):
        implementation.shape(topk_call(2, 5))
    with pytest.raises(ProgramError, match="cannot split 3 columns over 2 grid columns"):
        implementation.shape(topk_call(3, 4, cores=2))
    with pytest.raises(ProgramError, match="different dims"):
        implementation.shape(make_call("topk", [operand((1, 1, 2)), operand((1, 1, 1))], attributes={"k": 4}))
