"""The runs of a case: its programs in both precisions, each on a machine of its own with the same inputs, or expected
outputs that come from outside."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from numpy.typing import NDArray

from buda_emu.emulator.inputs.feed import Feed, push
from buda_emu.emulator.inputs.input_used import InputUsed
from buda_emu.emulator.inputs.of_image import host_copies, image_queues
from buda_emu.emulator.inputs.prepared import held_bytes, require_memory, require_runnable, try_walk
from buda_emu.emulator.inputs.reference import Files, tensors, whole_array
from buda_emu.emulator.options import Machine, memory_of, with_memory
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.netlist.model import Netlist, Program, Queue
from buda_emu.spec.precision import Precision
from buda_emu.support.errors import UnsupportedError
from buda_emu.support.records import dataclass
from buda_emu.testing.verify.op_by_op import run_pair
from buda_emu.testing.verify.result import FirstBad, OpResult, refusals
from buda_emu.testing.verify.runs.collect import Case, Settings

if TYPE_CHECKING:
    from buda_emu.emulator.image.device_image import DeviceImage
    from buda_emu.emulator.image.model_io import ModelOutput
    from buda_emu.emulator.inputs.host_parts import HostParts
    from buda_emu.testing.coverage.run_features import Noting


Arrays = Mapping[str, NDArray[Any]]
_COPIES: Final = 5  # of an output in memory: observed, expected, and those that comparing them takes


@dataclass(frozen=True, slots=True)
class Runs:
    """The results of a case's runs: outputs as the host reads them, and figures of ops where they were asked for."""

    observed: Arrays
    expected: Arrays
    inputs: tuple[InputUsed, ...]
    ops: tuple[OpResult, ...] = ()
    first_bad: FirstBad | None = None
    outside: frozenset[str] = frozenset()  # outputs whose expected entries come from outside
    float32: Callable[[], Arrays] | None = None  # runs once more, in precision "ideal"
    image: "DeviceImage | None" = None
    exercised: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


def _require_memory(
    netlist: Netlist,
    bodies: Sequence[Program],
    parameters: Mapping[str, str],
    feed: Feed,
    settings: Settings,
    compared: Sequence[str],
) -> int | None:
    """Return how many bytes each machine may use, with room left for copies of the outputs `compared`; None without a
    limit. Raises UnsupportedError where the run needs more."""
    steps = try_walk(netlist, bodies, parameters)
    machines = 1
    if settings.per_op:
        machines = 2
    queue_bytes = {}
    if steps is not None:
        queue_bytes = held_bytes(netlist, steps)
    beside = _COPIES * sum(queue_bytes.get(name, 0) for name in compared) // machines + host_copies(feed.image)
    return require_memory(
        netlist, steps, memory_of(settings.machine), machines=machines, beside=beside, queues=image_queues(feed.image)
    )


def runs_of(
    netlist: Netlist,
    bodies: Sequence[Program],
    parameters: Mapping[str, str],
    feed: Feed,
    case: Case,
    compared: Sequence[str],
) -> Runs:
    """Run programs on the inputs of `feed` in the precision that is tested and, unless the expected outputs come from
    files, in that of the expected ones, and return the outputs of the queues `compared`. Raises the errors of a run."""
    require_runnable(netlist, bodies)
    limit = _require_memory(netlist, bodies, parameters, feed, case.settings, compared)
    runner = _CaseRunner(netlist, bodies, parameters, feed, case, compared, with_memory(case.settings.machine, limit))
    if case.settings.per_op:
        return runner.run_side_by_side()
    return runner.run_one_by_one()


