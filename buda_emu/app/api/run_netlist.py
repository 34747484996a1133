"""Runs the programs of a netlist once: pushes inputs, reads all outputs back, and reports. An image may have steps of
the host between its programs.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from itertools import chain
from math import prod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from buda_emu.app.api.report import OutputSummary, ProgramSummary, RunReport, Summariser, summarise
from buda_emu.arithmetic.jit.kernel import Compilation, compilations
from buda_emu.emulator.inputs.default import InputBlock
from buda_emu.emulator.inputs.feed import push
from buda_emu.emulator.inputs.input_used import InputUsed
from buda_emu.emulator.inputs.of_image import (
    archive_blocks,
    fit_image_to_inputs,
    in_queues,
    initial_blocks,
    is_archive_of_inputs,
    made_up_blocks,
)
from buda_emu.emulator.inputs.origin import Flaw, OriginSearch, OriginsKnownError
from buda_emu.emulator.inputs.prepared import PreparedRun, RunChoice, prepare_run
from buda_emu.emulator.memory.host import thread_count
from buda_emu.emulator.options import Machine, memory_of, share_of_machine, with_memory
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.emulator.runtime.host.exchange import OutputParts
from buda_emu.emulator.runtime.host.host_io import Readout
from buda_emu.emulator.runtime.machine.running import Progress
from buda_emu.netlist.model import Netlist, Queue, require_netlist
from buda_emu.netlist.program.parameters import parameter_names
from buda_emu.spec.precision import Precision
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.lazy import lazy
from buda_emu.support.options import document_path, integer_of
from buda_emu.support.progress import Activity, Report, do_nothing
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from buda_emu.emulator.distributed.machines import Machines, SavedState
    from buda_emu.emulator.image.device_image import DeviceImage
    from buda_emu.emulator.inputs import host_parts
    from buda_emu.support.workers.job import Workers
else:
    host_parts = lazy("buda_emu.emulator.inputs.host_parts")  # it imports images, archives among them


def run_netlist(
    netlist: Netlist,
    *,
    inputs: str | PathLike[str] | None = None,
    programs: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
    precision: Precision = "format",
    readout: Readout = "host",
    seed: int = 0,
    progress: Report = do_nothing,
    load_seconds: float = 0.0,
    version: str = "",
    image: "DeviceImage | None" = None,
    workers: "Workers | None" = None,
    inputs_done: Callable[[int, int], None] | None = None,
    tell: Callable[[str], None] | None = None,
    foretell: Callable[[str], None] | None = None,
    sink: Callable[[OutputParts], None] | None = None,
    origins: bool = True,
    **machine: Unpack[Machine],
) -> RunReport:
    """Run `programs` (default: all, in file order) once each, and return a report with their outputs.

    Inputs: `inputs` is a directory with [entries, t, rows, cols] for each queue to push, as `<queue>.npy`, by queue in
    .npz or .safetensors files, or as the vendor's .bin files (docs/run/run.md); or it is one .npz file, for an image of
    `compile` by the model's own input names and in its shapes. Without `inputs` the data comes from the test-config, or
    from a generator seeded by `seed` and the queue's name. `parameters` ("$name": value) replace the defaults.

    `image` is the image that the netlist belongs to. Its constants and parameters are pushed first, other queues as
    above; inputs may have the shape of the host's tensors, and with readout "host" outputs have it.

    `machine` is how each machine computes; its memory is that of queues, rams and intermediate tensors
    (docs/run/memory.md). `workers` are machines that hold the netlist in parts, which changes no bit
    (docs/run/workers.md); those on this machine share the memory, and each has one thread by default.

    With `origins`, a run whose outputs are all zero or not finite is followed by a second one, up to the op where that
    began. `tell` is told so before, and a KeyboardInterrupt then ends this search alone; without a `tell` it ends all.

    Callbacks: `progress` gets an Activity for each step, `tell` a sentence about inputs that are not used, `foretell`
    one about the memory that the run is going to hold, before it begins. `inputs_done` gets the number of inputs that
    are through and of all inputs, on the thread that runs them. `sink` takes each output in parts; the report then
    holds none, except those of an image with readout "host".

    Raises HostError, NetlistError, ProgramError, and UnsupportedError where more memory is needed than there is.
    """
    require_netlist(netlist, "run_netlist")
    integer_of("seed", 0)(seed)
    parameters = parameters or {}
    if workers is not None and workers.alone:
        workers = None
    if workers is not None:
        machine = _machine_of_worker(machine)
    if image and readout == "host":
        image.check_outputs()
    bytes_of_inputs = 0
    folder = None
    if inputs:
        folder = Path(document_path(inputs, "run_netlist: inputs"))
        netlist, image, bytes_of_inputs = _fit_to_inputs(netlist, image, folder, parameters)
    ready = prepare_run(
        netlist,
        RunChoice(
            programs=programs,
            parameters=parameters,
            machine=machine,
            image=image,
            all_read=readout == "raw",
        ),
        rams=not inputs,
        as_bits=precision == "device",
        beside=bytes_of_inputs,
        progress=progress,
        foretell=foretell,
    )
    report = RunReport(
        netlist=netlist.path,
        arch=netlist.arch_name,
        precision=precision,
        readout=readout,
        threads=thread_count(machine),
        seed=seed,
        version=version,
        load_seconds=load_seconds,
        push_seconds=0.0,
        inputs=(),
        programs=(),
        outputs=(),
        arrays={},
    )
    if image is not None and image.plan is not None:
        _require_whole_run(readout, programs, workers)
        return run_by_plan(image, ready, report, inputs=folder, progress=progress)
    execution = _Execution(
        ready=ready,
        precision=precision,
        inputs=folder,
        seed=seed,
        readout=readout,
        progress=progress,
        tell=tell or do_nothing,
        origins_skippable=tell is not None,
        inputs_done=inputs_done,
        sink=sink,
    )
    outputs = execution.run(workers, origins=origins)
    return replace(
        report,
        push_seconds=execution.push_seconds,
        inputs=execution.pushed,
        programs=tuple(execution.program_summaries),
        outputs=tuple(outputs),
        arrays=execution.arrays,
    )


def _machine_of_worker(machine: Machine) -> Machine:
    """Return the options of each worker's machine: those of the caller, with one thread unless the caller gives a
    number."""
    return with_memory(Machine(threads=machine.get("threads") or 1), memory_of(machine))


def _require_whole_run(readout: Readout, programs: Sequence[str], workers: "Workers | None") -> None:
    """Raise HostError for options that an image with host parts cannot be run with."""
    if readout != "host" or programs or workers is not None:
        raise HostError(
            "run: an image with host parts is run whole, by its plan: without --program, --readout and --workers"
        )


def _fit_to_inputs(
    netlist: Netlist, image: "DeviceImage | None", inputs: "Path", parameters: Mapping[str, str]
) -> "tuple[Netlist, DeviceImage | None, int]":
    """Return the netlist and its image as the number of inputs in the files demands, and the bytes of host memory that
    copies of these files take up. A netlist without an image stays as it is."""
    from buda_emu.emulator.inputs.numpy_files import host_copy_bytes

    bytes_of_inputs = host_copy_bytes(inputs)
    if image is not None:
        image = fit_image_to_inputs(image, inputs, parameters)
        netlist = image.for_inputs
    return netlist, image, bytes_of_inputs


@dataclass(slots=True)
class _Execution:
    """A run of a prepared netlist on one machine, or on several that hold the netlist in parts.

    `pushed`, `push_seconds`, `program_summaries` and `arrays` are its results: the inputs, the seconds to push them,
    the programs, and the outputs that `sink` did not take.
    """

    ready: PreparedRun
    precision: Precision
    inputs: "Path | None"
    seed: int
    readout: Readout
    progress: Report
    tell: Callable[[str], None]
    inputs_done: Callable[[int, int], None] | None
    sink: Callable[[OutputParts], None] | None
    origins_skippable: bool
    pushed: tuple[InputUsed, ...] = ()
    push_seconds: float = 0.0
    program_summaries: list[ProgramSummary] = field(default_factory=list[ProgramSummary])
    arrays: dict[str, Any] = field(default_factory=dict[str, Any])

    def run(self, workers: "Workers | None", *, origins: bool) -> list[OutputSummary]:
        """Run everything, and return the figures of the outputs, with readout "host" those of the host's tensors of an
        image. With `origins`, a run in this process is followed by the search for the ops where flaws began."""
        if workers is None:
            outputs = self.run_here()
        else:
            outputs = self.run_on_workers(workers)
        image = self.ready.image
        if image and self.readout == "host":
            self.arrays = image.host_outputs(self.arrays)
            queues = self.ready.netlist.queues
            outputs = [
                summarise(name, queues[name].type, queues[name].df, array) for name, array in self.arrays.items()
            ]
        if workers is None and origins:
            outputs = self.locate_origins(outputs)
        return outputs

    def run_here(self) -> list[OutputSummary]:
        """Run everything on an emulator in this process, and return the figures of the outputs."""
        ready = self.ready
        with Emulator(ready.netlist, self.precision, **ready.machine) as emulator:
            return self._run_programs(emulator)

    def run_on_workers(self, workers: "Workers") -> list[OutputSummary]:
        """Run everything on machines that hold the netlist in parts, and return the figures of the outputs. When a
        machine is lost, new ones go on from the last program whose state was saved."""
        from buda_emu.emulator.distributed.machines import Machines, run_with_restarts

        is_local = workers.dask is None
        machine = self.ready.machine
        if is_local:
            machine = share_of_machine(machine, workers.count)
        make = partial(Machines, self.ready.netlist, workers, self.precision, tell=self.tell, **machine)
        return run_with_restarts(make, self._run_programs, self.tell, is_local=is_local)

    def locate_origins(self, outputs: Sequence[OutputSummary]) -> list[OutputSummary]:
        """Return the outputs with `began` set for those that are all zero or not finite. If there are any, as is rare,
        everything is run a second time with a listener, until each origin is known. After a note to `tell`,
        KeyboardInterrupt ends only this search, and the outputs stay as they are."""
        flaws: dict[str, Flaw] = {}
        for output in outputs:
            flaw = _find_flaw(output)
            if flaw is not None:
                flaws[output.queue] = flaw
        if not flaws:
            return list(outputs)
        self.tell(_search_note(flaws.values()))
        try:
            origins = self._run_to_origins(flaws)
        except KeyboardInterrupt:
            if not self.origins_skippable:
                raise
            self.tell("skipped, so the op where it began is not known")
            return list(outputs)
        return [replace(output, began=origins.get(output.queue, "")) for output in outputs]

    def _run_to_origins(self, flaws: Mapping[str, Flaw]) -> Mapping[str, str]:
        """Run everything again until the origins of the flaws are known, and return them by output."""
        ready = self.ready
        search = OriginSearch(ready.netlist, flaws)
        with Emulator(ready.netlist, self.precision, **ready.machine, listeners=(search,)) as emulator:
            self._push_inputs(emulator, do_nothing)
            with suppress(OriginsKnownError):
                for number, body in enumerate(ready.bodies):
                    text = f"program {body.name} again, to find the op where it began"
                    self.progress(Activity(text, "programs", number, len(ready.bodies)))
                    emulator.run(body.name, ready.values)
        return search.origins

    def _push_inputs(self, emulator: "Emulator | Machines", tell: Callable[[str], None]) -> tuple[InputUsed, ...]:
        """Push the tensors of the image, then those of the files, or random ones if there are no files. Returns a
        record of each tensor that was pushed. Raises HostError."""
        ready = self.ready
        inputs = self.inputs
        netlist = ready.netlist
        image = ready.image
        image_queues = image.held_queues if image else frozenset[str]()
        if inputs and is_archive_of_inputs(inputs):
            blocks = in_queues(image, archive_blocks(netlist, inputs, image, ready.limit))
        elif inputs:
            blocks = in_queues(image, _directory_blocks(ready, inputs, image_queues, tell))
        else:
            blocks = made_up_blocks(
                netlist,
                ready.config,
                ready.bodies,
                ready.values,
                self.seed,
                image,
                excluded=image_queues,
                needed=ready.steps and ready.steps.entries,
            )
        return push(emulator, chain(initial_blocks(image), blocks), self.progress)

    def _run_programs(self, emulator: "Emulator | Machines", saved: "SavedState | None" = None) -> list[OutputSummary]:
        """Push the inputs, run the programs, and return the figures of the outputs. Machines that replace lost ones go
        on from the state that was saved."""
        machines = None if isinstance(emulator, Emulator) else emulator
        done = 0
        if saved is not None and machines is not None:
            done = saved.restore(machines)
        del self.program_summaries[done:]
        if not done:
            self.progress(Activity("inputs", "inputs"))
            start = time.perf_counter()
            self.pushed = self._push_inputs(emulator, self.tell)
            self.push_seconds = time.perf_counter() - start
        run = self._program_runner(emulator)
        bodies = self.ready.bodies
        values = self.ready.values
        with compilations() as compiled:
            for number, body in enumerate(bodies[done:], done + 1):
                self.progress(Activity(f"program {body.name}", "programs", number - 1, len(bodies)))
                compiled_before = len(compiled)
                start = time.perf_counter()
                run(body.name, values)
                seconds = _seconds_without_compiling(start, compiled[compiled_before:])
                parameters = {name: values[name] for name in parameter_names([body])}
                self.program_summaries.append(ProgramSummary(body.name, parameters, seconds))
                if saved is not None and machines is not None and number < len(bodies):
                    saved.save(machines, number)
        self.progress(Activity("outputs", "outputs"))
        return self._read_outputs(emulator)

    def _program_runner(self, emulator: "Emulator | Machines") -> Callable[[str, Mapping[str, str]], object]:
        """Return the function that runs a program by name and parameters; it counts inputs if a callback and their
        number are there."""
        steps = self.ready.steps
        if self.inputs_done is None or steps is None or not isinstance(emulator, Emulator):
            return emulator.run
        return _CountingRunner(emulator, steps.inputs, self.inputs_done).run

    def _read_outputs(self, emulator: "Emulator | Machines") -> list[OutputSummary]:
        """Read all outputs, and return their figures. The outputs of an image that the host reads are kept whole, since
        they get the host's shapes; queues between its parts are none of them."""
        sink = self.sink
        hidden_queues: Collection[str] = frozenset[str]()
        image = self.ready.image
        if image is not None and self.readout == "host":
            sink = None
            hidden_queues = image.between_queues
        return [
            _summarise_output(self.ready.netlist, output, sink, self.arrays)
            for output in emulator.outputs_in_parts(self.readout)
            if output.queue not in hidden_queues
        ]


