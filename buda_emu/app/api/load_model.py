"""`be.load_model`: makes a model callable again from the image that `CompiledModel.save` wrote."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from html import escape
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from numpy.typing import NDArray

from buda_emu.emulator.image.device_image import DeviceImage, InitialTensor
from buda_emu.emulator.image.load import load_image
from buda_emu.emulator.image.model_io import ModelIo, ModelOutput, inputs_by_label, made_up
from buda_emu.emulator.image.model_programs import ModelProgram, WindowProgram, require_rounds
from buda_emu.emulator.image.opened import is_image
from buda_emu.emulator.image.sets import join_sets, split_into_rounds
from buda_emu.emulator.image.shape_rules import DecidingInput, fill_by_rules
from buda_emu.emulator.inputs.host_parts import HostParts
from buda_emu.emulator.inputs.stimulus import generator
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.emulator.runtime.host.host_io import as_numpy, require_names
from buda_emu.emulator.runtime.open_machine import OpenMachine
from buda_emu.netlist.load import YAML_SUFFIXES
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.program.parameters import parameter_names, parameters_of_rounds, values_for
from buda_emu.netlist.variants import LOOP
from buda_emu.spec.precision import Precision
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, UnsupportedError
from buda_emu.support.files import is_model
from buda_emu.support.lazy import lazy
from buda_emu.support.options import document_path, with_hints

if TYPE_CHECKING:
    from buda_emu.report.pictures import grid_svg as pictures
else:
    pictures = lazy("buda_emu.report.pictures.grid_svg")  # only a notebook needs it

Array = NDArray[Any]
_FUNCTIONS_OF_MODELS: Final = frozenset(("advise", "numerics", "perf"))


class LoadedModel:
    """A compiled model that was loaded from its image. Call it with the model's inputs, numpy or torch, in order.

    `image` holds the netlist, the parameters and the checks of the file; `io` describes the model's inputs and
    outputs. `be.perf`, `be.numerics` and `be.advise` take it."""

    def __init__(self, image: DeviceImage, io: ModelIo) -> None:
        self.image = image
        self.io = io
        self._open = OpenMachine()

    if not TYPE_CHECKING:  # a type checker knows the attributes that there are

        def __getattr__(self, name: str) -> None:
            """Raise AttributeError, which names the function of the package for what other models have as a method."""
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name in _FUNCTIONS_OF_MODELS:
                message += f": call be.{name}(model)"
            raise AttributeError(message, name=name, obj=self)

    def __repr__(self) -> str:
        ops = plural(len(self.netlist.ops), "op")
        epochs = plural(len(self.netlist.temporal_graphs), "epoch")
        return f"{type(self).__name__}({self.image.path!r}, {self.netlist.arch_name}, {ops}, {epochs})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows for the model: its description and a picture of its core grid."""
        return f"<p>{escape(repr(self))}</p>{pictures.grid_svg(self.netlist)}"

    @property
    def netlist(self) -> Netlist:
        """The netlist of the image, for the microbatch that it was compiled for."""
        return self.image.netlist

    @property
    def digest(self) -> str:
        """SHA-256 of the image's file in hexadecimal."""
        return self.image.digest

    def __call__(self, *inputs: Any, precision: Precision = "ideal", **named: Any) -> tuple[Array, ...]:
        """Return the outputs in the model's shapes and element types, as the compiled model returned them, for inputs
        in order or by their names. With N times the model's first dimension in the inputs, N sets of them stream
        through the machine. Raises HostError for inputs that the model does not take, ProgramError as a run does."""
        return self.run(inputs_by_label(self.io.labels, inputs, named), precision)

    def run(self, arrays: Mapping[str, Any], precision: Precision = "ideal") -> tuple[Array, ...]:
        """Return the outputs for inputs in a dict by name, as a call with named inputs does. Raises HostError for
        missing or unknown names, ProgramError as a run does."""
        require_names(arrays, self.io.labels)
        host_arrays = {label: as_numpy(array, f"input {label}") for label, array in arrays.items()}
        queues = self.image.for_inputs.queues
        ends = (*self.io.inputs, *self.io.outputs)
        at_once = min((queues[end.queue].entries for end in ends), default=1)
        (program,) = self.netlist.programs
        outputs: list[tuple[Array, ...]] = []
        for sets in split_into_rounds(self.io, host_arrays, at_once):
            outputs += self._run_sets(self.io, sets, program, precision)
        return tuple(join_sets(parts) for parts in zip(*outputs, strict=True))

    def _run_sets(
        self, io: ModelIo, sets: Sequence[Mapping[str, Array]], program: str, precision: Precision, write_index: int = 0
    ) -> list[tuple[Array, ...]]:
        """Run a program once on several sets of inputs, and return the outputs of each set. `io` describes the inputs
        and outputs that the program has; the rounds write slots of the caches from `write_index` on."""
        # All sets become entries before the first is pushed: a set that is refused must not leave others in the queues.
        entries_of_sets = [io.queues(arrays) for arrays in sets]
        with self._machine(precision) as machine:
            for entries_by_queue in entries_of_sets:
                for queue, entries in entries_by_queue.items():
                    machine.push(queue, entries)
            body = machine.netlist.programs[program]
            parameters = parameters_of_rounds(len(sets), write_index)
            machine.run(program, values_for(body, parameters))

            def pop(output: ModelOutput) -> Array:
                """Pop the queue of an output, and return the values in the model's own shape."""
                return output.from_queue(machine.pop(output.queue))

            return [tuple(pop(output) for output in io.outputs) for _ in sets]

    def _machine(self, precision: Precision) -> AbstractContextManager[Emulator]:
        """Return a context that gives the calling thread alone the machine with the model's parameters, which it opens
        if there is none. It stays open for the next call; another precision or a failure closes it."""
        return self._open.use(precision, partial(self.image.emulator, precision))

    def example_inputs(self, seed: int = 0) -> tuple[Array, ...]:
        """Return random inputs of the model's shapes and element types, in its order."""
        plan = self.io.host
        rules = plan.rules if plan else self.io.rules
        described = {entry.label: entry for entry in plan.given} if plan else self.io.descriptions
        arrays: list[Array] = []
        for label in self.io.labels:
            if label in described:
                entry = described[label]
                below = 2 if isinstance(entry, DecidingInput) else entry.below
                array = made_up(generator(seed, label), entry.shape, entry.dtype, below)
                arrays.append(fill_by_rules(rules, label, array))
        return tuple(arrays)

    def close(self) -> None:
        """Free the machine that calls opened; the next call opens a new one."""
        self._open.close()


