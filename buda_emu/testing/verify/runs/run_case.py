"""The test of one netlist, from its text to a verdict (NETLIST 5)."""

import shlex
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.reporting import with_sent_kernels
from buda_emu.emulator.image.opened import is_image
from buda_emu.emulator.inputs.entries import default_parameters
from buda_emu.emulator.inputs.feed import Feed
from buda_emu.emulator.inputs.of_image import image_args
from buda_emu.emulator.op_errors.op_apart import Moments
from buda_emu.netlist.load import NetlistResult, check, check_bytes
from buda_emu.netlist.model import Netlist, Program, Queue
from buda_emu.netlist.program.parameters import parameter_names
from buda_emu.netlist.test_config import TestConfig, merge_defaults, read_defaults, read_test_config
from buda_emu.netlist.test_names import section_doubts
from buda_emu.netlist.yaml_reader import UnreadableError, read_bytes
from buda_emu.spec.test_config import Comparison
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.render import render
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import (
    DocumentError,
    HostError,
    InternalError,
    NetlistError,
    ProgramError,
    UnsupportedError,
)
from buda_emu.support.progress import SendKernel, do_nothing
from buda_emu.testing.verify.comparison import (
    Flags,
    Floats,
    TileBlock,
    close,
    compare,
    flat_tiles,
    tile_blocks,
    tiles_that_hold,
)
from buda_emu.testing.verify.doubts import (
    comparison_doubts,
    device_doubts,
    ignores_scale,
    reference_doubts,
    scale_doubts,
)
from buda_emu.testing.verify.result import (
    CaseResult,
    OutputDetail,
    OutputFigures,
    OutputResult,
    PerformanceResult,
    Status,
    TilePlace,
    rounding_warnings,
)
from buda_emu.testing.verify.runs.case_runs import Runs, model_output_of, outside_entries, runs_of
from buda_emu.testing.verify.runs.collect import Case, Settings, unfinished_result

if TYPE_CHECKING:
    from buda_emu.emulator.image.device_image import DeviceImage


PICTURE_CELLS: Final = 64  # most cells of a heat map in each direction
DECADES: Final = range(-12, 13)  # lower bounds of the histogram's bins: 10**k; smaller errors count for the first


def figures(
    expected: NDArray[Any], observed: NDArray[Any], comparison: Comparison, tile_dim: tuple[int, int], *, detail: bool
) -> OutputFigures:
    """Return the figures that reports show of a compared output, from both sides [entries, t, rows, columns] of one
    shape; with `detail` also the data of pictures. They do not decide the verdict."""
    summary = _Summary(expected.shape, tile_dim, detail)
    for block in tile_blocks(expected, observed, tile_dim):
        summary.add(block, comparison)
    return summary.result()


