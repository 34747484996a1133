import numpy as np
import pytest

from buda_emu.arithmetic.kernels.functions.elementary import keep_mask, keep_scale

pytestmark = pytest.mark.tiny


@pytest.mark.parametrize(
    ("p", "dropped", "first_bits"),
    [(0.1, 107, 0x00008000), (0.3, 301, 0x1041D049), (0.5, 524, 0xBD61D059), (0.9, 901, 0xFFFFF47B)],
)
def test_check_values(p, dropped, first_bits):
    # OPS 5.1
    mask = keep_mask(p, 32, 32)
    assert np.count_nonzero(mask == 0) == dropped
    assert sum(int(mask[j] == 0) << j for j in range(32)) == first_bits


def test_nothing_and_everything():
    assert (keep_mask(0.0, 32, 32) == 1).all()
    assert (keep_mask(1.0, 32, 32) == 0).all()


def test_a_region_draws_only_for_itself():
    whole, columns, rows = keep_mask(0.5, 32, 32), keep_mask(0.5, 32, 16), keep_mask(0.5, 4, 32)
    np.testing.assert_array_equal(rows[:128], whole[:128])
    # the 17th draw is element (1, 0) there, element (0, 16) in a whole tile
    np.testing.assert_array_equal(columns[32:48], whole[16:32])
    assert (rows[128:] == 1).all()


def test_scale():
    assert keep_scale(0.3, has_p=True) == np.float32(1.42857146)
    assert keep_scale(1.0, has_p=True) == 1
    assert keep_scale(0.0, has_p=True) == 1
    assert keep_scale(0.0, has_p=False) == 0