def _seconds_without_compiling(start: float, compiled: Iterable[Compilation]) -> float:
    """Return the seconds since `start` without those of compiling kernels, which is not part of a program: the next run
    takes the kernels from disk."""
    compile_seconds = sum(compilation.seconds for compilation in compiled)
    return max(0.0, time.perf_counter() - start - compile_seconds)


def _summarise_output(
    netlist: Netlist, output: OutputParts, sink: Callable[[OutputParts], None] | None, arrays: dict[str, Any]
) -> OutputSummary:
    """Return the figures of an output, and hand it to `sink`; without a sink it goes into `arrays` as a whole."""
    figures = Summariser()

    def counted_parts() -> Iterator[Any]:
        """Yield the parts of the output, and add each to the figures on its way."""
        for part in output.parts:
            figures.add(part)
            yield part

    parts = counted_parts()
    if sink is not None:
        sink(replace(output, parts=parts))
        for _ in parts:  # those that the sink did not read are counted, too
            pass
    else:
        array = np.empty(output.shape, output.dtype)
        arrays[output.queue] = array
        first = 0
        for part in parts:
            array[first : first + len(part)] = part
            first += len(part)
    queue = netlist.queues[output.queue]
    return figures.summary(queue.name, queue.type, queue.df, output.shape)


