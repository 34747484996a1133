"""Arrays as keys: equal by shape, type and every bit, without a copy."""

import numpy as np

from buda_emu.compiler.graph.graph import ArrayKey


def test_equal_arrays_are_one_key():
    array = np.arange(1000, dtype=np.float32).reshape(25, 40)
    turned = np.ascontiguousarray(array.T).T  # in another order in memory
    assert ArrayKey(array) == ArrayKey(array.copy()) == ArrayKey(turned)
    assert len({ArrayKey(array), ArrayKey(array.copy()), ArrayKey(turned)}) == 1


def test_one_bit_makes_another_key():
    for size, same in ((1000, False), (300_000, True)):  # of a large one only samples are hashed
        array = np.zeros(size, np.float32)
        other = array.copy()
        other[501] = -0.0  # equal as a number, between the samples
        assert ArrayKey(array) != ArrayKey(other)
        assert (hash(ArrayKey(array)) == hash(ArrayKey(other))) is same
    array = np.zeros(1000, np.float32)
    assert ArrayKey(array) != ArrayKey(array.reshape(10, 100))
    assert ArrayKey(array) != ArrayKey(array.astype(np.float64))
    assert ArrayKey(array) != 0


def test_numbers_and_nothing():
    assert ArrayKey(np.array(1.0)) == ArrayKey(np.array(1.0)) != ArrayKey(np.array(2.0))
    assert ArrayKey(np.zeros(0)) == ArrayKey(np.zeros(0))
    assert ArrayKey(np.array([np.nan])) == ArrayKey(np.array([np.nan]))