class LoadedParts(LoadedModel):
    """A model that was compiled in parts: its call runs the programs, and the host's work between them."""

    def __init__(self, image: DeviceImage, io: ModelIo) -> None:
        super().__init__(image, io)
        self._parts = HostParts(image)

    def run(self, arrays: Mapping[str, Any], precision: Precision = "ideal") -> tuple[Array, ...]:
        """Return the outputs for one set of inputs by name. Raises HostError for other inputs than the model takes,
        ProgramError as a run does and where the host cannot compute the values."""
        require_names(arrays, self.io.labels)
        host_arrays = {label: as_numpy(array, f"input {label}") for label, array in arrays.items()}
        values = self._parts.values_of_inputs(host_arrays)
        with self._machine(precision) as machine:

            def run_program(name: str) -> None:
                """Run a program for one round, with the parameters that it takes."""
                body = machine.netlist.programs[name]
                parameters = parameters_of_rounds(1)
                machine.run(name, values_for(body, parameters))

            outputs = self._parts.run(machine, values, run_program, "the call").outputs
        return tuple(outputs[output.label] for output in self._parts.plan.gives)


class LoadedPrograms(LoadedModel):
    """Programs with caches that were compiled by `compile_programs`. `programs` describes each by its name there."""

    def __init__(self, image: DeviceImage, io: ModelIo) -> None:
        super().__init__(image, io)
        self.programs = {program.name: program for program in io.programs}
        self.slots = max((state.slots for state in io.states), default=1)
        """Slots of the caches that are written slot by slot, else 1."""
        self._kept: dict[str, Array] = {}
        """Contents of the caches, by queue, that a machine had when it was closed."""

    def __call__(
        self, *inputs: Any, precision: Precision = "ideal", program: str = "", write_index: int = 0, **named: Any
    ) -> tuple[Array, ...]:
        """Run one round of a program (by default the only one), which writes slot `write_index` of its caches. Raises
        HostError, ProgramError."""
        entry = self._program(program)
        arguments = tuple(inputs_by_label(entry.inputs, inputs, named, entry.name).values())
        return self.rounds([arguments], precision=precision, program=program, write_index=write_index)[0]

    def run(self, arrays: Mapping[str, Any], precision: Precision = "ideal") -> tuple[Array, ...]:
        """Run one round of the only program on inputs by name. Raises HostError where there are several programs."""
        labels = self._program("").inputs
        unknown = [label for label in arrays if label not in labels]
        missing = [label for label in labels if label not in arrays]
        if unknown or missing:
            names = ", ".join(missing or unknown)
            raise HostError(f"inputs: {'no' if missing else 'unknown'} {names}; the model takes {', '.join(labels)}")
        return self(*(arrays[label] for label in labels), precision=precision)

    def rounds(
        self,
        inputs: Sequence[Sequence[Any]],
        *,
        precision: Precision = "ideal",
        program: str = "",
        write_index: int = 0,
    ) -> list[tuple[Array, ...]]:
        """Run several rounds of a program (by default the only one) in one run, and return the outputs of each. The
        first round writes slot `write_index` of the caches, each other one the next slot. Raises HostError,
        ProgramError."""
        entry = self._program(program)
        require_rounds(entry.name, len(inputs), write_index, room=self._room(entry), slots=self.slots)
        sets = [self._arrays(arguments, entry) for arguments in inputs]
        return self._run_sets(self._io_of(entry), sets, entry.program, precision, write_index)

    @staticmethod
    def _arrays(inputs: Sequence[Any], program: ModelProgram) -> dict[str, Array]:
        """Return a numpy array for each input of a program. Raises HostError for another number of inputs."""
        by_label = inputs_by_label(program.inputs, inputs, {}, program.name)
        return {label: as_numpy(array, f"input {label}") for label, array in by_label.items()}

    def reset(self) -> None:
        """Reset the caches to their initial content."""
        with self._open.current() as machine:
            self._kept.clear()
            if machine is not None:
                for tensor in self._initial_caches():
                    machine.push(tensor.queue, tensor.array, tensor.slot)

    def caches(self) -> dict[str, Array]:
        """Return the present content of each cache, in the shape that the module sees."""
        contents: dict[str, Array] = {}
        with self._open.current() as machine:
            for state in self.io.states:
                if machine is not None:
                    entries = machine.peek(state.queue, state.slots, readout="raw")
                elif state.queue in self._kept:
                    entries = self._kept[state.queue]
                else:
                    entries = self.image.tensor(state.queue)
                contents[state.label] = state.content(entries)
        return contents

    def close(self) -> None:
        """Free the machine that calls opened; the next call opens a new one, with the caches' initial content."""
        with self._open.current():
            super().close()
            self._kept.clear()

    def _machine(self, precision: Precision) -> AbstractContextManager[Emulator]:
        """Return a context that gives the calling thread alone the machine. If a failure or another precision closes
        it, the next machine begins with the content that its caches had."""
        return self._open.use(precision, partial(self._with_caches, precision), self._keep)

    def _keep(self, machine: Emulator) -> None:
        """Remember the caches of a machine that is about to be closed, for the machine that is opened next."""
        self._kept = {state.queue: machine.peek(state.queue, state.slots, readout="raw") for state in self.io.states}

    def _with_caches(self, precision: Precision) -> Emulator:
        """Open a machine with the parameters, and the caches as `_keep` read them from the machine before it."""
        machine = self.image.emulator(precision)
        try:
            for tensor in self._initial_caches():
                if tensor.queue in self._kept:
                    held = self._kept[tensor.queue]
                    machine.push(tensor.queue, held, tensor.slot)
        except BaseException:
            machine.close()
            raise
        return machine

    def _initial_caches(self) -> Iterator[InitialTensor]:
        """Yield the contents that the image gives the caches, before any round has written them."""
        names = {state.queue for state in self.io.states}
        return (tensor for tensor in self.image.initial_tensors() if tensor.queue in names)

    def generate(
        self,
        prompt: Sequence[int],
        count: int,
        *,
        precision: Precision = "ideal",
        program: str = "",
        stop: int | None = None,
    ) -> list[int]:
        """Return the tokens that follow a prompt, each the one with the highest score: at most `count`, none after
        `stop`. The program takes a window of tokens [1, n] and their positions, as for `CompiledPrograms.generate`.
        Raises HostError if the caches are too short."""
        entry = self._program(program)
        shapes = {model_input.label: model_input.shape for model_input in self.io.inputs}

        def run(rounds: Sequence[Sequence[Array]], write_index: int) -> Array:
            """Run the rounds from `write_index` on, and return the first output of the last one."""
            return self.rounds(rounds, precision=precision, program=entry.name, write_index=write_index)[-1][0]

        windows = WindowProgram(
            name=entry.name,
            shapes=tuple(shapes[label] for label in entry.inputs if label in shapes),
            slots=self.slots,
            room=self._room(entry),
            run=run,
        )
        return windows.generate(prompt, count, stop)

    def _program(self, name: str) -> ModelProgram:
        """Return a program by name, or the only one. Raises HostError for an unknown name."""
        if not name and len(self.programs) == 1:
            return next(iter(self.programs.values()))
        if name not in self.programs:
            raise HostError(f"program {name!r} is not one of: {', '.join(self.programs)}")
        return self.programs[name]

    def _io_of(self, program: ModelProgram) -> ModelIo:
        """Return a description of the model that has only the inputs and outputs of one program."""
        inputs = tuple(entry for entry in self.io.inputs if entry.label in program.inputs)
        outputs = tuple(entry for entry in self.io.outputs if entry.label in program.outputs)
        return ModelIo(program.inputs, inputs, outputs, rules=self.io.of_labels(program.inputs))

    def _room(self, program: ModelProgram) -> int:
        """Return the largest number of rounds of a program in one run: the entries of its smallest input queue."""
        queues = self.image.for_inputs.queues
        return min((queues[entry.queue].entries for entry in self._io_of(program).inputs), default=1)


