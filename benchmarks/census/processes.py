"""Processes of the census: one for each model, forked from a server that has imported the libraries, with limits of
processor time and memory."""

import importlib
import multiprocessing
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .judge import judge
from .offline import refuse_network, stay_offline
from .rows import Row, parse_row

WALL: Final = 8
"""Seconds on the clock for each second of processor time that a process may take: it may wait, but not for ever."""
_PRELOADING: Final = f"{__package__}.preloading"
TICK: Final = 0.05
"""Seconds between two looks at the processes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one model: processor seconds, and bytes of memory beyond those of the libraries."""

    seconds: int = 300
    memory: int = 16 << 30


@dataclass(slots=True)
class _Running:
    process: Any
    row: Row
    path: Path
    end: float


def run_rows(rows: Iterable[Row], jobs: int, seed: int, limits: Limits) -> Iterator[Row]:
    """Run each case in a process of its own, `jobs` at a time, and yield their rows as they end."""
    stay_offline()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([_PRELOADING])
    running: list[_Running] = []
    waiting = iter(rows)
    with tempfile.TemporaryDirectory() as folder:
        exhausted = False
        while running or not exhausted:
            while not exhausted and len(running) < jobs:
                row = next(waiting, None)
                if row is None:
                    exhausted = True
                else:
                    running.append(_start(context, row, seed, limits, Path(folder)))
            time.sleep(TICK)
            for child in [child for child in running if _is_over(child)]:
                running.remove(child)
                yield _result(child, limits)


def _start(context: Any, row: Row, seed: int, limits: Limits, folder: Path) -> _Running:
    """Start the process of a case."""
    path = folder / row.identity
    path.write_text(row.as_json())
    process = context.Process(target=run_child, args=(row, seed, limits, path))
    process.start()
    return _Running(process=process, row=row, path=path, end=time.monotonic() + WALL * limits.seconds)


def _is_over(child: _Running) -> bool:
    """Return whether the process has ended; one that exceeds the limit on the clock is killed first."""
    if child.process.is_alive() and time.monotonic() > child.end:
        child.process.kill()
        child.process.join()
    return not child.process.is_alive()


def _result(child: _Running, limits: Limits) -> Row:
    """Return the row that the process wrote last; if the process ended early, the row's verdict says how."""
    row = parse_row(child.path.read_bytes(), str(child.path))
    child.path.unlink()
    if row.stage == "done":
        return row
    status = child.process.exitcode
    if status == -signal.SIGXCPU:
        row.verdict = "slow"
        row.why = f"more than {limits.seconds} processor seconds, while {row.stage}"
        row.seconds[row.stage] = limits.seconds - sum(row.seconds.values())
    elif time.monotonic() > child.end:
        row.verdict = "slow"
        row.why = f"more than {WALL * limits.seconds} seconds on the clock, while {row.stage}"
    elif status == -signal.SIGKILL:
        row.verdict = "slow"
        row.why = f"killed while {row.stage}: out of memory?"
    else:
        row.verdict = "crash"
        row.why = f"the process ended with {status} while {row.stage}"
    if row.verdict == "slow" and row.stage in ("starting", "building"):
        row.verdict = "unbuilt"
    return row


def run_child(row: Row, seed: int, limits: Limits, path: Path) -> None:
    """Judge one case in this process, within the limits; the row is written to `path` at each stage."""
    importlib.import_module(_PRELOADING)  # the server has done it, unless it could not
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 5))
    space = _address_space() + limits.memory
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    refuse_network()
    judge(row, seed, writer(path))


def writer(path: Path) -> Callable[[Row], None]:
    """Return a function that writes a row to a file, whole or not at all."""

    def write(row: Row) -> None:
        beside = path.with_suffix(".part")
        beside.write_text(row.as_json())
        beside.replace(path)

    return write


def _address_space() -> int:
    """Return the bytes of address space that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")