class _Summary:
    """Figures of one output that are added up block by block."""

    def __init__(self, shape: tuple[int, ...], tile_dim: tuple[int, int], detail: bool) -> None:
        self._size = 0
        self._matches = 0
        self._not_finite = [0, 0]
        self._moments = Moments()
        self._error_sum = 0.0
        self._finite = 0
        self._largest: tuple[float, tuple[int, ...]] | None = None
        self._tiles = 0
        self._bad = 0
        self._all_zero = True
        self._first_bad: TilePlace | None = None
        if detail:
            self._picture = _Picture(shape[2] // tile_dim[0], shape[3] // tile_dim[1])
        else:
            self._picture = None

    def add(self, block: TileBlock, comparison: Comparison) -> None:
        """Count one more block of tiles of both sides."""
        a = block.a
        b = block.b
        finite_a = np.isfinite(a)
        finite_b = np.isfinite(b)
        finite = finite_a & finite_b
        self._size += a.size
        self._all_zero = self._all_zero and not (a.any() or b.any())
        self._not_finite[0] += a.size - int(np.count_nonzero(finite_a))
        self._not_finite[1] += a.size - int(np.count_nonzero(finite_b))
        self._matches += int(np.count_nonzero(close(a, b, comparison.atol, comparison.rtol)))
        self._moments.add(a[finite], b[finite])
        with np.errstate(all="ignore"):
            error = np.abs(a - b)
        self._add_errors(block, error, finite)
        good = tiles_that_hold(flat_tiles(a), flat_tiles(b), comparison)
        self._tiles += len(good)
        self._bad += int(len(good) - np.count_nonzero(good))
        if self._first_bad is None and not good.all():
            self._first_bad = TilePlace(*block.index(int(np.argmin(good))))
        if self._picture is not None:
            self._picture.add(block, error, finite)

    def _add_errors(self, block: TileBlock, error: Floats, finite: Flags) -> None:
        """Count the errors of a block where both sides are finite: their sum, and the place of the largest so far."""
        count = int(np.count_nonzero(finite))
        if not count:
            return
        self._finite += count
        self._error_sum += float(error[finite].sum())
        error = np.where(finite, error, -1.0)
        place = int(error.argmax())
        largest = float(error.reshape(-1)[place])
        if self._largest is None or largest > self._largest[0]:
            row, height, col, width = (int(i) for i in np.unravel_index(place, error.shape))
            entry, t, r, c = block.index(row * error.shape[2] + col)
            self._largest = largest, (entry, t, r * error.shape[1] + height, c * error.shape[3] + width)

    def result(self) -> OutputFigures:
        """Return the figures of all blocks that were added."""
        return OutputFigures(
            pcc=self._moments.pcc(),
            match=self._matches / self._size if self._size else 1.0,
            max_error=self._largest[0] if self._largest else None,
            mean_error=self._error_sum / self._finite if self._finite else None,
            max_error_at=self._largest[1] if self._largest else None,
            not_finite_expected=self._not_finite[0],
            not_finite_observed=self._not_finite[1],
            tiles=self._tiles,
            bad_tiles=self._bad,
            all_zero=self._all_zero,
            first_bad_tile=self._first_bad,
            detail=self._picture.detail() if self._picture is not None else None,
        )


class _Picture:
    """The data of an output's pictures, added up block by block: the largest error of each tile position, and a
    histogram of the sizes of errors."""

    def __init__(self, rows: int, cols: int) -> None:
        self._cell = -(-rows // PICTURE_CELLS), -(-cols // PICTURE_CELLS)
        self._rows = rows
        self._error = np.full((-(-rows // self._cell[0]), -(-cols // self._cell[1])), np.nan)
        self._bounds = np.array([0.0, *(10.0**k for k in DECADES)])
        self._counts = np.zeros(len(self._bounds), np.int64)

    def add(self, block: TileBlock, error: Floats, finite: Flags) -> None:
        """Count one more block. `error` has the absolute errors of its elements, `finite` tells where both sides are
        finite."""
        largest = np.where(finite, error, -1.0).max(axis=(1, 3))  # [tile rows, tile columns]
        largest[largest < 0] = np.nan
        columns: NDArray[np.int64] = np.arange(largest.shape[1], dtype=np.int64) // self._cell[1]
        for number, line in enumerate(largest):
            row = (block.first_row + number) % self._rows // self._cell[0]
            pooled = np.full(self._error.shape[1], np.nan)
            np.fmax.at(pooled, columns, line)
            np.fmax(self._error[row], pooled, out=self._error[row])
        errors = error[finite]
        bins = np.searchsorted(self._bounds, errors, side="right") - 1
        bins[(bins == 0) & (errors > 0)] = 1  # bin 0 is for equality alone
        self._counts += np.bincount(bins, minlength=len(self._counts))

    def detail(self) -> OutputDetail:
        """Return the data of the pictures so far; empty bins at both ends of the histogram are left out."""
        used = np.flatnonzero(self._counts[1:]) + 1
        bins = [(0.0, int(self._counts[0]))]
        if len(used):
            for number in range(used[0], used[-1] + 1):
                bins.append((float(self._bounds[number]), int(self._counts[number])))
        return OutputDetail(self._error, self._cell, tuple(bins))


def with_float32(
    outputs: tuple[OutputResult, ...], netlist: Netlist, config: TestConfig, runs: Runs, case: Case
) -> tuple[OutputResult, ...]:
    """Return the outputs with longer reasons for those that differ from tensors from outside: the programs run once
    more in float32, and if that differs, too, formats are not the cause. The same outputs where there is nothing to
    explain."""
    wrong = {output.queue for output in outputs if not output.passed} & runs.outside
    if not wrong or runs.float32 is None:
        return outputs
    exact = replace(runs, observed=runs.float32())
    completed: list[OutputResult] = []
    for output in outputs:
        if output.queue not in wrong:
            completed.append(output)
            continue
        suffix = "differs from it, too: it is not the formats"
        if compare_output(netlist.queues[output.queue], config, exact, case).passed:
            suffix = "agrees with it: it is the formats"
        completed.append(replace(output, reason=f"{output.reason}; float32 throughout {suffix}"))
    return tuple(completed)


class _Sides(NamedTuple):
    """The two tensors that are compared for one output: the entries that both sides have. For a compiled image they
    have only the elements of the model's own tensor."""

    expected: NDArray[Any]
    observed: NDArray[Any]
    source: str  # of the expected side
    uncompared_entries: int
    model_shape: tuple[int, ...]


def _read_sides(queue: Queue, runs: Runs, case: Case) -> _Sides:
    """Return the entries of one output that are compared. Raises HostError if the expected side has none."""
    observed = runs.observed[queue.name]
    outside = None
    if case.reference is not None:
        outside = outside_entries(queue, case.reference, runs.image)
    expected, source = outside or (runs.expected[queue.name], case.settings.expected)
    entries = min(len(observed), len(expected))
    if not entries:
        raise HostError(f"{source} holds no entries for output {queue.name}")
    uncompared_entries = max(len(observed), len(expected)) - entries
    if uncompared_entries:
        source += f" (first {entries} of {len(observed)} observed, {len(expected)} expected entries)"
    observed = observed[:entries]
    expected = expected[:entries]
    model_output = model_output_of(runs.image, queue.name)
    model_shape: tuple[int, ...] = ()
    if model_output is not None:
        observed = model_output.alone(observed)
        expected = model_output.alone(expected)
        model_shape = model_output.shape if entries == 1 else (entries, *model_output.shape)
    return _Sides(
        expected=expected,
        observed=observed,
        source=source,
        uncompared_entries=uncompared_entries,
        model_shape=model_shape,
    )


def compare_output(queue: Queue, config: TestConfig, runs: Runs, case: Case) -> OutputResult:
    """Compare one output of the runs with what is expected and return the result with its figures. Where one side has
    more entries, only the first ones are compared. Raises HostError where there are none."""
    comparison = config.comparison(queue.name)
    expected, observed, source, uncompared_entries, model_shape = _read_sides(queue, runs, case)
    tile_dim = queue.blocking.tile_dim
    with np.errstate(all="ignore"):
        verdict = compare(expected, observed, comparison, tile_dim, case.settings.compare)
        output_figures = figures(expected, observed, comparison, tile_dim, detail=case.settings.detail)
    return OutputResult(
        queue=queue.name,
        kind=queue.type,
        format=queue.df,
        shape=tuple(observed.shape),
        tile_dim=tile_dim,
        expected_from=source,
        comparison=comparison,
        passed=verdict.passed,
        reason=verdict.reason,
        figures=output_figures,
        model_shape=model_shape,
        uncompared_entries=uncompared_entries,
    )


def runner(_about: None, report: SendKernel = do_nothing) -> Callable[[Case], CaseResult]:
    """Return the function that tests one case, for `run_all.CASES` in a worker; `_about` is not used. `report` gets the
    kernels that it compiles (`run_all.OnKernel`)."""
    return with_sent_kernels(run_case, report)


def run_case(case: Case) -> CaseResult:
    """Test one netlist from its text to a verdict. Errors, of the netlist or of buda-emu, become the result's status:
    only KeyboardInterrupt is raised."""
    start = time.perf_counter()
    result = unfinished_result(case, "error", "", 0.0)
    try:
        result = _run_test(case, result)
    except (DocumentError, HostError) as error:
        result = replace(result, status="rejected", message=str(error))
    except UnsupportedError as error:
        result = replace(result, status="unsupported", message=str(error))
    except ProgramError as error:
        stopped = None
        if error.stopped is not None:
            stopped = error.stopped.as_json()
        result = replace(result, status="stopped", message=str(error), stopped=stopped)
    except MemoryError as error:
        detail = ""
        if str(error):
            detail = f": {error}"
        result = replace(result, status="unsupported", message=f"not enough memory{detail}")
    except InternalError as error:
        result = replace(result, status="error", message=f"{error}\n{traceback.format_exc()}")
    except Exception as error:  # noqa: BLE001 - one netlist's trouble must not end the others
        result = replace(result, status="error", message=f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
    if case.settings.coverage:
        result = replace(result, exercised={**_rule_outcomes(case), **result.exercised})
    return replace(result, seconds=time.perf_counter() - start)


def _rule_outcomes(case: Case) -> Mapping[str, tuple[str, ...]]:
    """Return the rules that a netlist passes and breaks, for coverage, whatever its verdict; {} where it can't be read,
    and for an image, whose netlist is made by the compiler."""
    if is_image(case.path):
        return {}
    from buda_emu.testing.coverage.features import outcomes

    try:
        if case.text is not None:
            text = case.text
        else:
            text = read_bytes(case.path)
    except UnreadableError:
        return {}
    return outcomes(text, case.path, case.settings.arch)


def _check_for(case: Case, arch: str | None) -> NetlistResult:
    """Check the netlist of a case for an architecture, None for its default one, and return the findings with the
    netlist."""
    if case.text is not None:
        return check_bytes(case.text, case.path, arch)
    return check(case.path, arch, cache=case.settings.cache)


@contextmanager
def _netlist_to_run(case: Case) -> "Generator[tuple[Netlist, DeviceImage | None]]":
    """Yield the netlist to run and the image that it is from, None for a netlist file. Raises NetlistError, ImageError,
    OSError. A netlist that is not for the asked architecture is read for one of its own, and is skipped later."""
    settings = case.settings
    if not is_image(case.path):
        checked = _check_for(case, settings.arch)
        if checked.netlist is None and settings.arch is not None:
            # A netlist that lists architectures is refused for any other one. Read for one of its own, it is skipped.
            of_own_arch = _check_for(case, None)
            if of_own_arch.netlist is not None and settings.arch.lower() not in of_own_arch.netlist.archs:
                checked = of_own_arch
        if checked.netlist is None:
            raise NetlistError(render(checked.diagnostics), checked.diagnostics)
        yield checked.netlist, None
        return
    from buda_emu.emulator.image.load import load_image

    with TemporaryDirectory() if case.text is not None else nullcontext("") as folder:
        path = case.path
        if case.text is not None:  # an image is read from a file
            path = str(Path(folder) / Path(case.path).name)
            Path(path).write_bytes(case.text)
        image = load_image(path, allow_pickle=settings.allow_pickle)
        yield image.for_inputs, image


def _run_test(case: Case, result: CaseResult) -> CaseResult:
    """Return the case's result with status passed, failed or skipped; raise the error of one that can't be tested."""
    with _netlist_to_run(case) as (netlist, image):
        result = replace(result, arch=netlist.arch_name)
        reason = _skip_reason(case.settings, netlist)
        if reason:
            return replace(result, status="skipped", message=reason)
        return _run_and_compare(case, result, netlist, image)


def _skip_reason(settings: Settings, netlist: Netlist) -> str:
    """Return why the settings leave a netlist out (another architecture, no such program), "" if they do not."""
    if settings.arch is not None and netlist.arch_name != settings.arch.lower():
        return f"it is for {', '.join(netlist.archs)}, not {settings.arch}"
    missing = [name for name in settings.programs if name not in netlist.programs]
    if missing:
        return f"no program {', '.join(missing)}; programs: {', '.join(netlist.programs)}"
    return ""


def _run_and_compare(case: Case, result: CaseResult, netlist: Netlist, image: "DeviceImage | None") -> CaseResult:
    """Run the programs, compare the outputs and, if asked for, performance figures, and return the completed result.
    Raises the errors of files and runs."""
    settings = case.settings
    config = _completed_config(case, netlist)
    bodies = [netlist.programs[name] for name in settings.programs or dict.fromkeys(netlist.program_order)]
    parameters = _program_parameters(bodies, {**image_args(image), **config.args}, settings)
    feed = Feed(
        netlist=netlist,
        config=config,
        programs=bodies,
        parameters=parameters,
        seed=settings.seed,
        reference=case.reference,
        image=image,
    )
    doubts: tuple[str, ...] = ()
    if case.reference is not None:
        doubts = reference_doubts(case.reference, netlist, image, shared=case.shares_reference)
    compared, skipped = _outputs_to_compare(netlist, config)
    with rounding_warnings() as warned:
        runs = runs_of(netlist, bodies, parameters, feed, case, compared)
    observed = [name for name in compared if name in runs.observed]
    skipped |= {name: "it holds no entries" for name in compared if name not in runs.observed}
    outputs = tuple(compare_output(netlist.queues[name], config, runs, case) for name in observed)
    outputs = with_float32(outputs, netlist, config, runs, case)
    result = replace(
        result,
        programs=tuple(body.name for body in bodies),
        parameters=parameters,
        command=case.command(parameters),
        inputs=runs.inputs,
        outputs=outputs,
        not_compared=skipped,
        ops=runs.ops,
        first_bad=runs.first_bad,
        warnings=(*_checker_warnings(netlist.diagnostics, case.name), *warned),
        doubts=(
            *doubts,
            *section_doubts(netlist.diagnostics),
            *device_doubts(netlist.diagnostics, settings.precision),
            *comparison_doubts(outputs),
            *_scale_doubts(netlist, runs, case, outputs),
        ),
        exercised=_exercised_features(netlist, runs, settings),
    )
    if settings.perf:
        figures_of_checks, doubts_of_checks = performance(netlist, bodies, parameters)
        result = replace(result, performance=figures_of_checks, doubts=(*result.doubts, *doubts_of_checks))
    if not outputs:
        return replace(result, status="skipped", message="nothing to compare: " + _reasons_not_compared(skipped))
    return replace(result, status=_verdict_status(result))


def _scale_doubts(netlist: Netlist, runs: Runs, case: Case, outputs: Sequence[OutputResult]) -> Iterator[str]:
    """Yield a text for each output that passed by its correlation alone, although its values have another scale."""
    for output in outputs:
        if output.passed and ignores_scale(output.comparison):
            sides = _read_sides(netlist.queues[output.queue], runs, case)
            yield from scale_doubts(output, sides.expected, sides.observed)


def _verdict_status(result: CaseResult) -> Status:
    """Return "passed" if all outputs and all performance figures of a result hold, else "failed"."""
    if all(output.passed for output in result.outputs) and all(figure.passed for figure in result.performance):
        return "passed"
    return "failed"


def _exercised_features(netlist: Netlist, runs: Runs, settings: Settings) -> Mapping[str, tuple[str, ...]]:
    """Return the features that the netlist has and its run exercised, by list; {} without coverage."""
    if not settings.coverage:
        return {}
    from buda_emu.testing.coverage.features import features

    return {**{subject: tuple(sorted(names)) for subject, names in features(netlist).items()}, **runs.exercised}


def _checker_warnings(findings: Sequence[Diagnostic], name: str) -> tuple[str, ...]:
    """Return one text that counts the checker's findings on a tested netlist and names their rules; () without
    findings."""
    if not findings:
        return ()
    rules = ", ".join(sorted({finding.rule for finding in findings}))
    count = plural(len(findings), "warning")
    return (f"the checker has {count} ({rules}): `buda-emu check {shlex.quote(name)}` shows them",)


def performance(
    netlist: Netlist, bodies: Sequence[Program], parameters: Mapping[str, str]
) -> tuple[tuple[PerformanceResult, ...], tuple[str, ...]]:
    """Compare `performance-check` with modelled cycles. Returns the figures, and a line for each configuration that
    checks nothing; ((), ()) without such a section. Raises NetlistError, and UnsupportedError where no time is
    modelled."""
    from buda_emu.netlist.test_config import read_performance_checks
    from buda_emu.performance.timing.checks import check_doubts, evaluate
    from buda_emu.performance.timing.model import model_netlist

    checks = read_performance_checks(netlist.path, netlist.sections)
    if not checks:
        return (), ()
    run = model_netlist(netlist, bodies, parameters)
    results = evaluate(netlist, run, checks)
    figures_of_checks = tuple(
        PerformanceResult(
            config=figure.config,
            graph=figure.graph,
            target=figure.target,
            metric=figure.bound.metric,
            expected=str(figure.bound),
            modelled=figure.observed,
            passed=figure.passed,
        )
        for figure in results
    )
    return figures_of_checks, tuple(check_doubts(netlist, run, checks, results))


def _completed_config(case: Case, netlist: Netlist) -> TestConfig:
    """Return the netlist's test-config; what it leaves open is taken from the defaults file of the case."""
    config = read_test_config(case.name, netlist.sections)
    if case.defaults is None:
        return config
    return merge_defaults(config, read_defaults(*case.defaults))


def _program_parameters(bodies: Sequence[Program], args: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Return the parameters that the programs run with: the harness's own, overridden by those settings that a program
    takes."""
    names = parameter_names(bodies)
    overrides = {name: value for name, value in settings.parameters if name in names}
    return {**default_parameters(bodies, args), **overrides}


def _outputs_to_compare(netlist: Netlist, config: TestConfig) -> tuple[list[str], dict[str, str]]:
    """Return the names of outputs to compare, and for each other output the reason why not. They are those that
    io-config lists, else every op-fed queue and ram but e2e ones (NETLIST 5.4)."""
    compared: list[str] = []
    unknown = [name for name in config.outputs if name not in netlist.queues]
    skipped = dict.fromkeys(unknown, "io-config lists it, but there is no such queue")
    for queue in netlist.queues.values():
        if queue.host_fed:
            if queue.name in config.outputs:
                skipped[queue.name] = "io-config lists it, but the host feeds it, not an op"
            continue
        if config.outputs and queue.name not in config.outputs:
            skipped[queue.name] = "io-config does not list it"
        elif not config.outputs and "e2e" in queue.name:
            skipped[queue.name] = "it links graphs (e2e in its name)"
        else:
            compared.append(queue.name)
    return compared, skipped


def _reasons_not_compared(skipped: Mapping[str, str]) -> str:
    """Return the reasons for all outputs as one text, or that there is no output at all; for a case without any
    comparison."""
    return "; ".join(f"{name}: {why}" for name, why in skipped.items()) or "no op feeds a queue"