@with_hints
def load_model(path: str | PathLike[str], *, arch: str | None = None, digest: str | None = None) -> LoadedModel:
    """Load a compiled model from the image that `save` wrote (`<name>.tti`), or from a folder with one image, to call
    it again.

    The result gives for the same inputs what the compiled model gave: a `LoadedModel`, `LoadedPrograms` for a model
    with caches, `LoadedParts` for one with work of the host. The image is checked as by `load_image`, and no code of it
    runs. `arch`: the architecture that the caller expects; `digest`: the SHA-256 that the file must have. In an image
    whose parameters are tiles (`save(tilized=True)`), they are rounded to the formats of their queues in every
    precision.

    Raises ImageError for an image that is refused, HostError for a file that is no image, for another digest, and for
    an image that does not state the inputs and outputs of a model, UnsupportedError for one of a training, OSError.
    """
    name = _image_path(fspath(document_path(path, "load_model")))
    image = load_image(name, arch=arch)
    if digest is not None and image.digest != digest.lower():
        raise HostError(f"{name}: its SHA-256 is {image.digest}, not {digest}: it is not the expected file")
    io = image.model
    if io is None:
        raise HostError(
            f"{name}: the image does not state a model's inputs and outputs, as one that `save` or `buda-emu compile` "
            "wrote does: buda_emu.load_image opens it, with queues in place of inputs"
        )
    if io.host is not None:
        return LoadedParts(image, io)
    if io.programs:
        return LoadedPrograms(image, io)
    _require_forward_only(image)
    return LoadedModel(image, io)


