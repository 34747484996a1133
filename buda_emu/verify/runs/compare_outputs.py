"""Runs the netlist under test and judges each output (NETLIST 5).

Observed is the run in `Settings.precision`, by default on the device; expected is the run in `Settings.expected` on the
same inputs, or tensors from outside where there are any. Both are read as the host reads them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import HostError, UnsupportedError
from buda_emu.netlist.model import Netlist, Program, Queue
from buda_emu.netlist.testing.config import TestConfig
from buda_emu.runtime.emulator import Emulator
from buda_emu.spec.precision import Precision
from buda_emu.verify.comparison.compare import compare
from buda_emu.verify.comparison.figures import figures
from buda_emu.verify.inputs.feed import Feed
from buda_emu.verify.inputs.input_used import InputUsed
from buda_emu.verify.inputs.of_image import host_copies, known_queues
from buda_emu.verify.inputs.push import push
from buda_emu.verify.inputs.reference import Files, tensors, whole_array
from buda_emu.verify.memory_needed import bytes_held, foreseen, require_memory
from buda_emu.verify.observed import refusals
from buda_emu.verify.op_by_op.per_op import run_pair
from buda_emu.verify.preflight import require_runnable
from buda_emu.verify.result import FirstBad, OpResult, OutputResult
from buda_emu.verify.runs.case import Case

if TYPE_CHECKING:
    from buda_emu.coverage.memory import Noting
    from buda_emu.image.device_image import DeviceImage
    from buda_emu.image.model_io import ModelOutput
    from buda_emu.verify.inputs.host_parts import HostParts

Arrays = Mapping[str, NDArray[Any]]
_COPIES: Final = 5  # of an output: observed, expected, and what comparing them takes


@dataclass(frozen=True, slots=True)
class Runs:
    """What the runs left: outputs as the host reads them, and what the ops looked like where that was asked for."""

    observed: Arrays
    expected: Arrays
    inputs: tuple[InputUsed, ...]
    ops: tuple[OpResult, ...] = ()
    first_bad: FirstBad | None = None
    outside: frozenset[str] = frozenset()  # outputs whose expected entries come from outside
    float32: Callable[[], Arrays] | None = None  # runs once more, in precision "ideal"
    image: "DeviceImage | None" = None
    exercised: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


def runs_of(
    netlist: Netlist,
    bodies: Sequence[Program],
    parameters: Mapping[str, str],
    feed: Feed,
    case: Case,
    compared: Sequence[str],
) -> Runs:
    """Run programs in both precisions, on the inputs of `feed`. Raises what running them raises."""
    settings, reference = case.settings, case.reference
    require_runnable(netlist, bodies)
    steps = foreseen(netlist, bodies, parameters)
    machines = 2 if settings.per_op else 1
    held = bytes_held(netlist, steps) if steps is not None else {}
    beside = _COPIES * sum(held.get(name, 0) for name in compared) // machines + host_copies(feed.image)
    known = known_queues(feed.image)
    limit = require_memory(netlist, steps, settings.memory_limit, machines=machines, beside=beside, known=known)
    inputs: list[InputUsed] = []
    parts = _host_parts(feed, case)
    noted: list[Noting] = []

    def note(emulator: Emulator) -> None:
        if settings.coverage:
            from buda_emu.coverage.memory import Noting  # only for those who ask

            noted.append(Noting(emulator))

    def exercised() -> Mapping[str, tuple[str, ...]]:
        return noted[-1].exercised() if noted else {}

    def fill(emulator: Emulator) -> None:
        inputs[:] = push(emulator, feed.blocks())

    def once(precision: Precision) -> Arrays:
        with refusals(precision), Emulator(netlist, precision, settings.threads, memory_limit=limit) as emulator:
            note(emulator)
            if parts is not None:
                found = parts.on(emulator, parameters, settings.seed)
                inputs[:] = found.inputs
                return {name: array for name, array in found.entries.items() if name in compared}
            fill(emulator)
            for body in bodies:
                emulator.run(body.name, parameters)
            return emulator.outputs(queues=compared)

    if settings.per_op:

        def named_op(name: str) -> NDArray[Any] | None:
            if reference is None:
                return None
            op = netlist.ops[name]
            found = tensors(reference, name, op.out_df, op.blocking.element_shape)
            return found.array if found is not None else None

        pair = run_pair(
            netlist,
            fill,
            [(body.name, parameters) for body in bodies],
            precision=settings.precision,
            expected=settings.expected,
            threads=settings.threads,
            reference=named_op,
            threshold=settings.threshold,
            memory_limit=limit,
            note=note,
        )
        return Runs(
            pair.observed,
            pair.expected,
            tuple(inputs),
            pair.ops,
            pair.first_bad,
            image=feed.image,
            exercised=exercised(),
        )
    queues = netlist.queues
    outside = frozenset(
        name for name in compared if reference is not None and _expected(queues[name], reference, feed.image)
    )
    expected: Arrays = once(settings.expected) if len(outside) < len(compared) else {}
    float32 = (lambda: once("ideal")) if outside and settings.precision != "ideal" else None
    observed = once(settings.precision)
    return Runs(
        observed, expected, tuple(inputs), outside=outside, float32=float32, image=feed.image, exercised=exercised()
    )


def _host_parts(feed: Feed, case: Case) -> "HostParts | None":
    """Of an image whose host computes between programs. Raises UnsupportedError for what is not tested so."""
    if feed.image is None or feed.image.plan is None:
        return None
    if case.settings.per_op or case.settings.programs or case.reference is not None:
        raise UnsupportedError("an image with host parts is tested whole: without --per-op, --program and --reference")
    from buda_emu.verify.inputs.host_parts import HostParts  # with what the host computes by

    return HostParts(feed.image)


def with_float32(
    outputs: tuple[OutputResult, ...], netlist: Netlist, config: TestConfig, runs: Runs, case: Case
) -> tuple[OutputResult, ...]:
    """Of outputs that differ from tensors from outside: does float32 throughout, too? Then formats are not why."""
    wrong = {item.queue for item in outputs if not item.passed} & runs.outside
    if not wrong or runs.float32 is None:
        return outputs
    exact = replace(runs, observed=runs.float32())
    found: list[OutputResult] = []
    for item in outputs:
        if item.queue in wrong:
            same = compare_output(netlist.queues[item.queue], config, exact, case).passed
            said = "agrees with it: it is the formats" if same else "differs from it, too: it is not the formats"
            found.append(replace(item, reason=f"{item.reason}; float32 throughout {said}"))
        else:
            found.append(item)
    return tuple(found)


def _own(image: "DeviceImage | None", queue: str) -> "ModelOutput | None":
    """The output of the model that a queue holds, of an image that `buda-emu compile` wrote."""
    return image.model.by_queue.get(queue) if image is not None and image.model is not None else None


def _expected(queue: Queue, reference: Files, image: "DeviceImage | None") -> tuple[NDArray[Any], str] | None:
    """Entries from outside and where they come from. A model's output may have the model's own shape."""
    own = _own(image, queue.name)
    whole = whole_array(reference, queue.name) if own is not None else None
    if own is not None and whole is not None:
        held = own.in_queue(whole.array, queue.blocking.element_shape)
        if held is not None:
            return held, whole.source
    found = tensors(reference, queue.name, queue.df, queue.blocking.element_shape)
    return (found.array, found.source) if found is not None else None


def compare_output(queue: Queue, config: TestConfig, runs: Runs, case: Case) -> OutputResult:
    """Compare one output; where the expected entries are fewer than the observed ones, or more, the first of them."""
    comparison = config.comparison(queue.name)
    observed = runs.observed[queue.name]
    outside = _expected(queue, case.reference, runs.image) if case.reference is not None else None
    expected, source = outside or (runs.expected[queue.name], case.settings.expected)
    entries = min(len(observed), len(expected))
    if not entries:
        raise HostError(f"{source} holds no entries for output {queue.name}")
    if entries < max(len(observed), len(expected)):
        source += f" (first {entries} of {len(observed)} observed, {len(expected)} expected entries)"
    observed, expected = observed[:entries], expected[:entries]
    own = _own(runs.image, queue.name)
    if own is not None:
        observed, expected = own.alone(observed), own.alone(expected)
    tile_dim = queue.blocking.tile_dim
    with np.errstate(all="ignore"):
        verdict = compare(expected, observed, comparison, tile_dim, case.settings.compare)
        found = figures(expected, observed, comparison, tile_dim, detail=case.settings.detail)
    return OutputResult(
        queue.name,
        queue.type,
        queue.df,
        tuple(observed.shape),
        tile_dim,
        source,
        comparison,
        verdict.passed,
        verdict.reason,
        found.pcc,
        found.match,
        found.max_error,
        found.mean_error,
        found.max_error_at,
        found.not_finite_expected,
        found.not_finite_observed,
        found.tiles,
        found.bad_tiles,
        found.first_bad_tile,
        found.detail,
    )
