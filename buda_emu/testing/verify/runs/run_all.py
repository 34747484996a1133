"""The run of all cases on workers, each in its own process: results are reported in the order in which they come."""

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from buda_emu.support.progress import KernelReport
from buda_emu.support.workers.job import Job, Lost, Workers
from buda_emu.support.workers.spread import spread
from buda_emu.testing.verify.result import CaseResult
from buda_emu.testing.verify.runs.collect import Case, unfinished_result

OnResult = Callable[[int, CaseResult], None]
OnKernel = Callable[[str, float | None], object]
"""Takes the name of a kernel, and the seconds that it took to compile; None when that begins."""
CASES: Final = Job("buda_emu.testing.verify.runs.run_case:runner")


def run_all(
    cases: Sequence[Case],
    workers: Workers,
    *,
    timeout: float,
    on_result: OnResult = lambda _index, _result: None,
    maxfail: int | None = None,
    job: Job = CASES,
    on_kernel: OnKernel | None = None,
) -> list[CaseResult]:
    """Test every case in a worker process, each for at most `timeout` seconds, and return the results in the order of
    cases. A case that crashes or hangs affects no other. `on_result` receives each result as it comes, with the case's
    number. After `maxfail` cases that did not pass, nothing is begun nor waited for; the result then lacks the cases
    that were not run. On a cluster netlists, references and defaults travel by content. `on_kernel` receives each
    kernel that is compiled for a case in a process of this machine. Raises the errors of `workers.spread`;
    KeyboardInterrupt ends all workers and goes on to the caller."""
    workers = replace(workers, count=max(1, min(workers.count, len(cases))))

    def on_lost(number: int, lost: Lost) -> CaseResult:
        """Return the result of a case whose process was lost."""
        return unfinished_result(cases[number], lost.kind, lost.text, lost.seconds)

    results: dict[int, CaseResult] = {}
    if workers.dask is not None:
        sent = map(by_content, cases)
    else:
        sent = cases

    def on_report(_number: int, kernel: KernelReport) -> None:
        if on_kernel is not None:
            on_kernel(*kernel)

    job = replace(job, reports=on_kernel is not None)
    running = spread(job, sent, workers, timeout=timeout, on_lost=on_lost, isolated=True, on_report=on_report)
    with closing(running) as arriving:
        for number, result in arriving:
            results[number] = result
            on_result(number, result)
            if maxfail is not None and result.status not in ("passed", "skipped"):
                maxfail -= 1
                if maxfail <= 0:
                    break
    return [results[number] for number in sorted(results)]


def by_content(case: Case) -> Case:
    """Return a copy of the case that holds the content of its files, so that another machine can test it without them.
    A netlist that can't be read stays a path: the worker reports it."""
    text = case.text
    if text is None:
        with suppress(OSError):  # the worker reports a file that is not there, like for local cases
            text = Path(case.path).read_bytes()
    reference = case.reference
    if reference is not None:
        reference = reference.by_content()
    return replace(case, text=text, reference=reference)
