"""`be.test`: runs netlists and compares their outputs with a reference."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Unpack, get_args

from buda_emu.app.api.shown import error_maps, html_table
from buda_emu.app.api.sources import compiled_of, image_of
from buda_emu.arithmetic.jit.kernel import announce
from buda_emu.arithmetic.jit.reporting import reported_work
from buda_emu.emulator.image.opened import netlist_of
from buda_emu.emulator.inputs.reference import DirectoryFiles
from buda_emu.emulator.memory.host import machine_of_worker
from buda_emu.emulator.options import Arch, Execution, Programs, Seed, TimeLimit
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.program.parameters import declared_name, no_program, parameter_names, with_declared_names
from buda_emu.report.machine_readable.json_form import as_json
from buda_emu.report.terminal.case_columns import CASES, OPS, OUTPUTS
from buda_emu.spec.precision import PRECISIONS, Precision
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import BudaError, HostError
from buda_emu.support.options import declared_options, document_path, number_of, require_choice, with_options
from buda_emu.support.progress import Activity, Report, do_nothing
from buda_emu.support.version import __version__
from buda_emu.support.workers.job import Workers, workers_of
from buda_emu.testing.verify.comparison import Mode
from buda_emu.testing.verify.result import CaseResult, TestRun
from buda_emu.testing.verify.runs.collect import Case, Settings, collect, mark_shared_references
from buda_emu.testing.verify.runs.run_all import run_all
from buda_emu.testing.verify.runs.run_case import run_case

TIMEOUT = declared_options(TimeLimit)["timeout"].default
"""Seconds after which a netlist that runs in a process of its own is stopped."""
_GOOD = ("passed", "skipped")


@dataclass(frozen=True)
class Tested:
    """The results of testing netlists. `run` holds all of them; the other attributes are those that most callers
    need."""

    run: TestRun = field(repr=False)

    @property
    def cases(self) -> tuple[CaseResult, ...]:
        """A result for each netlist, in the order of collection."""
        return self.run.cases

    @property
    def passed(self) -> bool:
        """True if every netlist passed or was skipped."""
        return all(case.status in _GOOD for case in self.cases)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A plain dict for each netlist (`pandas.DataFrame(tested.rows)`)."""
        return [CASES.row(case) for case in self.cases]

    @cached_property
    def output_rows(self) -> list[dict[str, Any]]:
        """A plain dict for each compared output."""
        return [{"netlist": case.netlist, **OUTPUTS.row(output)} for case in self.cases for output in case.outputs]

    @cached_property
    def op_rows(self) -> list[dict[str, Any]]:
        """A plain dict for each op of each netlist if the test ran with `per_op`, else an empty list."""
        return [{"netlist": case.netlist, **OPS.row(op)} for case in self.cases for op in case.ops]

    def to_json(self) -> dict[str, Any]:
        """Return all results as `buda-emu test --json` writes them, with `schema_version`."""
        return as_json(self.run)

    def __repr__(self) -> str:
        counts = Counter(case.status for case in self.cases)
        statuses = sorted(counts, key=_GOOD.count)  # failures first
        numbers = ", ".join(f"{counts[status]} {status}" for status in statuses)
        return f"<Tested {plural(len(self.cases), 'netlist')}: {numbers}, {self.run.seconds:.1f} s>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the table of cases and the maps of their errors."""
        return html_table(repr(self)[1:-1], self.rows) + error_maps(self.cases)


Source = str | PathLike[str] | Netlist
"""A netlist to test: a loaded one, or a path, folder or pattern."""


class TestOptions(Programs, Arch, Seed, Execution, TimeLimit, total=False):
    """The options of `test` that other functions have, too."""


@with_options
def test(
    source: Source | Sequence[Source],
    *,
    precision: Precision = "device",
    expected: Precision = "ideal",
    reference: str | PathLike[str] | None = None,
    compare: Mode = "vendor",
    per_op: bool = False,
    perf: bool = False,
    threshold: float = 0.99,
    detail: bool = False,
    progress: Callable[[CaseResult], object] = do_nothing,
    activity: Report | None = None,
    **options: Unpack[TestOptions],
) -> Tested:
    """Run netlists and compare their outputs with a reference (docs/run/test.md).

    `source` is a path, folder or pattern, a loaded netlist (read again from its file, for its architecture), or several
    of these. The outputs of a run in `precision` are compared with those of a run in `expected`, or with tensors in the
    folder `reference`. With `workers` above 1, or on the Dask cluster whose scheduler is at `dask`, netlists run in
    processes of their own, at most `timeout` seconds each; otherwise they run here, one after the other. A netlist that
    fails does not raise: the status of its result says why. `detail` keeps the errors of all elements, so that a
    notebook can draw them. `progress` gets each result as it comes, `activity` an Activity for each netlist that is
    done and each kernel that is compiled (docs/python/embedding.md); the exception of either ends the test. Raises
    HostError for paths that give no netlist, for a program or parameter that none of the netlists has, and for memory
    or workers that cannot be had.
    """
    require_choice("precision", precision, PRECISIONS)
    require_choice("expected", expected, PRECISIONS)
    require_choice("compare", compare, get_args(Mode))
    pool = workers_of(options)
    settings = Settings(
        precision=precision,
        expected=expected,
        compare=compare,
        seed=options.get("seed", 0),
        arch=options.get("arch"),
        programs=tuple(options.get("programs", ())),
        parameters=tuple(_with_dollar_signs(options.get("parameters") or {})),
        machine=machine_of_worker(options, pool.count),
        per_op=per_op,
        perf=perf,
        threshold=number_of("threshold", threshold, -1, 1),
        detail=detail,
    )
    cases = mark_shared_references(list(_cases(source, settings, reference)))
    _require_names(cases, settings)
    start = time.perf_counter()
    with reported_work(activity) as report:
        if pool.alone:
            results = _run_here(cases, progress, report)
        else:
            results = _run_on_workers(cases, pool, options.get("timeout", TIMEOUT), progress, report)
    arguments = {"paths": [case.name for case in cases], **settings.as_json(), "parameters": dict(settings.parameters)}
    arguments["reference"] = None if reference is None else fspath(reference)
    return Tested(TestRun(tuple(results), __version__, time.perf_counter() - start, arguments))