def _search_note(flaws: Collection[Flaw]) -> str:
    """Return the sentence that tells the user of the second run, which looks for the origin of these flaws."""
    words = " or ".join(word for word in ("not finite", "all zero") if word.removeprefix("all ") in flaws)
    return f"outputs are {words}; running again to find the op where it began; Ctrl-C skips this"


def _find_flaw(output: OutputSummary) -> Flaw | None:
    """Return the flaw of an output whose origin is worth a search: "not finite", or "zero" if it is all zeros; None if
    it has neither."""
    if output.not_finite:
        return "not finite"
    if output.zeros == prod(output.shape):
        return "zero"
    return None


class _CountingRunner:
    """A runner of programs, one after the other, that reports after each input how many inputs of all programs are
    through."""

    def __init__(self, emulator: Emulator, count: int, report: Callable[[int, int], None]) -> None:
        self._emulator = emulator
        self._count = count
        self._report = report
        self._done = 0

    def run(self, program: str, values: Mapping[str, str]) -> None:
        """Run a program by its name and the values of its parameters, and report its inputs."""
        before = self._done

        def count(state: Progress) -> None:
            """Report the inputs done so far, of all programs together."""
            self._done = before + state.inputs
            self._report(self._done, self._count)

        self._emulator.run(program, values, progress=count)


