"""Tests of netlists in one call, as an object that holds every figure: `be.test`."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from buda_emu.app.api.shown import error_maps, html_table
from buda_emu.emulator.inputs.reference import DirectoryFiles
from buda_emu.emulator.memory.host import default_memory_limit, usable_processors
from buda_emu.netlist.model import Netlist
from buda_emu.report.machine_readable.json_form import as_json
from buda_emu.report.terminal.testing import reason
from buda_emu.spec.precision import Precision
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.version import __version__
from buda_emu.support.workers.job import Workers
from buda_emu.testing.verify.comparison import Mode
from buda_emu.testing.verify.result import CaseResult, TestRun
from buda_emu.testing.verify.runs.collect import Case, Settings, collect
from buda_emu.testing.verify.runs.run_all import run_all
from buda_emu.testing.verify.runs.run_case import run_case

TIMEOUT = 600.0
_GOOD = ("passed", "skipped")


@dataclass(frozen=True)
class Tested:
    """What testing netlists gave. `run` holds everything, the other names the usual of it."""

    run: TestRun = field(repr=False)

    @property
    def cases(self) -> tuple[CaseResult, ...]:
        """A result for each netlist, in the order of collection."""
        return self.run.cases

    @property
    def passed(self) -> bool:
        """Whether nothing went wrong: every compared output of every netlist that was not skipped holds."""
        return all(case.status in _GOOD for case in self.cases)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A plain dict for each netlist (`pandas.DataFrame(tested.rows)`)."""
        return [
            {
                "netlist": case.netlist,
                "status": case.status,
                "arch": case.arch,
                "precision": case.precision,
                "expected": case.expected,
                "outputs": len(case.outputs),
                "failed_outputs": len(case.failed_outputs),
                "pcc": min((item.figures.pcc for item in case.outputs if item.figures.pcc is not None), default=None),
                "max_error": max(
                    (item.figures.max_error for item in case.outputs if item.figures.max_error is not None),
                    default=None,
                ),
                "seconds": case.seconds,
                "reason": "" if case.status == "passed" else reason(case),
            }
            for case in self.cases
        ]

    @cached_property
    def output_rows(self) -> list[dict[str, Any]]:
        """A plain dict for each compared output."""
        return [
            {
                "netlist": case.netlist,
                "output": item.queue,
                "passed": item.passed,
                "pcc": item.figures.pcc,
                "match": item.figures.match,
                "max_error": item.figures.max_error,
                "mean_error": item.figures.mean_error,
                "bad_tiles": item.figures.bad_tiles,
                "tiles": item.figures.tiles,
                "format": item.format,
                "shape": item.shape,
                "comparison": item.comparison.type,
                "reason": item.reason,
            }
            for case in self.cases
            for item in case.outputs
        ]

    @cached_property
    def op_rows(self) -> list[dict[str, Any]]:
        """A plain dict for each op of each netlist, with `per_op`; none without."""
        return [
            {
                "netlist": case.netlist,
                "op": item.name,
                "type": item.type,
                "graph": item.graph,
                "format": item.format,
                "shape": item.shape,
                "pcc": item.pcc,
                "max_error": item.max_error,
                "mean_error": item.mean_error,
                "max_ulp": item.max_ulp,
                "mean_ulp": item.mean_ulp,
            }
            for case in self.cases
            for item in case.ops
        ]

    def to_json(self) -> dict[str, Any]:
        """Everything, as `buda-emu test --json` writes it, with its `schema_version`."""
        return as_json(self.run)

    def __repr__(self) -> str:
        counts = Counter(case.status for case in self.cases)
        found = ", ".join(f"{counts[status]} {status}" for status in sorted(counts, key=_GOOD.count))
        return f"<Tested {plural(len(self.cases), 'netlist')}: {found}, {self.run.seconds:.1f} s>"

    def _repr_html_(self) -> str:
        return html_table(repr(self)[1:-1], self.rows) + error_maps(self.cases)


Source = str | PathLike[str] | Netlist


def test(
    source: Source | Sequence[Source],
    *,
    precision: Precision = "device",
    expected: Precision = "ideal",
    reference: str | PathLike[str] | None = None,
    compare: Mode = "vendor",
    seed: int = 0,
    arch: str | None = None,
    programs: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
    per_op: bool = False,
    perf: bool = False,
    threshold: float = 0.99,
    detail: bool = False,
    threads: int | None = None,
    memory_limit: int | None = None,
    workers: int = 1,
    dask: str | None = None,
    timeout: float = TIMEOUT,
    progress: Callable[[CaseResult], None] = lambda _: None,
) -> Tested:
    """Feed netlists, compare what comes out (docs/run/test.md).

    `source`: a path, folder or pattern, a loaded netlist (read again from its file, for its architecture), or several.
    The observed run in `precision` is compared with one in `expected`, or with tensors in the folder `reference`.
    With `workers` above 1, or on the Dask cluster whose scheduler is at `dask`, netlists run in processes of their own,
    at most `timeout` seconds each. Else they run here, one after the other. What goes wrong with a netlist is its
    result's status. `detail` keeps what a notebook needs to draw where errors are. Raises HostError for paths that give
    no netlist, and for memory or workers that cannot be had.
    """
    on = Workers(workers, dask)
    limit = (memory_limit or default_memory_limit()) // workers
    settings = Settings(
        precision=precision,
        expected=expected,
        compare=compare,
        seed=seed,
        arch=arch,
        programs=tuple(programs),
        parameters=tuple(_named(parameters or {})),
        threads=threads or max(1, usable_processors() // workers),
        memory_limit=limit,
        per_op=per_op,
        perf=perf,
        threshold=threshold,
        detail=detail,
    )
    cases = list(_cases(source, settings, reference))
    start = time.perf_counter()
    if on.alone:
        results: list[CaseResult] = []
        for case in cases:
            results.append(run_case(case))
            progress(results[-1])
    else:
        results = run_all(cases, on, timeout=timeout, on_result=lambda _, result: progress(result))
    asked = {"paths": [case.name for case in cases], **settings.as_json(), "parameters": dict(settings.parameters)}
    asked["reference"] = None if reference is None else fspath(reference)
    return Tested(TestRun(tuple(results), __version__, time.perf_counter() - start, asked))


def _named(parameters: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in parameters.items():
        yield (name if "$" in name else f"${name}"), str(value)


def _cases(
    source: Source | Sequence[Source], settings: Settings, reference: str | PathLike[str] | None
) -> Iterator[Case]:
    sources = [source] if isinstance(source, str | PathLike | Netlist) else source
    for item in sources:
        netlist = item if isinstance(item, Netlist) else None
        if netlist is not None and settings.arch is None:
            settings_here = replace(settings, arch=netlist.arch_name)
        else:
            settings_here = settings
        if netlist is not None and not os.path.isfile(netlist.path):  # noqa: PTH113 - as it was given
            raise HostError(f"{netlist.path}: the netlist's file is not there: test reads it again")
        for name in collect([netlist.path if netlist is not None else fspath(item)]):  # type: ignore[arg-type]
            files = DirectoryFiles.for_netlist(Path(reference), name) if reference is not None else None
            yield Case(name=name, path=name, text=None, reference=files, defaults=None, settings=settings_here)
