"""Whatever another library has done to a thread, it computes with denormals, and gets its state back."""

import pytest

from buda_emu.arithmetic.formats import float_state
from buda_emu.arithmetic.formats.float_state import exact_floats, set_exact
from buda_emu.support.errors import UnsupportedError
from float_states import flushes, flushing, needs_states

pytestmark = [needs_states, pytest.mark.tiny]


def test_the_state_is_set_meanwhile_and_given_back() -> None:
    with flushing():
        assert flushes()
        assert exact_floats(flushes)() is False
        assert flushes()
    assert not flushes()


def test_it_is_given_back_behind_an_exception() -> None:
    @exact_floats
    def fail() -> None:
        raise ValueError

    with flushing():
        with pytest.raises(ValueError):  # noqa: PT011 - which one is plain
            fail()
        assert flushes()


def test_set_exact() -> None:
    with flushing():
        set_exact()
        assert not flushes()


def test_what_cannot_be_set_back_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(float_state, "_is_exact", lambda: False)
    with flushing(), pytest.raises(UnsupportedError, match="cannot be set back"):
        set_exact()
