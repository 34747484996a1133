"""Reports of long work: what its caller says that it is doing, and the kernels that are compiled meanwhile."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from buda_emu.arithmetic.jit.kernel import Compilation, compilations
from buda_emu.support.progress import Activity, Report, SendKernel, reported_activities

T = TypeVar("T")
R = TypeVar("R")


class _Reporter:
    """Passes activities on to a callback: what the caller does, and the start and end of each compilation. After a
    compilation the caller's latest activity is reported again, because that is what goes on."""

    def __init__(self, callback: Report) -> None:
        self._callback = callback
        self._resumed: Activity | None = None
        self._kernels = 0

    def report(self, activity: Activity) -> None:
        """Report an activity of the caller, and remember it, so that it is reported again after a compilation."""
        self._resumed = activity
        self._callback(activity)

    def report_start(self, name: str) -> None:
        """Report that a kernel is being compiled."""
        self._callback(Activity(f"compiling kernel {name} for this machine", "kernels", self._kernels))

    def report_end(self, compilation: Compilation) -> None:
        """Report that a kernel is compiled, and again the caller's latest activity, if there was one."""
        self._kernels += 1
        name, seconds = compilation
        self._callback(Activity(f"compiled kernel {name} in {seconds:.1f} s", "kernels", self._kernels))
        if self._resumed is not None:
            self._callback(self._resumed)


@contextmanager
def reported_kernels(callback: Report) -> Generator[tuple[Report, list[Compilation]]]:
    """Report the kernels that are compiled during the block to `callback`, on whichever thread compiles them. Yield the
    function by which the block reports its own activities to it, and the list of the compilations, which grows."""
    reporter = _Reporter(callback)
    with compilations(reporter.report_start, reporter.report_end) as compiled:
        yield reporter.report, compiled


def with_sent_kernels(work: Callable[[T], R], send: SendKernel) -> Callable[[T], R]:
    """Return the work function of a worker process, extended to `send` the kernels that it compiles to its caller, who
    reports them: (name, None) when a compilation begins, (name, seconds) when it ends."""

    def work_and_send(work_item: T) -> R:
        """Work on one item, and send the kernels that are compiled meanwhile."""
        with compilations(lambda name: send((name, None)), lambda done: send((done.kernel, done.seconds))):
            return work(work_item)

    return work_and_send


@contextmanager
def reported_work(progress: Report | None) -> Generator[Report]:
    """Report what a call of the library does during the block, compilations of kernels included, to the log and to
    `progress`, unless that is None. Yield the function by which the block reports its activities. An exception of
    `progress` ends the block."""
    with reported_activities(progress) as report, reported_kernels(report) as (report_all, _):
        yield report_all
