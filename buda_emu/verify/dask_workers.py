"""Tests on an existing Dask cluster: netlists, references and defaults travel by content, results come back in order.

The same promises as `verify.workers`: a netlist that crashes or hangs costs that netlist only, because each slot of
the cluster runs netlists in a child process of its own (`verify.dask_plugin`).
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from buda_emu import __version__
from buda_emu.errors import HostError
from buda_emu.verify.case import Case, unfinished
from buda_emu.verify.result import CaseResult

CONNECT_SECONDS: Final = 10
OnResult = Callable[[int, CaseResult], None]


def run_all(
    cases: Sequence[Case],
    address: str,
    *,
    timeout: float,
    on_result: OnResult = lambda _index, _result: None,
    stop_at_first: bool = False,
) -> list[CaseResult]:
    """Run every case on the cluster whose scheduler is at `address` (tcp://host:8786), each for at most `timeout` s.

    `on_result` is told of each result as it comes; with `stop_at_first` nothing is waited for after a case that did
    not pass. Raises HostError when Dask is not installed, the cluster is not there, has no workers or runs another
    version of buda_emu.
    """
    client = _connect(address)
    try:
        _check_workers(client, address)
        return _work(client, cases, timeout, on_result, stop_at_first)
    finally:
        client.close()


def _connect(address: str) -> Any:
    try:
        import distributed
    except ImportError:
        raise HostError("--dask needs the package distributed: pip install 'buda-emu[dask]'") from None
    try:
        return distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        text = str(error) or type(error).__name__
        raise HostError(f"no Dask scheduler at {address} within {CONNECT_SECONDS} s: {text}") from None


def _check_workers(client: Any, address: str) -> None:
    """Raises HostError unless there are workers with this version of buda_emu."""
    try:
        versions: dict[str, str] = client.run(version)
    except ImportError as error:
        raise HostError(f"the Dask workers of {address} cannot import buda_emu: {error}") from None
    if not versions:
        raise HostError(f"the Dask cluster at {address} has no workers")
    for worker, found in versions.items():
        if found != __version__:
            raise HostError(
                f"Dask worker {worker} has buda-emu {found}, this is buda-emu {__version__}: install the same there"
            )


def version() -> str:
    """Of buda_emu where this is run."""
    return __version__


def _work(
    client: Any, cases: Sequence[Case], timeout: float, on_result: OnResult, stop_at_first: bool
) -> list[CaseResult]:
    from distributed import as_completed

    from buda_emu.verify.dask_plugin import Children, run_in_child

    mark = uuid4().hex  # two users of one cluster must not share children or results
    results: dict[int, CaseResult] = {}
    client.register_plugin(Children(mark), name=mark)
    futures: dict[Any, int] = {}
    finished: Any = as_completed(loop=client.loop)
    try:
        for index, case in enumerate(cases):
            key = f"buda-emu-{mark}-{index}"
            future = client.submit(run_in_child, by_content(case), mark, timeout, key=key, pure=False)
            futures[future] = index
            finished.add(future)
        for future in finished:
            index = futures[future]
            result = _result(future, cases[index])
            results[index] = result
            on_result(index, result)
            if stop_at_first and result.status not in ("passed", "skipped"):
                break
    finally:
        with suppress(Exception):  # the cluster may be gone: what went wrong before is the error
            client.cancel(list(futures))
            client.unregister_worker_plugin(mark)
    return [results[index] for index in sorted(results)]


def _result(future: Any, case: Case) -> CaseResult:
    if future.status == "finished":
        return future.result()
    error = future.exception() if future.status == "error" else None
    text = f"{type(error).__name__}: {error}" if error is not None else f"Dask says the task is {future.status}"
    return unfinished(case, "crashed", f"its Dask worker was lost ({text})", 0.0)


def by_content(case: Case) -> Case:
    """The same case without any path that another machine would have to know."""
    text = case.text
    if text is None:
        with suppress(OSError):  # a file that is not there is said by the worker, as it is for local ones
            text = Path(case.path).read_bytes()
    reference = case.reference.by_content() if case.reference is not None else None
    return replace(case, text=text, reference=reference)