def _directory_blocks(
    ready: PreparedRun, directory: "Path", image_queues: Collection[str], tell: Callable[[str], None]
) -> Iterator[InputBlock]:
    """Yield every tensor of a directory that belongs to a queue, in the netlist's order of queues.

    `image_queues` are queues whose tensors the image holds: files must not have them. The arrays for an image may have
    the shape of the host's tensors. `tell` gets a sentence with the names that are not pushed. Raises HostError for a
    path that is no directory, has no tensors, or has a tensor that belongs to no queue.
    """
    from buda_emu.emulator.inputs.reference import DirectoryFiles, tensor_names, tensors, whole_array

    netlist = ready.netlist
    image = ready.image
    if not directory.is_dir():
        raise HostError(f"inputs: {directory} is not a directory")
    files = DirectoryFiles.for_netlist(directory, netlist.path, ready.limit)
    names = tensor_names(files)
    if not names:
        raise HostError(f"inputs: no .npy, .npz, .safetensors or .bin file in {files.where}")
    filled_by_ops = _names_filled_by_ops(ready, names, directory, image_queues)
    if filled_by_ops:
        tell(f"inputs: not pushed, since ops fill them: {', '.join(filled_by_ops)}")
    host_queues = [queue for queue in netlist.queues.values() if queue.host_fed or queue.is_ram]
    for queue in host_queues:
        for name in _names_in_files(queue, image):
            stored = None
            if image is not None:
                stored = whole_array(files, name)
            if stored is None:
                stored = tensors(files, name, queue.df, queue.blocking.element_shape)
            if stored is not None:
                yield InputBlock(queue.name, stored.array, None, str(files.directory / stored.source))
            del stored  # lets go of its memory before the next tensor is read


