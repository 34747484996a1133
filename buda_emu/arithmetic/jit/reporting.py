"""Reports of long work: what its caller says that it is doing, and the kernels that are compiled meanwhile."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from buda_emu.arithmetic.jit.kernel import Compilation, compilations
from buda_emu.support.progress import Activity, Report, SendKernel, reported_activities

T = TypeVar("T")
R = TypeVar("R")


class _Reporter:
    """Passes activities on to a callback, those of kernels among them. When a kernel is done, what was reported before
    it is reported again: that is what goes on."""

    def __init__(self, callback: Report) -> None:
        self._callback = callback
        self._resumed: Activity | None = None
        self._kernels = 0

    def report(self, activity: Activity) -> None:
        """Report an activity other than compiling, and remember it, to be reported again after a kernel."""
        self._resumed = activity
        self._callback(activity)

    def report_start(self, name: str) -> None:
        """Report that a kernel is being compiled."""
        self._callback(Activity(f"compiling kernel {name} for this machine", "kernels", self._kernels))

    def report_end(self, compilation: Compilation) -> None:
        """Report that a kernel is compiled, and then what goes on."""
        self._kernels += 1
        name, seconds = compilation
        self._callback(Activity(f"compiled kernel {name} in {seconds:.1f} s", "kernels", self._kernels))
        if self._resumed is not None:
            self._callback(self._resumed)


@contextmanager
def reported_kernels(callback: Report) -> Generator[tuple[Report, list[Compilation]]]:
    """Give the function that reports activities to the callback, and the growing list of the kernels that are compiled
    during the block, which are reported, too. The callback may be called on any thread."""
    reporter = _Reporter(callback)
    with compilations(reporter.report_start, reporter.report_end) as compiled:
        yield reporter.report, compiled


def with_sent_kernels(work: Callable[[T], R], send: SendKernel) -> Callable[[T], R]:
    """Return the work function of a worker process, extended to `send` the kernels that it compiles to its caller, who
    announces them: (name, None) at the begin, (name, seconds) at the end."""

    def work_and_send(work_item: T) -> R:
        with compilations(lambda name: send((name, None)), lambda done: send((done.kernel, done.seconds))):
            return work(work_item)

    return work_and_send


@contextmanager
def reported_work(progress: Report | None) -> Generator[Report]:
    """Give the function that reports what a call of the library is doing (`reported_activities`). The kernels that are
    compiled during the block are reported, too."""
    with reported_activities(progress) as report, reported_kernels(report) as (report_all, _):
        yield report_all
