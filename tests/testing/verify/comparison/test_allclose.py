"""Which elements are close, by hand (NETLIST 5.3, allclose)."""

import numpy as np
import pytest

from buda_emu.testing.verify.comparison import close, equal

INF, NAN = float("inf"), float("nan")
HUGE = 2.0**126


@pytest.mark.parametrize(
    ("a", "b", "atol", "rtol", "expected"),
    [
        (1.0, 1.5, 0.5, 0.0, True),  # the bound itself is close
        (1.0, 1.5, 0.49, 0.0, False),
        (2.0, 1.5, 0.0, 0.25, True),  # 0.5 <= 0.25 * 2
        (1.5, 2.0, 0.0, 0.25, True),  # of the larger magnitude, on whichever side
        (2.0, 1.25, 0.0, 0.25, False),
        (-2.0, -1.5, 0.0, 0.25, True),
        (1.0, 2.0, 0.5, 0.25, True),  # 1 <= 0.5 + 0.25 * 2
        (1.0, 2.0, 0.5, 0.24, False),
        (1.0, -1.0, 1.9, 0.0, False),
        (0.0, -0.0, 0.0, 0.0, True),
        (NAN, NAN, 0.0, 0.0, True),
        (NAN, 1.0, 1e9, 1.0, False),
        (1.0, NAN, 1e9, 1.0, False),
        (NAN, INF, 1e9, 1.0, False),
        (INF, NAN, 1e9, 1.0, False),
        (INF, INF, 0.0, 0.0, True),
        (-INF, -INF, 0.0, 0.0, True),
        (INF, -INF, 1e9, 1.0, False),
        (INF, HUGE, 0.0, 0.0, True),  # a finite value near the end of float32 matches
        (HUGE, INF, 0.0, 0.0, True),
        (-HUGE, -INF, 0.0, 0.0, True),
        (-HUGE, INF, 0.0, 0.0, False),
        (INF, np.nextafter(np.float32(HUGE), np.float32(0)), 1e9, 1.0, False),
        (INF, 1.0, 1e9, 1.0, False),
    ],
)
def test_close(a, b, atol, rtol, expected):
    assert close(np.array([float(a)]), np.array([float(b)]), atol, rtol).tolist() == [expected]


def test_each_element_by_itself():
    a = np.array([1.0, NAN, INF, 1.0, 5.0])
    b = np.array([1.0, NAN, -INF, NAN, 5.5])
    assert close(a, b, 0.1, 0.0).tolist() == [True, True, False, False, False]


def test_equal_takes_nan_for_itself():
    a = np.array([1.0, NAN, INF, -INF, 0.0, NAN, 1.0])
    b = np.array([1.0, NAN, INF, INF, -0.0, 1.0, 1.0000001])
    assert equal(a, b).tolist() == [True, True, True, False, True, False, False]
