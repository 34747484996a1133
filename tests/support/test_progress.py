"""The record of what a call is doing, the guard around callbacks, and lines at intervals, with a clock that is set."""

import logging
import sys
import threading
from contextlib import suppress

import pytest

from buda_emu.support import progress
from buda_emu.support.progress import (
    INTERVAL,
    Activity,
    Heartbeat,
    find_logger,
    guard_callback,
    logged_activities,
    reported_activities,
)


class Clock:
    """Time that passes only while somebody waits. After `beats` waits that pass completely the event counts as set."""

    def __init__(self, beats: int, late: float = 0.0) -> None:
        self.now = 100.0
        self.waited: list[float] = []
        self._beats = beats
        self._late = late

    def read(self) -> float:
        return self.now

    def wait(self, _event: threading.Event, seconds: float) -> bool:
        self.waited.append(seconds)
        self.now += seconds + self._late
        return len(self.waited) > self._beats


def beat(clock: Clock, text: str = "searching") -> list[str]:
    """Return the lines of a heartbeat that is run on this thread."""
    lines: list[str] = []
    heartbeat = Heartbeat(lines.append, clock=clock.read, wait=clock.wait)
    heartbeat._text = lambda: text
    heartbeat.run(threading.Event())
    return lines


def test_an_activity_is_its_sentence_with_numbers() -> None:
    activity = Activity("op root", "ops", 3, 10)
    assert activity == "op root"
    assert (activity.text, activity.stage, activity.done, activity.total) == ("op root", "ops", 3, 10)
    assert type(activity.text) is str
    assert f"{activity}" == "op root"
    assert repr(activity) == "Activity('op root', stage='ops', done=3, total=10)"
    assert Activity("reading the model", "preparing").total == 0


def test_a_line_is_due_after_each_interval_and_none_before() -> None:
    clock = Clock(beats=3)
    assert beat(clock) == ["searching; 10 s so far", "searching; 20 s so far", "searching; 30 s so far"]
    assert clock.waited == [INTERVAL] * 4


def test_a_late_line_does_not_move_the_next_one_and_an_early_one_is_not_repeated() -> None:
    late = Clock(beats=2, late=3.0)
    assert beat(late) == ["searching; 13 s so far", "searching; 23 s so far"]
    assert late.waited[1:] == [7.0, 7.0]
    early = Clock(beats=2, late=-0.25)
    assert len(beat(early)) == 2
    assert early.waited[1] == 10.25
    slow = Clock(beats=2, late=25.0)  # a machine that slept
    assert len(beat(slow)) == 2
    assert slow.waited[1] == 5.0


def test_a_thread_writes_what_was_shown_last_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 0.01)
    written = threading.Event()
    lines: list[str] = []

    def write(text: str) -> None:
        lines.append(text)
        written.set()

    heartbeat = Heartbeat(write)
    assert names_of_threads() == []  # nothing is shown yet
    heartbeat.show("first")
    assert written.wait(10)
    written.clear()
    heartbeat.show(lambda: "made when it is due")
    assert written.wait(10)
    written.clear()
    assert written.wait(10)
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "buda-emu progress"]
    heartbeat.stop()
    thread.join(10)
    assert names_of_threads() == []
    heartbeat.stop()  # twice does no harm
    assert lines[0].startswith("first; ")
    assert lines[-1].startswith("made when it is due; ")


def test_where_no_thread_can_be_started_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    heartbeat = Heartbeat(print)
    heartbeat.show("first")
    heartbeat.show("second")
    heartbeat.stop()


def names_of_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "buda-emu progress"]


def swallow(report) -> None:
    with suppress(BaseException):
        report(Activity("swallowed", "passes"))


def use(report) -> None:
    report(Activity("only", "passes"))


def swallow_and_go_on(report) -> None:
    swallow(report)
    use(report)


def swallow_and_fail(report) -> None:
    swallow(report)
    raise OSError("of the work")


def make_another_error(report) -> None:
    try:
        use(report)
    except BaseException as error:
        raise OSError("of the work") from error


@pytest.mark.parametrize("work", [use, swallow, swallow_and_go_on, swallow_and_fail, make_another_error])
@pytest.mark.parametrize("error", [ValueError("callback"), KeyboardInterrupt()])
def test_an_exception_of_a_callback_comes_out_whatever_the_work_makes_of_it(work, error: BaseException) -> None:
    calls: list[str] = []

    def callback(activity: Activity) -> None:
        calls.append(activity.text)
        raise error

    def guarded() -> None:
        with guard_callback(callback) as report:
            work(report)

    with pytest.raises(type(error)) as raised:
        guarded()
    assert raised.value is error
    assert len(calls) == 1  # it is not called again


def test_errors_of_the_work_pass_a_guard() -> None:
    def guarded() -> None:
        with guard_callback(lambda _: None) as report:
            use(report)
            raise OSError("of the work")

    with pytest.raises(OSError, match="of the work"):
        guarded()


def test_logging_that_nobody_has_set_up_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_logger("buda_emu.progress") is None  # the root logger takes warnings
    with logged_activities() as report:
        report(Activity("step", "passes"))
        assert names_of_threads() == []
    monkeypatch.delitem(sys.modules, "logging")
    assert find_logger("buda_emu.progress") is None
    assert "logging" not in sys.modules


def test_logging_gets_each_activity_and_the_present_one_at_intervals(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 0.01)
    seen: list[Activity] = []
    with caplog.at_level(logging.DEBUG, "buda_emu"), reported_activities(seen.append) as report:
        report(Activity("100 % of step one", "passes", 1, 2))
        while not any(record.levelno == logging.INFO for record in caplog.records):
            threading.Event().wait(0.002)
    assert names_of_threads() == []
    first, *others = caplog.records
    assert (first.name, first.levelno, first.getMessage()) == ("buda_emu.progress", logging.DEBUG, "100 % of step one")
    assert all(record.getMessage().startswith("100 % of step one; ") for record in others)
    assert [activity.stage for activity in seen] == ["passes"]
