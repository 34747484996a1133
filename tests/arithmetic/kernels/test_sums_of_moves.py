"""Sums that decide on moves of ops are exact, and rounded once, as those of `math.fsum`."""

import random
from math import fsum

import numpy as np
import pytest

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.kernels.noc import _add_exactly, _rounded_sum


@kernel
def exact_sum(terms, partials):
    """Return the sum of terms, rounded once."""
    count = 0
    for place in range(terms.shape[0]):
        count = _add_exactly(float(terms[place]), partials, count)
    return _rounded_sum(partials, count)


def terms_of(seed):
    """Terms of many sizes, of which some cancel."""
    draw = random.Random(seed)
    terms = [draw.uniform(-1, 1) * 2.0 ** draw.randrange(-80, 80) for _ in range(draw.randrange(40))]
    terms += [-term for term in terms if draw.random() < 0.8]
    draw.shuffle(terms)
    return terms


HALVES = [[1.0, 2.0**-53, sign * 2.0**-120] for sign in (1, 0, -1)] + [[-1.0, -(2.0**-53), -(2.0**-120)]]


@pytest.mark.parametrize("terms", [*HALVES, [], [0.0], [1e300, -1e300], *map(terms_of, range(60))])
def test_a_sum_is_rounded_once(terms):
    assert exact_sum(np.array(terms, np.float64), np.zeros(64)) == fsum(terms)
