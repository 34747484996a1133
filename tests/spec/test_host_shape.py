"""Four dimensions of host tensors of any number of them (LAYOUT 1, NETLIST 7.4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.spec.host_shape import expand_shape, outermost_first
from buda_emu.support.errors import HostError


@pytest.mark.parametrize(
    ("shape", "expanded"),
    [
        ((5,), (5, 1, 1, 1)),
        ((5, 7), (5, 1, 1, 7)),
        ((5, 7, 9), (5, 1, 7, 9)),
        ((5, 7, 9, 11), (5, 7, 9, 11)),
        ((1, 1, 5, 7, 9, 11), (5, 7, 9, 11)),
    ],
)
def test_expansion(shape, expanded):
    assert expand_shape(shape) == expanded


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_reading_undoes_the_expansion(shape):
    read = outermost_first(expand_shape(shape), len(shape))
    assert read == (1,) * (4 - len(shape)) + tuple(shape)


@pytest.mark.parametrize("shape", [(), (2, 1, 1, 1, 1)])
def test_no_expansion(shape):
    with pytest.raises(HostError, match="has no form"):
        expand_shape(shape)
