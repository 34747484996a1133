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


def test_an_item_that_cannot_be_sent_ends_those_before(monkeypatch):
    started = []

    class Seen(actors_module.Process):
        def __init__(self, job):
            super().__init__(job)
            started.append(self)

    monkeypatch.setattr(actors_module, "Process", Seen)
    with pytest.raises(TypeError, match="does not travel"):
        Actors(Job("spread_functions:twice"), [1, object()], TWO)
    assert len(started) == 2
    assert all(process.has_ended for process in started)
