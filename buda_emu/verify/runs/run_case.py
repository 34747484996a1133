"""One netlist under test, from its text to a verdict (NETLIST 5)."""

import shlex
import time
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.checker.render import render
from buda_emu.checker.text import plural
from buda_emu.errors import DocumentError, HostError, InternalError, NetlistError, ProgramError, UnsupportedError
from buda_emu.image.opened import is_image
from buda_emu.netlist.load import check, check_bytes
from buda_emu.netlist.model import Netlist, Program
from buda_emu.netlist.testing.config import TestConfig, merged, read_defaults, read_test_config
from buda_emu.netlist.yaml_reader import UnreadableError, read_bytes
from buda_emu.verify.inputs.entries import default_parameters, parameter_names
from buda_emu.verify.inputs.feed import Feed
from buda_emu.verify.inputs.of_image import image_args
from buda_emu.verify.observed import rounding_warnings
from buda_emu.verify.result import CaseResult, PerformanceResult, Status
from buda_emu.verify.runs.case import Case, Settings, unfinished
from buda_emu.verify.runs.compare_outputs import Runs, compare_output, runs_of, with_float32

if TYPE_CHECKING:
    from buda_emu.image.device_image import DeviceImage


def runner(_about: None) -> Callable[[Case], CaseResult]:
    """The work of `run_all.CASES`."""
    return run_case


