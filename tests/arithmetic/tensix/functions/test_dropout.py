import numpy as np
import pytest

from buda_emu.arithmetic.kernels.tensix.functions.vector_unit import random_words as kernel
from buda_emu.arithmetic.tensix.functions.elementary import (
    dropout_threshold,
    random_words,
    seed_registers,
    step_registers,
)
from buda_emu.arithmetic.tensix.functions.table import bf16_cut, bind, reference
from buda_emu.arithmetic.tensix.lanes import touched_mask
from device_vectors import mismatches

pytestmark = pytest.mark.tiny


@pytest.mark.parametrize("vector", ["rc", "c", "r"])
def test_kernel_is_the_definition(vector):
    state = seed_registers(0xBEEF, (3, 5))
    expected, after = random_words(state, 2, vector)
    words = np.empty_like(expected)
    kernel(state, words, touched_mask(vector))
    assert mismatches(words, expected) == 0
    assert state.tolist() == after.tolist()


def test_seeds_of_lanes():
    assert seed_registers(0x11234).tolist() == [(2 * i << 10) ^ 0x1234 for i in range(32)]
    assert seed_registers(0, (2, 3)).tolist() == [(2 * i << 10) ^ 16 for i in range(32)]


def test_a_register_runs_through_all_words_but_zero():
    state, seen = np.array([1], np.uint32), set()
    for _ in range(65535):
        state = step_registers(state)
        seen.add(int(state[0]))
    assert len(seen) == 65535
    assert 0 not in seen
    assert state.tolist() == [1]


def test_the_state_runs_on_over_tiles():
    whole, end = random_words(seed_registers(7), 3)
    first, state = random_words(seed_registers(7), 1)
    rest, state = random_words(state, 2)
    assert mismatches(np.concatenate([first, rest]), whole) == 0
    assert state.tolist() == end.tolist()


def test_vector_modes_make_fewer_passes():
    assert random_words(seed_registers(7), 1, "c")[1].tolist() == after(16)
    assert random_words(seed_registers(7), 1, "r")[1].tolist() == after(4)


def after(steps):
    state = seed_registers(7)
    for _ in range(steps):
        state = step_registers(state)
    return state.tolist()


def test_the_share_that_is_dropped():
    words, _ = random_words(seed_registers(0x5A5A), 20)
    below = dropout_threshold(0.3)
    assert below == 19660
    image = np.full_like(words, 0x3F800000)
    out = reference(bind("dropout", scale=bf16_cut(1 / 0.7), below=below), "fp32", image, words).view(np.float32)
    assert set(np.unique(out).tolist()) == {0.0, 1.421875}  # 1 / 0.7, truncated to bf16
    assert (out == 0).mean() == pytest.approx(0.3, abs=0.02)
