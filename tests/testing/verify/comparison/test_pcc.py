"""The vendor's PCC, case by case (NETLIST 5.3). Expected figures are worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.testing.verify.comparison import Bounds, passes, pcc, replace_special

HALF = [0.0] * 4 + [1.0] * 4
INF, NAN = float("inf"), float("nan")
FLT_MAX = 3.4028234663852886e38


def row(*values):
    return np.array([values], np.float64)


def judge(a, b, check_pcc, *, atol=0.0, rtol=0.0, constant=False, signed=True, count=None):
    """Verdict and coefficient of one row."""
    a, b = row(*a), row(*b)
    bounds = Bounds(check_pcc, atol, rtol)
    good, value = passes(a, b, count or a.shape[1], bounds, np.array([constant]), signed=signed)
    return bool(good[0]), float(value[0])


def test_the_coefficient_of_ones_and_zeros_by_hand():
    # E[ab] = 3/8, means 1/2, variances 1/4: (3/8 - 1/4) / (1/4)
    value, rounded = pcc(row(*HALF), row(1, 0, 0, 0, 1, 1, 1, 0), 8)
    assert value.tolist() == [0.5]
    assert rounded.tolist() == [False]


def test_a_larger_count_divides_the_sums():
    # 4 elements counted as 8: means 1/4, E[x^2] 1/4, variance 3/16, covariance 1/8 - 1/16 = 1/16
    value, _ = pcc(row(1, 1, 0, 0), row(1, 0, 1, 0), 8)
    assert value[0] == pytest.approx((1 / 16) / (3 / 16), rel=1e-15)


@pytest.mark.parametrize(
    ("check_pcc", "expected"), [(0.5, True), (0.5000001, False), (0.4, True), (-0.5, False), (0.0, True)]
)
def test_the_bound_itself_passes_and_signs_must_agree(check_pcc, expected):
    assert judge(HALF, [1, 0, 0, 0, 1, 1, 1, 0], check_pcc) == (expected, 0.5)


@pytest.mark.parametrize(("check_pcc", "expected"), [(-0.5, True), (-0.6, False), (0.5, False), (0.1, False)])
def test_a_negative_coefficient_needs_a_negative_bound(check_pcc, expected):
    assert judge(HALF, [0, 1, 1, 1, 0, 0, 0, 1], check_pcc) == (expected, -0.5)


def test_a_bound_of_zero_passes_whatever_the_coefficient():
    assert judge(HALF, [0, 1, 1, 1, 0, 0, 0, 1], 0.0)[0]
    assert judge([NAN, 1.0], [1.0, 2.0], 0.0)[0]


def test_a_coefficient_beyond_rounding_fails():  # |pcc| <= 1.0000001
    slightly = [10000.41, 10001.04, 9999.87], [15007.615, 15008.56, 15006.805]  # computes to 1.00000006518
    too_far = [9999.84, 10000.54, 10000.21], [15006.76, 15007.81, 15007.315]  # computes to 1.00000014176
    assert judge(*slightly, 0.99) == (True, pytest.approx(1.0000000651844314, rel=1e-12))
    assert judge(*too_far, 0.99) == (False, pytest.approx(1.0000001417615376, rel=1e-12))


def test_the_limit_of_rounding_itself_passes():
    # two elements counted as one: both variances are 1 - 1 and q^2 - q^2, the covariance is 0 - 1 * q. The deviations
    # count as 1e-5 each: the coefficient is -q / 1e-10
    q = 1.0000001000000002e-10
    assert judge([1.0, 0.0], [0.0, -q], 0.99, count=1) == (True, 1.0000001)
    assert judge([1.0, 0.0], [0.0, -np.nextafter(q, 1)], 0.99, count=1)[0] is False


def test_a_deviation_of_zero_counts_as_a_hundred_thousandth():
    # The variance of a is lost in 1e18, the covariance is 1/4, the deviation of b 1/2: 1/4 / (1e-5 * 1/2)
    value, _ = pcc(row(1e9, 1e9 + 1, 1e9, 1e9 + 1), row(0, 1, 0, 1), 4)
    assert value[0] == pytest.approx(50000.0, rel=1e-12)
    assert pcc(row(2, 2, 2, 2), row(0, 1, 0, 1), 4)[0][0] == 0.0


def test_a_negative_variance_of_rounding_counts_as_zero():
    # three times 0.003: E[x^2] - mean^2 is -3.4e-21, the ratio 1 + 4e-16; all three cases fire
    value, rounded = pcc(row(0.003, 0.003, 0.003), row(0.003, 0.003, 0.003), 3)
    assert rounded.tolist() == [True]
    assert value[0] == 0.0
    assert judge([0.003] * 3, [0.003] * 3, 0.99) == (True, 1.0)  # counted as 1 even without the note of constants
    # with another b only one case fires
    assert pcc(row(0.003, 0.003, 0.003), row(1, 2, 3), 3)[1].tolist() == [False]
    assert not judge([0.003] * 3, [1, 2, 3], 0.99)[0]


def test_a_negative_variance_beyond_rounding_is_kept():
    # counted as 2 of 4 elements: E[x^2] = 2, mean^2 = 4, variance -2: its root is NaN
    value, rounded = pcc(row(1, 1, 1, 1), row(1, 1, 1, 1), 2)
    assert np.isnan(value[0])
    assert rounded.tolist() == [False]


def test_the_ratio_that_counts_as_rounding_ends_at_its_limit():
    # one element x counted as c < 1 times: E[x^2] = x^2/c, mean^2 = x^2/c^2, so the ratio is 1/c
    # (the second count gives a ratio of exactly 1.0000001)
    for count, rounding in ((1 / 1.00000005, True), (0.9999999000000099, True), (1 / 1.00000015, False)):
        assert pcc(row(1.0), row(1.0), count)[1].tolist() == [rounding]


def test_all_three_cases_must_fire():
    assert pcc(row(1.0), row(-1.0), 1 / 1.00000005)[1].tolist() == [False]  # both variances, not the covariance
    # two elements counted as 2/1.00000005; a = 1 -+ 0.001 has a variance of its own, b and the covariance fire
    assert pcc(row(0.999, 1.001), row(1.0, 1.0), 2 / 1.00000005)[1].tolist() == [False]
    assert pcc(row(1.0, 1.0), row(0.999, 1.001), 2 / 1.00000005)[1].tolist() == [False]


def test_constants_are_held_together_by_the_tolerances():
    assert judge([1.0] * 4, [1.5] * 4, 0.99, atol=0.5, constant=True) == (True, 1.0)  # |1 - 1.5| <= 0.5
    assert judge([1.0] * 4, [1.5] * 4, 0.99, atol=0.4, constant=True) == (False, 0.0)
    assert judge([1.0] * 4, [2.0] * 4, 0.99, rtol=0.5, constant=True) == (True, 1.0)  # 1 <= 0.5 * 2
    assert judge([1.0] * 4, [2.0] * 4, 0.99, rtol=0.49, constant=True)[0] is False
    assert judge([2.0] * 4, [1.0] * 4, 0.99, rtol=0.5, constant=True)[0] is False  # 1 <= 0.5 * 1 does not hold
    assert judge([1.0] * 4, [1.5] * 4, 0.99, atol=0.5, constant=False)[0] is False


def test_the_tolerance_of_constants_follows_the_sign_of_the_mean():
    # vendor: 0.5 <= 0.5 + 0.1 * -1.5 does not hold; plain meaning: 0.5 <= 0.5 + 0.1 * 1.5 does
    assert judge([-1.0] * 4, [-1.5] * 4, 0.99, atol=0.5, rtol=0.1, constant=True, signed=True)[0] is False
    assert judge([-1.0] * 4, [-1.5] * 4, 0.99, atol=0.5, rtol=0.1, constant=True, signed=False)[0] is True


def test_a_passing_coefficient_is_kept_for_constants():
    assert judge(HALF, HALF, 0.99, atol=10, constant=True) == (True, 1.0)
    assert judge(HALF, [1, 0, 0, 0, 1, 1, 1, 0], 0.5, atol=10, constant=True) == (True, 0.5)


def test_rows_are_judged_apart():
    a = np.array([HALF, HALF])
    b = np.array([HALF, HALF[::-1]])
    good, value = passes(a, b, 8, Bounds(0.9, 0, 0), np.zeros(2, bool), signed=True)
    assert good.tolist() == [True, False]
    assert value.tolist() == [1.0, -1.0]


def test_infinities_become_the_largest_float32_and_nan_zero_where_it_is_asked_for():
    values = row(INF, -INF, NAN, 1.5)
    assert replace_special(values, nan_is_zero=True).tolist() == [[FLT_MAX, -FLT_MAX, 0.0, 1.5]]
    kept = replace_special(values, nan_is_zero=False)
    assert kept[0, [0, 1, 3]].tolist() == [FLT_MAX, -FLT_MAX, 1.5]
    assert np.isnan(kept[0, 2])


@given(st.lists(st.floats(-100, 100, width=32), min_size=2, max_size=40), st.data())
def test_it_is_pearsons_where_nothing_is_degenerate(a, data):
    b = data.draw(st.lists(st.floats(-100, 100, width=32), min_size=len(a), max_size=len(a)))
    if np.std(a) < 0.1 or np.std(b) < 0.1:
        return
    assert pcc(row(*a), row(*b), len(a))[0][0] == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-6)
