"""Two runs that meet at every tensor."""

import threading

import numpy as np
import pytest

from buda_emu.emulator.op_errors.numerics import PartnerFailedError, Rendezvous, run_both
from buda_emu.support.errors import InternalError

TILES = np.zeros((1, 1, 1024), np.float32)


def keys(meeting, side, names):
    def work():
        for number, name in enumerate(names):
            meeting.meet(side, ("op", name), TILES + number + 10 * side)

    return work


def test_both_sides_are_looked_at_in_order_whoever_comes_first():
    seen = []
    meeting = Rendezvous(lambda key, a, b: seen.append((key, float(a[0, 0, 0]), float(b[0, 0, 0]))))
    run_both(keys(meeting, 0, "abc"), keys(meeting, 1, "abc"), meeting)
    assert seen == [(("op", "a"), 0.0, 10.0), (("op", "b"), 1.0, 11.0), (("op", "c"), 2.0, 12.0)]


def test_looking_is_done_while_both_wait():
    running = []
    meeting = Rendezvous(lambda *_: running.append(threading.active_count()))
    before = threading.active_count()
    run_both(keys(meeting, 0, "ab"), keys(meeting, 1, "ab"), meeting)
    assert running == [before + 1] * 2
    assert threading.active_count() == before


@pytest.mark.parametrize(("first", "second"), [("ab", "ac"), ("ab", "a"), ("a", "ab"), ("", "a")])
def test_runs_that_differ_are_a_bug(first, second):
    meeting = Rendezvous(lambda *_: None)
    with pytest.raises(InternalError, match="two runs of one netlist differ"):
        run_both(keys(meeting, 0, first), keys(meeting, 1, second), meeting)


@pytest.mark.parametrize("side", [0, 1])
def test_the_error_of_the_side_that_fails_is_told_and_the_other_ends(side):
    meeting = Rendezvous(lambda *_: None)

    def fails():
        meeting.meet(side, ("op", "a"), TILES)
        raise ValueError("broken")

    works = [keys(meeting, 0, "ab"), keys(meeting, 1, "ab")]
    works[side] = fails
    with pytest.raises(ValueError, match="broken"):
        run_both(*works, meeting)
    assert [thread.name for thread in threading.enumerate()].count("expected run") == 0


@pytest.mark.parametrize(("second", "told"), [(ValueError, "first"), (KeyboardInterrupt, "second")])
def test_of_two_errors_the_simpler_run_tells_its_own(second, told):
    """Whichever comes first. An interruption goes before both."""
    failed = threading.Event()

    def side(number, error, word):
        def fails():
            if number == 0:
                failed.wait(5)
            else:
                failed.set()
            raise error(word)

        return fails

    with pytest.raises((ValueError, KeyboardInterrupt), match=told):
        run_both(side(0, ValueError, "first"), side(1, second, "second"), Rendezvous(lambda *_: None))


def test_an_error_while_looking_ends_both():
    def look(*_):
        raise ZeroDivisionError

    meeting = Rendezvous(look)
    with pytest.raises(ZeroDivisionError):
        run_both(keys(meeting, 0, "ab"), keys(meeting, 1, "ab"), meeting)


def test_the_keys_of_runs_that_differ_are_told():
    meeting = Rendezvous(lambda *_: None)
    with pytest.raises(InternalError, match=r"one is at \('op', '[bc]'\), the other at \('op', '[bc]'\)$"):
        run_both(keys(meeting, 0, "ab"), keys(meeting, 1, "ac"), meeting)


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_who_comes_after_a_failure_is_told_so(order):
    meeting = Rendezvous(lambda *_: None)
    for side, failed in enumerate(order):
        meeting.leave(side, failed=failed)
    with pytest.raises(PartnerFailedError):
        meeting.meet(0, ("op", "a"), TILES)
