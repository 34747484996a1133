"""The generators of stimuli (NETLIST 5.1)."""

import numpy as np
import pytest

from buda_emu.emulator.inputs.stimulus import generator, plain_values
from buda_emu.spec.blocking import Blocking
from buda_emu.spec.test_config import Stimulus
from buda_emu.support.errors import NetlistError

SMALL = Blocking((1, 2), 2, (1, 1), (2, 1), "r", (32, 32))  # t 2, 2x2 tiles
TINY = Blocking((1, 1), 1, (1, 1), (2, 2), "r", (8, 32))


def values(stimulus, blocking=SMALL, entries=1, integer=False, first=0, seed=0):
    return plain_values(stimulus, blocking, first, entries, integer, generator(seed, "q"))


@pytest.mark.parametrize(
    ("stimulus", "missing"),
    [
        (Stimulus("uniform", 0.0), "uniform_upper_bound"),
        (Stimulus("normal", normal_mean=0.0), "normal_stddev"),
        (Stimulus("constant"), "constant_value"),
        (Stimulus("debugtileid"), "debug_tile_id_base"),
    ],
)
def test_a_bound_that_is_missing_is_refused(stimulus, missing):
    with pytest.raises(NetlistError, match=f"{stimulus.type} needs {missing}"):
        values(stimulus)


def test_other_kinds_are_not_made_here():
    assert values(Stimulus("sparse")) is None


def test_uniform():
    data = values(Stimulus("uniform", -3.0, 5.0), entries=4)
    assert data.shape == (4, 2, 64, 64)
    assert -3 <= data.min() < -2.9
    assert 4.9 < data.max() < 5
    assert data.mean() == pytest.approx(1.0, abs=0.1)


def test_uniform_integers_take_both_bounds():
    data = values(Stimulus("uniform", -3.7, 5.9), integer=True)
    assert set(np.unique(data)) == set(range(-3, 6))


def test_normal():
    data = values(Stimulus("normal", normal_mean=1.0, normal_stddev=0.5), entries=4)
    assert data.mean() == pytest.approx(1.0, abs=0.02)
    assert data.std() == pytest.approx(0.5, abs=0.02)


def test_normal_integers():
    data = values(Stimulus("normal", normal_mean=10.9, normal_stddev=3.9), integer=True)
    assert np.array_equal(data, np.round(data))
    assert data.mean() == pytest.approx(10.0, abs=0.2)
    assert data.std() == pytest.approx(3.0, abs=0.2)


@pytest.mark.parametrize(
    "stimulus", [Stimulus("uniform", 0.0, 1.0), Stimulus("normal", normal_mean=0.0, normal_stddev=1.0)]
)
def test_a_queue_has_its_own_stream_whatever_the_cut(stimulus):
    whole = values(stimulus, entries=3)
    stream = generator(0, "q")
    parts = [plain_values(stimulus, SMALL, first, count, False, stream) for first, count in ((0, 1), (1, 2))]
    assert np.array_equal(whole, np.concatenate(parts))
    assert not np.array_equal(whole, values(stimulus, entries=3, seed=1))
    assert not np.array_equal(whole, plain_values(stimulus, SMALL, 0, 3, False, generator(0, "r")))


def test_constant_inside_a_range_of_the_tile():
    data = values(Stimulus("constant", constant_value=2.5, set_tile_rows=(1, 1), set_tile_cols=(3, 4)))
    expected = np.zeros((32, 32))
    expected[0, 2:4] = 2.5
    assert np.array_equal(data, np.tile(expected, (1, 2, 2, 2)))


def test_constant_integers_are_truncated():
    assert np.unique(values(Stimulus("constant", constant_value=-2.9), integer=True)) == [-2.0]


def test_debug_tile_id_numbers_tiles_over_entries():
    stimulus = Stimulus("debugtileid", debug_tile_id_base=100.0, debug_tile_id_step=0.5)
    data = values(stimulus, entries=2, first=1)
    tiles = data[:, :, ::32, ::32]
    assert np.array_equal(tiles.reshape(-1), 100 + 0.5 * np.arange(8, 24))
    assert np.array_equal(data, tiles.repeat(32, axis=2).repeat(32, axis=3))


def test_step_counts_through_rows_of_tiles():
    data = values(Stimulus("step", step_start=1.0, step_increment=2.0), TINY)
    first, second = data[0, 0, :8, :32], data[0, 0, :8, 32:]
    assert np.array_equal(first.reshape(-1), 1 + 2 * np.arange(256))
    assert np.array_equal(second.reshape(-1), 1 + 2 * np.arange(256, 512))
    later = values(Stimulus("step", step_start=1.0, step_increment=2.0), TINY, first=3)
    assert later[0, 0, 0, 0] == 1 + 2 * 3 * 1024


def test_step_adds_up_in_single_precision():
    data = values(Stimulus("step", step_start=0.0, step_increment=0.1))
    sums = np.float32(0.0)
    for _ in range(100):
        sums = np.float32(sums + np.float32(0.1))
    assert data[0, 0, 3, 4] == sums


def test_step_rowwise_offsets_tiles_by_their_width():
    data = values(Stimulus("steprowwise", step_start=5.0, step_increment=0.5))
    assert np.array_equal(data[0, 0, 0], np.concatenate([5 + 0.5 * np.arange(32), 37 + 0.5 * np.arange(32)]))
    assert np.array_equal(data[0, 1], np.broadcast_to(data[0, 0, 0], (64, 64)))


def test_step_columnwise_offsets_tiles_by_their_width():
    data = values(Stimulus("stepcolumnwise", step_start=0.0, step_increment=1.0), TINY)
    assert np.array_equal(data[0, 0, :, 0], [*range(8), *range(32, 40)])
    assert np.array_equal(data[0, 0], np.broadcast_to(data[0, 0, :, :1], (16, 64)))
