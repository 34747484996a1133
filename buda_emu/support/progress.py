"""The progress of long work: the record that callbacks get, the guard around a callback, and lines at intervals for a
reader who has no terminal (docs/python/embedding.md, "Progress").
"""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event, Thread
from typing import Any, Final, Literal, Self

INTERVAL: Final = 10.0
"""Seconds between two lines, and before the first."""
_LAST_LINE_SECONDS: Final = 1.0  # a reader who does not read must not hold up the work
LOGGER: Final = "buda_emu.progress"
"""The logger that gets these lines in Python, with level INFO."""

Stage = Literal[
    "preparing", "kernels", "passes", "search", "inputs", "programs", "epochs", "ops", "netlists", "points", "outputs"
]
"""The kind of work that an activity belongs to; `done` and `total` count its units."""


class Activity(str):
    """A sentence about what a call is doing at present. It is a string, with the stage, how many units of it are done,
    and of how many, 0 where nobody knows that."""

    stage: Stage
    done: int
    total: int

    def __new__(cls, text: str, stage: Stage, done: int = 0, total: int = 0) -> Self:
        """Make the record of a sentence."""
        activity = super().__new__(cls, text)
        activity.stage = stage
        activity.done = done
        activity.total = total
        return activity

    @property
    def text(self) -> str:
        """The sentence alone."""
        return str(self)

    def __repr__(self) -> str:
        return f"Activity({self.text!r}, stage={self.stage!r}, done={self.done}, total={self.total})"


Report = Callable[[Activity], object]
"""A callback for activities."""
KernelReport = tuple[str, float | None]
"""The name of a kernel that a worker process compiles, and the seconds that it took, None while it is compiled."""
SendKernel = Callable[[KernelReport], object]
"""Sends what a worker process reports of a kernel to its caller."""


def do_nothing(*_: object) -> None:
    """Do nothing with the arguments: the default of parameters that take a callback."""


@contextmanager
def guard_callback(callback: Report) -> Generator[Report]:
    """Give a function that calls the callback. An exception of the callback ends the block and is raised from it as it
    is, even where the work has swallowed it or made another error of it; the callback is not called again."""
    failures: list[BaseException] = []

    def report(activity: Activity) -> None:
        if failures:
            raise failures[0]
        try:
            callback(activity)
        except BaseException as error:
            failures.append(error)
            raise

    try:
        yield report
    except BaseException:
        if failures:
            raise failures[0] from None
        raise
    if failures:
        raise failures[0]


def duration_text(seconds: float) -> str:
    """Return a duration such as `12 s`, `3 min 20 s` or `2 h 5 min`."""
    total = round(seconds)
    if total < 60:
        return f"{total} s"
    minutes, remaining = divmod(total, 60)
    if minutes < 60:
        return f"{minutes} min {remaining} s"
    return f"{minutes // 60} h {minutes % 60} min"


class Heartbeat:
    """Writes at each interval what was shown last, and how long the work has taken. A thread writes the lines, so that
    they appear in work that reports nothing for long; there is none before something is shown, nor after `stop`."""

    def __init__(
        self,
        write: Callable[[str], object],
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[Event, float], bool] = Event.wait,
    ) -> None:
        """`clock` and `wait` are replaced in tests: `wait` returns whether the event was set within the seconds."""
        self._write = write
        self._clock = clock
        self._wait = wait
        self._start = clock()
        self._text: Callable[[], str] = str
        self._stopped = Event()
        self._thread: Thread | None = None

    def show(self, text: str | Callable[[], str]) -> None:
        """Set the text of the next line, or the function that makes it when it is due."""
        if isinstance(text, str):
            text = partial(str, text)
        self._text = text
        if self._thread is None:
            self._stopped = Event()
            self._thread = Thread(target=self.run, args=(self._stopped,), name="buda-emu progress", daemon=True)
            with suppress(RuntimeError):  # the machine has no more threads: the work goes on without lines
                self._thread.start()

    def stop(self) -> None:
        """Write no more lines until something is shown again. A line that is being written is waited for."""
        if self._thread is not None:
            self._stopped.set()
            if self._thread.is_alive():
                self._thread.join(_LAST_LINE_SECONDS)
            self._thread = None

    def run(self, stopped: Event) -> None:
        """Write a line whenever one is due until the event is set."""
        number = self._intervals() + 1
        while not self._wait(stopped, self._start + number * INTERVAL - self._clock()):
            self._write(f"{self._text()}; {duration_text(self._clock() - self._start)} so far")
            number = max(number, self._intervals()) + 1

    def _intervals(self) -> int:
        """Return the number of intervals that have passed."""
        return int((self._clock() - self._start) // INTERVAL)


@contextmanager
def logged_activities() -> Generator[Report]:
    """Give a callback whose activities go to the logger: each with level DEBUG, and at intervals the present one with
    level INFO. Without a logger that takes them it does nothing, and `logging` is not imported for it."""
    logger = find_logger(LOGGER)
    if logger is None:
        yield do_nothing
        return
    heartbeat = Heartbeat(partial(logger.info, "%s"))

    def report(activity: Activity) -> None:
        logger.debug("%s", activity)
        heartbeat.show(activity.text)

    try:
        yield report
    finally:
        heartbeat.stop()


@contextmanager
def reported_activities(progress: Report | None) -> Generator[Report]:
    """Give the function that reports what a call of the library is doing: to the callback of the caller, None for no
    callback, and to the logger. An exception of the callback ends the block and comes out of it."""
    with guard_callback(progress or do_nothing) as call, logged_activities() as log:

        def report(activity: Activity) -> None:
            log(activity)
            call(activity)

        yield report


def find_logger(name: str) -> Any:
    """Return the logger of this name if it takes messages of level INFO; None otherwise, also where nobody has imported
    `logging`."""
    logging = sys.modules.get("logging")
    if logging is None:
        return None
    logger = logging.getLogger(name)
    if not logger.isEnabledFor(logging.INFO):
        return None
    return logger