def _names_in_files(queue: Queue, image: "DeviceImage | None") -> Sequence[str]:
    """Return the names under which files may have the tensors of a queue: its own, or those of the host's tensors for
    the queue of an image, then that of its first contents."""
    queue_names: Sequence[str] = (queue.name,)
    if image is not None:
        queue_names = image.names_of(queue.name)
    return (*queue_names, f"{queue.name}.init")


def _names_filled_by_ops(
    ready: PreparedRun, file_of_name: Mapping[str, str], directory: "Path", image_queues: Collection[str]
) -> list[str]:
    """Return the names of tensors whose queues ops fill, so that they are not pushed. Raises HostError for a tensor
    that the image holds, or that belongs to no queue."""
    image = ready.image
    labels: Collection[str] = ()
    if image is not None and image.model is not None:
        labels = image.model.labels
    filled_by_ops: list[str] = []
    for name, file in file_of_name.items():
        if name in labels:
            continue
        if name in image_queues:
            raise HostError(f"inputs: the image holds the tensor of queue {name}: take it out of {directory / file}")
        if not _is_for_host_queue(ready.netlist, name, directory, file):
            filled_by_ops.append(name)
    return filled_by_ops


def _is_for_host_queue(netlist: Netlist, name: str, directory: "Path", file: str) -> bool:
    """Return whether a tensor belongs to a ram or to a queue that the host feeds; False where an op fills the queue.
    Raises HostError for a tensor that belongs to neither queue nor op."""
    queue = netlist.queues.get(name) or netlist.queues.get(name.removesuffix(".init"))
    if queue is None and name not in netlist.ops:
        hint = near(name, netlist.queues)
        place = str(directory / file)
        if not file.startswith(name):
            place = f"{name} in {place}"
        raise HostError(f"inputs: {place} belongs to no queue of {netlist.path}{f' ({hint})' if hint else ''}")
    return queue is not None and (queue.host_fed or queue.is_ram)


def run_by_plan(
    image: "DeviceImage",
    ready: PreparedRun,
    report: RunReport,
    *,
    inputs: "Path | None",
    progress: Report,
) -> RunReport:
    """Run the programs and the host's steps of an image in the order of its plan, for one set of inputs.

    `report` has the settings; it is returned with the results. The host's steps stand among the programs, each with its
    seconds. `inputs` is an .npz file by the model's input names, None for
    random inputs. Raises HostError, ProgramError.
    """
    parts = host_parts.HostParts(image)
    if inputs is None:
        model_inputs = parts.made_up(report.seed)
        source = host_parts.MADE_UP
    else:
        model_inputs = parts.read(inputs, ready.limit)
        source = str(inputs)
    netlist = image.for_inputs
    summaries: list[ProgramSummary] = []
    precision: Precision = report.precision  # type: ignore[assignment]
    with Emulator(netlist, precision, **ready.machine) as emulator:
        start = time.perf_counter()
        image_inputs = push(emulator, initial_blocks(image), progress)
        push_seconds = time.perf_counter() - start

        def run(name: str) -> None:
            """Run a program, and add its parameters and its seconds to the summaries."""
            progress(Activity(f"program {name}", "programs", len(summaries)))
            begin = time.perf_counter()
            emulator.run(name, ready.values)
            summaries.append(ProgramSummary(name, ready.values, time.perf_counter() - begin))

        results = parts.run(emulator, model_inputs, run, source)
    summaries += [ProgramSummary(f"on the host: {name}", {}, seconds) for name, seconds in results.seconds.items()]
    outputs = tuple(
        summarise(output.label, "output", output.dtype, results.outputs[output.label]) for output in parts.plan.gives
    )
    return replace(
        report,
        push_seconds=push_seconds,
        inputs=(*image_inputs, *results.inputs),
        programs=tuple(summaries),
        outputs=outputs,
        arrays=results.outputs,
    )
