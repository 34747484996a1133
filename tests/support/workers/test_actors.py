"""Workers of one item each: how they ended, in words, and that they end."""

from contextlib import closing

import pytest

from buda_emu.support.workers import spread as actors_module
from buda_emu.support.workers.job import Job, Workers
from buda_emu.support.workers.spread import Actors
from case_functions import until

TWO = Workers(2)


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(actors_module, "_FATE_SECONDS", 1.0)


def test_one_that_is_done_has_no_fate_and_lives():
    with closing(Actors(Job("spread_functions:no_three"), [1, 2], TWO)) as actors:
        assert [actors.fate(number) for number in range(2)] == ["", ""]
        assert not any(actors.has_ended(number) for number in range(2))


def test_the_error_of_one_is_its_fate():
    with closing(Actors(Job("spread_functions:no_three"), [2, 3], TWO)) as actors:
        assert [actors.fate(number) for number in range(2)] == ["", "three is refused"]


def test_one_that_died_is_said_to_have_died_how():
    with closing(Actors(Job("spread_functions:dies_at_one"), [0, 1], TWO)) as actors:
        assert until(lambda: actors.has_ended(1))
        assert not actors.has_ended(0)
        assert actors.fate(1) == "its worker process died (signal SIGKILL)"


def test_closing_ends_them_all():
    actors = Actors(Job("spread_functions:twice"), [1, 2], TWO)
    processes = list(actors._processes)
    actors.close()
    assert all(process.has_ended for process in processes)