def run_case(case: Case) -> CaseResult:
    """Test one netlist. What is wrong with it, or with us, is the result's status: nothing is raised but
    KeyboardInterrupt."""
    start = time.perf_counter()
    result = unfinished(case, "error", "", 0.0)
    try:
        result = _tested(case, result)
    except (DocumentError, HostError) as error:
        result = replace(result, status="rejected", message=str(error))
    except UnsupportedError as error:
        result = replace(result, status="unsupported", message=str(error))
    except ProgramError as error:
        stopped = error.stopped.as_json() if error.stopped is not None else None
        result = replace(result, status="stopped", message=str(error), stopped=stopped)
    except MemoryError as error:
        result = replace(result, status="unsupported", message=f"not enough memory{f': {error}' if str(error) else ''}")
    except InternalError as error:
        result = replace(result, status="error", message=f"{error}\n{traceback.format_exc()}")
    except Exception as error:  # noqa: BLE001 - one netlist's trouble must not end the others
        result = replace(result, status="error", message=f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
    if case.settings.coverage:
        result = replace(result, exercised={**_asked(case), **result.exercised})
    return replace(result, seconds=time.perf_counter() - start)


def _asked(case: Case) -> Mapping[str, tuple[str, ...]]:
    """What the checker asks of a netlist, whatever it says; nothing of an image, which nobody has written."""
    if is_image(case.path):
        return {}
    from buda_emu.coverage.rules import outcomes

    try:
        text = case.text if case.text is not None else read_bytes(case.path)
    except UnreadableError:
        return {}
    return outcomes(text, case.path, case.settings.arch)


@contextmanager
def _opened(case: Case) -> "Generator[tuple[Netlist, DeviceImage | None]]":
    """The netlist to run, and the image that it is of. Raises NetlistError, ImageError, OSError."""
    settings = case.settings
    if not is_image(case.path):
        checked = (
            check(case.path, settings.arch, cache=settings.cache)
            if case.text is None
            else check_bytes(case.text, case.path, settings.arch)
        )
        if checked.netlist is None:
            raise NetlistError(render(checked.diagnostics), checked.diagnostics)
        yield checked.netlist, None
        return
    from buda_emu.image.load import load_image

    with TemporaryDirectory() if case.text is not None else nullcontext("") as folder:
        path = case.path
        if case.text is not None:  # an image is read where it lies
            path = str(Path(folder) / Path(case.path).name)
            Path(path).write_bytes(case.text)
        image = load_image(path, allow_pickle=settings.allow_pickle)
        yield image.for_inputs, image


def _tested(case: Case, result: CaseResult) -> CaseResult:
    with _opened(case) as (netlist, image):
        return _compared(case, result, netlist, image)


def _compared(case: Case, result: CaseResult, netlist: Netlist, image: "DeviceImage | None") -> CaseResult:
    settings = case.settings
    result = replace(result, arch=netlist.arch_name)
    if settings.arch is not None and netlist.arch_name != settings.arch.lower():
        return replace(result, status="skipped", message=f"it is for {', '.join(netlist.archs)}, not {settings.arch}")
    missing = [name for name in settings.programs if name not in netlist.programs]
    if missing:
        known = ", ".join(netlist.programs)
        return replace(result, status="skipped", message=f"no program {', '.join(missing)}; programs: {known}")
    config = _config(case, netlist)
    bodies = [netlist.programs[name] for name in settings.programs or dict.fromkeys(netlist.program_order)]
    parameters = _parameters(bodies, {**image_args(image), **config.args}, settings)
    feed = Feed(netlist, config, bodies, parameters, settings.seed, case.reference, image=image)
    compared, skipped = _outputs_to_compare(netlist, config)
    with rounding_warnings() as warned:
        runs = runs_of(netlist, bodies, parameters, feed, case, compared)
    for name in list(compared):
        if name not in runs.observed:
            skipped[name] = "it holds no entries"
    outputs = tuple(
        compare_output(netlist.queues[name], config, runs, case) for name in compared if name in runs.observed
    )
    outputs = with_float32(outputs, netlist, config, runs, case)
    result = replace(
        result,
        programs=tuple(body.name for body in bodies),
        parameters=parameters,
        inputs=runs.inputs,
        outputs=outputs,
        not_compared=skipped,
        ops=runs.ops,
        first_bad=runs.first_bad,
        warnings=(*_told(netlist.diagnostics, case.name), *warned),
        exercised=_exercised(netlist, runs, settings),
    )
    if settings.perf:
        result = replace(result, performance=performance(netlist, bodies, parameters))
    if not outputs:
        return replace(result, status="skipped", message="nothing to compare: " + _why_nothing(skipped))
    good = all(output.passed for output in outputs) and all(item.passed for item in result.performance)
    status: Status = "passed" if good else "failed"
    return replace(result, status=status)


def _exercised(netlist: Netlist, runs: Runs, settings: Settings) -> Mapping[str, tuple[str, ...]]:
    if not settings.coverage:
        return {}
    from buda_emu.coverage.features import features

    return {**{name: tuple(sorted(found)) for name, found in features(netlist).items()}, **runs.exercised}


def _told(findings: Sequence[Diagnostic], name: str) -> tuple[str, ...]:
    """What the checker says of a netlist that is good enough to be tested."""
    if not findings:
        return ()
    rules = ", ".join(sorted({item.rule for item in findings}))
    count = plural(len(findings), "warning")
    return (f"the checker has {count} ({rules}): `buda-emu check {shlex.quote(name)}` shows them",)


def performance(
    netlist: Netlist, bodies: Sequence[Program], parameters: Mapping[str, str]
) -> tuple[PerformanceResult, ...]:
    """`performance-check` against modelled cycles. Raises NetlistError, UnsupportedError."""
    from buda_emu.netlist.testing.performance_check import read_performance_checks
    from buda_emu.timing.checks import evaluate
    from buda_emu.timing.model import model_netlist

    checks = read_performance_checks(netlist.path, netlist.sections)
    if not checks:
        return ()
    return tuple(
        PerformanceResult(
            item.config, item.graph, item.target, item.bound.metric, str(item.bound), item.observed, item.passed
        )
        for item in evaluate(netlist, model_netlist(netlist, bodies, parameters), checks)
    )


def _config(case: Case, netlist: Netlist) -> TestConfig:
    own = read_test_config(case.name, netlist.sections)
    if case.defaults is None:
        return own
    return merged(own, read_defaults(*case.defaults))


def _parameters(bodies: Sequence[Program], args: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """As the harness gives them, then those of the settings that the programs take."""
    names = parameter_names(bodies)
    own = {name: value for name, value in settings.parameters if name in names}
    return {**default_parameters(bodies, args), **own}


def _outputs_to_compare(netlist: Netlist, config: TestConfig) -> tuple[list[str], dict[str, str]]:
    """Those that io-config lists, else every op-fed queue and ram but e2e ones (NETLIST 5.4); why not the others."""
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


def _why_nothing(skipped: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {why}" for name, why in skipped.items()) or "no op feeds a queue"