def _require_names(cases: Sequence[Case], settings: Settings) -> None:
    """Raise HostError for a program or parameter that no netlist has; one that only some have is fine. Does nothing if
    a netlist cannot be read, since the result of its case will say so."""
    programs = list(settings.programs)
    parameters = list(settings.parameters)
    netlists: list[Netlist] = []
    for case in cases:
        if not (programs or parameters):
            return
        try:
            netlist = netlist_of(case.path, case.settings.arch, cache=settings.cache)
        except (BudaError, OSError):
            return  # the result of the case tells why
        netlists.append(netlist)
        names = parameter_names(netlist.programs.values())
        programs = [name for name in programs if name not in netlist.programs]
        parameters = [(name, text) for name, text in parameters if declared_name(name, names) not in names]
    if programs:
        raise no_program(netlists[0], programs[0])
    bodies = [body for netlist in netlists for body in netlist.programs.values()]
    for parameter in parameters:
        with_declared_names(bodies, dict([parameter]))


def _run_here(cases: Sequence[Case], progress: Callable[[CaseResult], object], report: Report) -> list[CaseResult]:
    """Run the cases in this process one after the other, reporting each, and return their results."""
    results: list[CaseResult] = []
    for case in cases:
        report(Activity(f"netlist {case.name}", "netlists", len(results), len(cases)))
        results.append(run_case(case))
        progress(results[-1])
    return results


def _run_on_workers(
    cases: Sequence[Case],
    pool: Workers,
    timeout: float,
    progress: Callable[[CaseResult], object],
    report: Report,
) -> list[CaseResult]:
    """Run the cases in processes of their own, each stopped after `timeout` seconds, and return their results in the
    order of the cases; they are reported in the order in which they end."""
    count = 0

    def on_result(_number: int, result: CaseResult) -> None:
        """Count a netlist that is done, and report it."""
        nonlocal count
        count += 1
        report(Activity(f"{count} of {len(cases)} netlists", "netlists", count, len(cases)))
        progress(result)

    return run_all(cases, pool, timeout=timeout, on_result=on_result, on_kernel=announce)


def _with_dollar_signs(parameters: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield names and values of parameters; a name without a `$` gets it in front."""
    for name, value in parameters.items():
        if "$" in name:
            yield name, value
        else:
            yield f"${name}", value


def _require_source(source: object) -> None:
    """Raise HostError for a source that is neither a path nor a netlist."""
    if isinstance(source, str | PathLike | Netlist):
        return
    hint = ""
    if compiled_of(source) is not None or image_of(source) is not None:
        hint = ": give the path of its image (save writes it); compare and numerics of a compiled model need no image"
    raise HostError(f"test: {type(source).__name__} is neither a path nor a netlist{hint}")


def _list_sources(source: Source | Sequence[Source]) -> list[Source]:
    """Return the sources one by one. Raises HostError for none, and for one that is neither a path nor a netlist."""
    if isinstance(source, str | PathLike | Netlist):
        return [source]
    if not hasattr(source, "__iter__") or isinstance(source, (Mapping, bytes)):
        _require_source(source)
    sources = list(source)
    if not sources:
        raise HostError("test: no netlist is given")
    for entry in sources:
        _require_source(entry)
    return sources


def _cases(
    source: Source | Sequence[Source], settings: Settings, reference: str | PathLike[str] | None
) -> Iterator[Case]:
    """Yield a case for each netlist of the sources. A loaded netlist is tested for its own architecture if the settings
    name none. Raises HostError for a loaded netlist whose file is gone."""
    for entry in _list_sources(source):
        case_settings = settings
        if isinstance(entry, Netlist):
            path = entry.path
            if not os.path.isfile(path):  # noqa: PTH113 - as it was given
                raise HostError(f"{path}: the netlist's file is not there: test reads it again")
            if settings.arch is None:
                case_settings = replace(settings, arch=entry.arch_name)
        else:
            path = fspath(document_path(entry, "test"))
        for name in collect([path]):
            files = None
            if reference is not None:
                files = DirectoryFiles.for_netlist(Path(reference), name)
            yield Case(name=name, path=name, text=None, reference=files, defaults=None, settings=case_settings)
