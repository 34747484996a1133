"""Load a netlist, feed it, run its programs, read everything back; also of an image whose host computes between its
programs.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from buda_emu.app.api.report import OutputSummary, ProgramSummary, RunReport, Summariser, summarise
from buda_emu.arithmetic.jit.kernel import compilations
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
from buda_emu.emulator.inputs.origin import Flaw, Flaws, locate_origin
from buda_emu.emulator.inputs.prepared import PreparedRun, RunChoice, prepare_run
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.emulator.runtime.host.exchange import OutputParts
from buda_emu.emulator.runtime.host.host_io import Readout
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.program.parameters import parameter_names
from buda_emu.spec.precision import Precision
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.lazy import lazy
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from buda_emu.emulator.distributed.machines import Machines, SavedState
    from buda_emu.emulator.image.device_image import DeviceImage
    from buda_emu.emulator.inputs import host_parts
    from buda_emu.support.workers.job import Workers
else:
    host_parts = lazy("buda_emu.emulator.inputs.host_parts")  # it imports images, archives among them


def run_netlist(
    netlist: Netlist,
    *,
    inputs: "Path | None" = None,
    programs: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
    precision: Precision = "format",
    readout: Readout = "host",
    threads: int = 1,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
    load_seconds: float = 0.0,
    version: str = "",
    image: "DeviceImage | None" = None,
    memory_limit: int | None = None,
    workers: "Workers | None" = None,
    inputs_done: Callable[[int, int], None] | None = None,
    tell: Callable[[str], None] = lambda _: None,
    foretell: Callable[[str], None] | None = None,
    sink: Callable[[OutputParts], None] | None = None,
) -> RunReport:
    """Run `programs` (default: all, in file order) once each and report.

    `inputs`: a directory with [entries, t, rows, cols] for each queue to push, as `<queue>.npy`, by queue in .npz or
    .safetensors files, or as the vendor's .bin files (docs/run/run.md), or one .npz file, for an image of
    `compile` by the model's own input names and in its shapes; `tell` is told what in it is not used,
    `foretell` what memory the run is going to hold, before it begins. Without it
    the data comes from the test-config or a generator seeded by `seed` and the queue's name. `parameters` ("$name":
    value) replace the defaults. `progress` is told what happens. `image`: the one that the netlist is of. Its
    constants and parameters are pushed first, other queues as said; inputs may have the shape of the host's
    tensors; and with readout "host" outputs have it. `memory_limit`: bytes of queues, rams and intermediate tensors
    (docs/run/memory.md). `workers`: machines that hold the netlist in parts, which changes no bit
    (docs/run/workers.md); those of this machine share the limit. `inputs_done` is told how many of all inputs are
    through, on the thread that runs them. `sink` takes each output in parts, and the report holds none, but those of an
    image with readout "host". Raises HostError, NetlistError, ProgramError, UnsupportedError: more memory is needed
    than there is.
    """
    if workers is not None and workers.alone:
        workers = None
    if image and readout == "host":
        image.check_outputs()
    beside = 0
    if inputs:
        from buda_emu.emulator.inputs.numpy_files import host_copy_bytes

        beside = host_copy_bytes(inputs)
        if image is not None:
            image = fit_image_to_inputs(image, inputs, parameters or {})
            netlist = image.for_inputs
    ready = prepare_run(
        netlist,
        RunChoice(
            programs=programs,
            parameters=parameters or {},
            memory_limit=memory_limit,
            image=image,
            all_read=readout == "raw",
        ),
        rams=not inputs,
        as_bits=precision == "device",
        beside=beside,
        progress=progress,
        foretell=foretell,
    )
    limit = ready.limit
    arch = netlist.arch_name
    report = RunReport(
        netlist=netlist.path,
        arch=arch,
        precision=precision,
        readout=readout,
        threads=threads,
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
        if readout != "host" or programs or workers is not None:
            said = "without --program, --readout and --workers"
            raise HostError(f"run: an image with host parts is run whole, by its plan: {said}")

        return run_parted(image, ready.values, report, inputs=inputs, memory_limit=limit, progress=progress)

    running = _Running(ready, inputs, seed, readout, progress, tell, inputs_done, sink)
    if workers is None:
        with Emulator(netlist, precision, threads, memory_limit=limit) as emulator:
            found = running.carry_out(emulator)
    else:
        from buda_emu.emulator.distributed.machines import Machines, run_with_restarts

        own = limit if workers.dask is not None else limit // workers.count  # of each worker
        make = partial(Machines, netlist, workers, precision, threads, memory_limit=own, tell=tell)
        found = run_with_restarts(make, running.carry_out, tell, is_local=workers.dask is None)
    arrays = running.arrays
    if image and readout == "host":
        arrays = image.host_outputs(arrays)
        queues = netlist.queues
        found = [summarise(name, queues[name].type, queues[name].df, array) for name, array in arrays.items()]
    outputs = tuple(found)
    flaws: dict[str, Flaw] = {output.queue: flaw for output in outputs if (flaw := _flaw(output)) is not None}
    if flaws and workers is None:
        # Once more with somebody watching; what is sound, which is nearly everything, costs nothing.
        progress("looking for where it began")
        with Emulator(netlist, precision, threads, memory_limit=limit, listeners=(watch := Flaws(),)) as emulator:
            running.fill(emulator, lambda _: None)
            for body in ready.bodies:
                emulator.run(body.name, ready.values)
        places = {name: locate_origin(netlist, watch, name, flaw) for name, flaw in flaws.items()}
        outputs = tuple(replace(output, began=places.get(output.queue, "")) for output in outputs)
    return replace(
        report,
        push_seconds=running.push_seconds,
        inputs=running.pushed,
        programs=tuple(running.ran),
        outputs=outputs,
        arrays=arrays,
    )


@dataclass(slots=True)
class _Running:
    """A run on one machine, or on several that hold the netlist in parts; on others that replace them it goes on.

    `pushed`, `push_seconds`, `ran` and `arrays` are its results: inputs, seconds to push them, programs, and the
    outputs that `sink` did not take.
    """

    ready: PreparedRun
    inputs: "Path | None"
    seed: int
    readout: Readout
    progress: Callable[[str], None]
    tell: Callable[[str], None]
    inputs_done: Callable[[int, int], None] | None
    sink: Callable[[OutputParts], None] | None
    pushed: tuple[InputUsed, ...] = ()
    push_seconds: float = 0.0
    ran: list[ProgramSummary] = field(default_factory=list[ProgramSummary])
    arrays: dict[str, Any] = field(default_factory=dict[str, Any])

    def fill(self, emulator: "Emulator | Machines", tell: Callable[[str], None]) -> tuple[InputUsed, ...]:
        """Push what the image holds, and what files or the generator have. Raises HostError."""
        ready = self.ready
        inputs = self.inputs
        netlist = ready.netlist
        image = ready.image
        held = image.held_queues if image else frozenset[str]()
        if inputs and is_archive_of_inputs(inputs):
            blocks = in_queues(image, archive_blocks(netlist, inputs, image, ready.limit))
        elif inputs:
            blocks = in_queues(image, _files(netlist, inputs, held, image, tell, ready.limit))
        else:
            needed = ready.steps and ready.steps.entries
            blocks = made_up_blocks(
                netlist, ready.config, ready.bodies, ready.values, self.seed, image, excluded=held, needed=needed
            )
        return push(emulator, chain(initial_blocks(image), blocks), self.progress)

    def carry_out(self, emulator: "Emulator | Machines", saved: "SavedState | None" = None) -> list[OutputSummary]:
        """All programs; on machines that replace others those that `saved` does not have."""
        machines = None if isinstance(emulator, Emulator) else emulator
        done = saved.restore(machines) if saved is not None and machines is not None else 0
        del self.ran[done:]
        if not done:
            self.progress("inputs")
            start = time.perf_counter()
            self.pushed = self.fill(emulator, self.tell)
            self.push_seconds = time.perf_counter() - start
        steps = self.ready.steps
        bodies = self.ready.bodies
        values = self.ready.values
        told = _Told(steps.inputs, self.inputs_done) if self.inputs_done is not None and steps is not None else None
        with compilations() as compiled:
            for number, body in enumerate(bodies[done:], done + 1):
                self.progress(f"program {body.name}")
                before = len(compiled)
                start = time.perf_counter()
                if told is None or not isinstance(emulator, Emulator):
                    emulator.run(body.name, values)
                else:
                    told.run(emulator, body.name, values)
                # Compiling is not part of the program: the next run takes the kernels from disk.
                seconds = time.perf_counter() - start - sum(item.seconds for item in compiled[before:])
                own = {name: values[name] for name in parameter_names([body])}
                self.ran.append(ProgramSummary(body.name, own, max(0.0, seconds)))
                if saved is not None and machines is not None and number < len(bodies):
                    saved.save(machines, number)
        self.progress("outputs")
        image = self.ready.image if self.readout == "host" else None  # as the host reads its outputs
        between, taken = (frozenset[str](), self.sink) if image is None else (image.between_queues, None)
        outputs = (one for one in emulator.outputs_in_parts(self.readout) if one.queue not in between)
        return [_output(self.ready.netlist, output, taken, self.arrays) for output in outputs]


def _output(
    netlist: Netlist, output: OutputParts, sink: Callable[[OutputParts], None] | None, arrays: dict[str, Any]
) -> OutputSummary:
    """Figures of an output, which goes to `sink`, else as a whole into `arrays`."""
    figures = Summariser()

    def looked_at() -> Iterator[Any]:
        for part in output.parts:
            figures.add(part)
            yield part

    parts = looked_at()
    if sink is not None:
        sink(replace(output, parts=parts))
        for _ in parts:  # what the sink left
            pass
    else:
        arrays[output.queue] = whole = np.empty(output.shape, output.dtype)
        first = 0
        for part in parts:
            whole[first : first + len(part)] = part
            first += len(part)
    queue = netlist.queues[output.queue]
    return figures.summary(queue.name, queue.type, queue.df, output.shape)


def _flaw(output: OutputSummary) -> Flaw | None:
    if output.not_finite:
        return "not finite"
    return "zero" if output.zeros == prod(output.shape) else None


class _Told:
    """Runs programs and tells how many inputs of all are through."""

    def __init__(self, count: int, tell: Callable[[int, int], None]) -> None:
        self._count = count
        self._tell = tell
        self._done = 0

    def run(self, emulator: Emulator, program: str, values: Mapping[str, str]) -> None:
        """As `Emulator.run`."""
        run = emulator.run_async(
            program, values, wait=0.0, progress=lambda now: self._tell(self._done + now.inputs, self._count)
        )
        run.result()
        self._done += run.progress.inputs


def _files(
    netlist: Netlist,
    directory: "Path",
    held: Collection[str],
    image: "DeviceImage | None",
    tell: Callable[[str], None],
    most: int,
) -> Iterator[InputBlock]:
    """Every tensor of a directory that belongs to a queue, in the netlist's order of queues. `held`: queues that have
    their data. Of an image, arrays may have the shape of the host's tensors. `tell` is told what is left out. `most`:
    bytes that an archive may unpack to."""
    from buda_emu.emulator.inputs.reference import DirectoryFiles, tensor_names, tensors, whole_array

    if not directory.is_dir():
        raise HostError(f"inputs: {directory} is not a directory")
    files = DirectoryFiles.for_netlist(directory, netlist.path, most)
    names = tensor_names(files)
    if not names:
        raise HostError(f"inputs: no .npy, .npz, .safetensors or .bin file in {files.where}")
    filled: list[str] = []
    labels = image.model.labels if image is not None and image.model is not None else ()
    for name, file in names.items():
        if name in labels:
            continue
        queue = netlist.queues.get(name) or netlist.queues.get(name.removesuffix(".init"))
        if name in held:
            raise HostError(f"inputs: the image holds the tensor of queue {name}: take it out of {directory / file}")
        if queue is None and name not in netlist.ops:
            hint = near(name, netlist.queues)
            where = f"{directory / file}" if file.startswith(name) else f"{name} in {directory / file}"
            raise HostError(f"inputs: {where} belongs to no queue of {netlist.path}{f' ({hint})' if hint else ''}")
        if queue is None or not (queue.host_fed or queue.is_ram):
            filled.append(name)
    if filled:
        tell(f"inputs: not pushed, since ops fill them: {', '.join(filled)}")
    for queue in netlist.queues.values():
        if not (queue.host_fed or queue.is_ram):
            continue
        for name in (*(image.names_of(queue.name) if image is not None else (queue.name,)), f"{queue.name}.init"):
            found = whole_array(files, name) if image is not None else None
            found = found or tensors(files, name, queue.df, queue.blocking.element_shape)
            if found is not None:
                yield InputBlock(queue.name, found.array, None, str(files.directory / found.source))
            del found  # before the next is read


def run_parted(
    image: "DeviceImage",
    values: Mapping[str, str],
    report: RunReport,
    *,
    inputs: "Path | None",
    memory_limit: int,
    progress: Callable[[str], None],
) -> RunReport:
    """Programs and the host's work in the order of the image's plan, for one set of inputs: `report`, which has the
    settings, completed with the results. What the host does is among the programs, each with its seconds. `values` are
    those of the programs' parameters; `inputs`: one .npz file by the model's input names. Raises HostError,
    ProgramError."""
    parts = host_parts.HostParts(image)
    given = parts.made_up(report.seed) if inputs is None else parts.read(inputs, memory_limit)
    source = host_parts.MADE_UP if inputs is None else str(inputs)
    netlist = image.for_inputs
    took: list[ProgramSummary] = []
    precision: Precision = report.precision  # type: ignore[assignment]
    with Emulator(netlist, precision, report.threads, memory_limit=memory_limit) as emulator:
        start = time.perf_counter()
        held = push(emulator, initial_blocks(image), progress)
        push_seconds = time.perf_counter() - start

        def run(name: str) -> None:
            progress(f"program {name}")
            begin = time.perf_counter()
            emulator.run(name, values)
            took.append(ProgramSummary(name, values, time.perf_counter() - begin))

        found = parts.run(emulator, given, run, source)
    took += [ProgramSummary(f"on the host: {name}", {}, seconds) for name, seconds in found.seconds.items()]
    outputs = tuple(summarise(item.label, "output", item.dtype, found.outputs[item.label]) for item in parts.plan.gives)
    return replace(
        report,
        push_seconds=push_seconds,
        inputs=(*held, *found.inputs),
        programs=tuple(took),
        outputs=outputs,
        arrays=found.outputs,
    )