def _image_path(name: str) -> str:
    """Return the path of an image, or of the only image of a folder. Raises HostError for another folder and for a
    model's source, with what to give instead."""
    path = Path(name)
    if path.is_dir():
        images = sorted(entry.name for entry in path.iterdir() if is_image(entry))
        if len(images) == 1:
            return str(path / images[0])
        listing = f"it holds {', '.join(images)}" if images else "it holds no image (*.tti)"
        raise HostError(f"{name} is a folder, not an image: {listing}")
    if path.suffix.lower() in YAML_SUFFIXES:
        raise HostError(f"{name} is a netlist, which has no parameters: load_model takes the image (*.tti) beside it")
    if is_model(name):
        raise HostError(f"{name} is a model that is not compiled: buda_emu.compile takes it")
    return name


def _require_forward_only(image: DeviceImage) -> None:
    """Raise UnsupportedError for an image of a training, and for one with several programs or with parameters other
    than the number of rounds, since these need more than a `LoadedModel` knows."""
    netlist = image.netlist
    if image.metadata.training:
        raise UnsupportedError(
            f"{image.path} is the image of a training, which cannot be loaded: keep its state with "
            "CompiledTraining.snapshot"
        )
    names = parameter_names(netlist.programs.values())
    if len(netlist.programs) == 1 and set(names) <= {LOOP}:
        return
    raise UnsupportedError(
        f"{image.path}: the image states no programs of the model, but the netlist has {', '.join(netlist.programs)} "
        f"with the parameters {', '.join(names)}: an earlier version wrote it, or it is a training: compile it again"
    )