class _CaseRunner:
    """Runs the programs of a case in both precisions, each on a machine of its own with the same inputs."""

    def __init__(
        self,
        netlist: Netlist,
        bodies: Sequence[Program],
        parameters: Mapping[str, str],
        feed: Feed,
        case: Case,
        compared: Sequence[str],
        machine: Machine,
    ) -> None:
        self._netlist = netlist
        self._bodies = bodies
        self._parameters = parameters
        self._feed = feed
        self._settings = case.settings
        self._reference = case.reference
        self._compared = compared
        self._machine = machine
        self._parts = _host_parts(feed, case)
        self._inputs: tuple[InputUsed, ...] = ()
        self._noting: Noting | None = None

    def run_side_by_side(self) -> Runs:
        """Run both precisions at the same time and compare every op's results; for `per_op`. Raises the errors of a
        run."""
        settings = self._settings
        pair = run_pair(
            self._netlist,
            self._push_inputs,
            [(body.name, self._parameters) for body in self._bodies],
            precision=settings.precision,
            expected=settings.expected,
            reference=self._results_of_op,
            threshold=settings.threshold,
            note=self._note_coverage,
            **self._machine,
        )
        return Runs(
            observed=pair.observed,
            expected=pair.expected,
            inputs=self._inputs,
            ops=pair.ops,
            first_bad=pair.first_bad,
            image=self._feed.image,
            exercised=self._exercised_features(),
        )

    def run_one_by_one(self) -> Runs:
        """Run the precisions one after the other; the expected one only if an output does not come from outside. Raises
        the errors of a run."""
        outside = self._outputs_from_outside()
        expected: Arrays = {}
        if len(outside) < len(self._compared):
            expected = self._run_in_precision(self._settings.expected)
        float32 = None
        if outside and self._settings.precision != "ideal":
            float32 = partial(self._run_in_precision, "ideal")
        observed = self._run_in_precision(self._settings.precision)
        return Runs(
            observed,
            expected,
            self._inputs,
            outside=outside,
            float32=float32,
            image=self._feed.image,
            exercised=self._exercised_features(),
        )

    def _run_in_precision(self, precision: Precision) -> Arrays:
        """Run the programs on a new machine and return the compared outputs that hold entries. Raises the errors of a
        run."""
        with refusals(precision), Emulator(self._netlist, precision, **self._machine) as emulator:
            self._note_coverage(emulator)
            if self._parts is not None:
                result = self._parts.on(emulator, self._parameters, self._settings.seed)
                self._inputs = tuple(result.inputs)
                return {name: array for name, array in result.entries.items() if name in self._compared}
            self._push_inputs(emulator)
            for body in self._bodies:
                emulator.run(body.name, self._parameters)
            return emulator.outputs(queues=self._compared)

    def _push_inputs(self, emulator: Emulator) -> None:
        """Push all inputs into a machine, and remember which ones they were."""
        self._inputs = tuple(push(emulator, self._feed.blocks()))

    def _note_coverage(self, emulator: Emulator) -> None:
        """If coverage is asked for, record from now on which features the machine's run exercises."""
        if self._settings.coverage:
            from buda_emu.testing.coverage.run_features import Noting  # a costly import

            self._noting = Noting(emulator)

    def _exercised_features(self) -> Mapping[str, tuple[str, ...]]:
        """Return the features that the last recorded run exercised, by list; {} without coverage."""
        if self._noting is None:
            return {}
        return self._noting.exercised_features

    def _results_of_op(self, name: str) -> NDArray[Any] | None:
        """Return the results of an op that the case's reference files hold, [inputs, t, rows, cols], with which the op
        is compared; None where they hold none. Raises HostError for a file of another size, shape or kind."""
        if self._reference is None:
            return None
        op = self._netlist.ops[name]
        tensor = tensors(self._reference, name, op.out_df, op.blocking.element_shape)
        if tensor is None:
            return None
        return tensor.array

    def _outputs_from_outside(self) -> frozenset[str]:
        """Return the names of the compared outputs whose expected entries come from outside."""
        reference = self._reference
        if reference is None:
            return frozenset()
        queues = self._netlist.queues
        return frozenset(name for name in self._compared if outside_entries(queues[name], reference, self._feed.image))


def _host_parts(feed: Feed, case: Case) -> "HostParts | None":
    """Return what runs an image whose host computes between programs; None for any other image, and for a netlist.
    Raises UnsupportedError for settings that such an image cannot be tested with."""
    if feed.image is None or feed.image.plan is None:
        return None
    if case.settings.per_op or case.settings.programs or case.reference is not None:
        raise UnsupportedError("an image with host parts is tested whole: without --per-op, --program and --reference")
    from buda_emu.emulator.inputs.host_parts import HostParts  # imports the libraries that the host computes with

    return HostParts(feed.image)


def model_output_of(image: "DeviceImage | None", queue: str) -> "ModelOutput | None":
    """Return which output of the model a queue holds; None for queues of a netlist or image without a model, and for
    others."""
    if image is None or image.model is None:
        return None
    return image.model.by_queue.get(queue)


def outside_entries(queue: Queue, reference: Files, image: "DeviceImage | None") -> tuple[NDArray[Any], str] | None:
    """Return a queue's expected entries from outside in the queue's shape, and their source; None where there are none.
    A model's output may be given in the model's own shape."""
    output = model_output_of(image, queue.name)
    if output is not None:
        model_array = whole_array(reference, queue.name)
        if model_array is not None:
            entries = output.in_queue(model_array.array, queue.blocking.element_shape)
            if entries is not None:
                return entries, model_array.source
    tensor = tensors(reference, queue.name, queue.df, queue.blocking.element_shape)
    if tensor is not None:
        return (tensor.array, tensor.source)
    return None
