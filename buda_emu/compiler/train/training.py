"""A compiled training: its parameters live on the machine; a step runs the forward, backward and optimizer programs."""

import json
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from threading import RLock
from typing import Any, cast, get_args

import numpy as np

from buda_emu.compiler.compiled import Array, CompiledModel, ModelPerf, ReportText, as_numpy
from buda_emu.compiler.emit.programs import ZERO, program_name
from buda_emu.compiler.graph.graph import FORWARD, Graph
from buda_emu.compiler.lower.tiles import State
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.train.activation_memory import Stored
from buda_emu.compiler.train.choices import BACKWARD, GRADIENT, MASTER, NUMBER, OPTIMIZE, Choices
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.netlist.variants import LOOP
from buda_emu.spec.precision import Precision
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.strict_json import read_object

_MACHINE = "machine"
_NOTES = "training.json"
_FIX = "take another snapshot"
_BROKEN = (
    OSError, KeyError, ValueError, TypeError, EOFError, RuntimeError, NotImplementedError, OverflowError, MemoryError,
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error,
)  # fmt: skip


class CompiledTraining(CompiledModel):
    """A training compiled by `compile_training`.

    `learning_rate` may be set between steps, or be a function of the step (from 0); `step` counts the steps that were
    made. `stored` describes the memory between the passes, and the values that are recomputed instead.
    """

    def __init__(self, graph: Graph, placement: Placement, title: str, choices: Choices, stored: Stored) -> None:
        super().__init__(graph, placement, title)
        self.choices = choices
        self.stored = stored
        self.learning_rate = choices.learning_rate
        self.step = 0
        self._held: dict[str, Array] = {state.queue: state.held[None] for state in self._states.values()}
        self._machine: Emulator | None = None
        self._lock = RLock()
        """Held by the thread that makes a step."""

    @property
    def _states(self) -> Mapping[str, State]:
        """The states of the training's programs by name."""
        return self.placement.tiles.states

    # --------------------------------------------------------------------------------------------------- one step
    def train_step(self, inputs: Any, target: Any, precision: Precision = "ideal") -> float:
        """Make a step and return the loss before it. `inputs`: an array, or a tuple if the module takes several, and
        `target` a tuple if there are several; with microbatches their first dimensions hold all of them.

        A change of precision takes over parameters and optimizer state as the step before rounded them. A step that
        fails or is interrupted leaves them as far as it came. Raises HostError for other inputs than the module takes.
        """
        input_arrays: tuple[Any, ...] = tuple(inputs) if type(inputs) in (tuple, list) else (inputs,)
        count = self.choices.targets
        targets: tuple[Any, ...] = tuple(target) if count else (target,)
        labels = self.io.labels
        input_labels = labels[: -(count or 1)]
        if len(input_arrays) != len(input_labels):
            inputs_given = plural(len(input_arrays), "input")
            raise HostError(f"{inputs_given}, the module takes {len(input_labels)}: {', '.join(input_labels)}")
        if len(targets) != (count or 1):
            raise HostError(f"{plural(len(targets), 'target')}, the loss takes {count}")
        arrays = dict(zip(labels, map(as_numpy, (*input_arrays, *targets)), strict=True))
        parts = [self.io.queues(part) for part in self._split_microbatches(arrays)]
        with self._lock:
            try:
                return self._run_step(self._machine_of_precision(precision), parts)
            except BaseException:
                # Queues may hold inputs that no program has read, which the next step would take for its own.
                self.close()
                raise

    def _run_step(self, machine: Emulator, parts: Sequence[Mapping[str, Array]]) -> float:
        """Make a step on the entries of all microbatches, and return the loss."""
        for part in parts:
            for name, array in part.items():
                machine.push(name, array)
        self._push_optimizer_numbers(machine)
        count = self.choices.microbatches
        rounds = self.placement.rounds
        machine.run(program_name(FORWARD), {LOOP: rounds})
        (output,) = self.io.outputs
        loss = float(np.sum(output.from_queue(machine.pop(output.queue, count)), dtype=np.float64))
        machine.run(program_name(BACKWARD), {LOOP: rounds, ZERO: True})
        machine.run(program_name(OPTIMIZE), {})
        self.step += 1
        return loss

    def _push_optimizer_numbers(self, machine: Emulator) -> None:
        """Push the numbers of the optimizer for the next step, such as the learning rate, to the machine."""
        rate = self.learning_rate
        if callable(rate):
            rate = rate(self.step)
        for name, number in self.choices.optimizer.numbers(rate, self.step + 1, self.choices.options).items():
            self._push_number(machine, NUMBER + name, number)

    def _split_microbatches(self, arrays: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
        """Yield the inputs of each microbatch. Raises HostError for another shape than that of all of them together."""
        count = self.choices.microbatches
        if count == 1:
            yield dict(arrays)
            return
        shapes = {model_input.label: model_input.shape for model_input in self.io.inputs}
        for label, array in arrays.items():
            if not array.ndim or array.shape[0] % count:
                raise HostError(f"input {label}: shape {list(array.shape)}, for {count} microbatches")
            one_part = shapes.get(label, ())
            if one_part and array.shape != (count * one_part[0], *one_part[1:]):
                raise HostError(
                    f"input {label}: shape {list(array.shape)}, a step takes {[count * one_part[0], *one_part[1:]]}, "
                    f"{count} microbatches of {list(one_part)}"
                )
        cut = {label: np.split(array, count) for label, array in arrays.items()}
        for number in range(count):
            yield {label: parts[number] for label, parts in cut.items()}

    def _push_number(self, machine: Emulator, label: str, number: float) -> None:
        """Fill the state `label`, which holds a number such as the learning rate, if some program reads it."""
        state = self.placement.tiles.state(label)
        if state is not None:
            machine.push(state.queue, np.full((1, *state.held.shape), number, np.float32))

    # --------------------------------------------------------------------------------------- parameters and state
    def parameters(self) -> dict[str, Array]:
        """Return the module's parameters as they are on the machine now: float32 by the module's names."""
        return {name: self._state_array(self._state_labels(name)[-1]) for name in self._parameter_names()}

    def gradients(self) -> dict[str, Array]:
        """Return the gradients of the last step by the names of the module's parameters, zeros before the first
        step."""
        return {name: self._state_array(GRADIENT + name) for name in self._parameter_names()}

    def state(self) -> dict[str, Array]:
        """Return everything that the machine keeps, by name: parameters, buffers, and the optimizer's tensors
        (`<parameter>.mean`)."""
        return {state.label: self._state_array(state.label) for state in self._states.values()}

    def load_into(self, module: Any) -> None:
        """Write parameters and buffers into the torch module that was compiled, or one with the same names and shapes.
        Raises HostError for a module that lacks a parameter or has it in another shape."""
        torch: Any = import_module("torch")  # not all of it has types
        module_tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        trained = self._parameter_names()
        states = {**self.state(), **self.parameters()}
        for name, array in states.items():
            if name not in module_tensors:
                if name in trained:
                    raise HostError(f"load_into: {type(module).__name__} has no parameter {name}")
                continue
            if tuple(module_tensors[name].shape) != array.shape:
                raise HostError(f"load_into: {name} is {list(module_tensors[name].shape)}, here {list(array.shape)}")
            with torch.no_grad():
                module_tensors[name].copy_(torch.from_numpy(array.copy()))

    def set_parameters(self, arrays: Mapping[str, Any]) -> None:
        """Set parameters, or anything else that `state` names, to new values. Raises HostError for an unknown name or
        another shape."""
        copies = [(copy, value) for name, value in arrays.items() for copy in self._state_labels(name)]
        for name, value in copies:
            state = self.placement.tiles.state(name)
            array = np.asarray(as_numpy(value), np.float32)
            if state is None or array.shape != state.host_shape:
                raise HostError(f"set_parameters: {name}: no state of that name, or not of shape {list(array.shape)}")
            held = np.zeros((1, *state.held.shape), np.float32)
            held.reshape(-1)[state.layout.place("zrc").ravel()] = array.ravel()
            if not array.shape:
                held[:] = array
            self._held[state.queue] = held
            if self._machine is not None:
                self._machine.push(state.queue, held)

    def _state_labels(self, name: str) -> list[str]:
        """Return the names of a parameter's states: the one that the model reads, and the optimizer's copy if there is
        one."""
        if self.placement.tiles.state(name + MASTER):
            return [name, name + MASTER]
        return [name]

    def _parameter_names(self) -> list[str]:
        """Return the names of parameters with a gradient, in the order of the outputs."""
        return [output.state.removeprefix(GRADIENT) for output in self.graph.outputs if output.accumulate]

    def _state_array(self, label: str) -> Array:
        """Return a state by label as the module has it, in its shape and element type."""
        state = self.placement.tiles.state(label)
        assert state is not None
        held = self._read_queue(state.queue)
        flat = held.reshape(-1)[state.layout.place("zrc").ravel()]
        return flat.reshape(state.host_shape).astype(state.dtype)

    def _read_queue(self, queue: str) -> Array:
        """Return the raw content of a queue, from the machine or, if none is open, what the next machine will be filled
        with."""
        if self._machine is None:
            return self._held[queue]
        return self._machine.peek(queue, readout="raw")

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the queue's name and the values [entries, t, rows, columns], in elements, of each constant, and of each
        state as it is now."""
        for queue in self.placement.queues.values():
            if queue.role == "constant":
                yield queue.name, self.placement.tiles.constants[queue.tensor].values[None]
        for queue, state in self._states.items():
            yield queue, state.entries(self._read_queue(queue)[0])

    # ---------------------------------------------------------------------------------------------- the machine
    def _machine_of_precision(self, precision: Precision) -> Emulator:
        """Return the open machine if it has this precision. Otherwise close it, keep its states, and open one of this
        precision with them."""
        if self._machine is None or self._machine.precision != precision:
            self.close()
            machine = Emulator(self.netlist, precision)
            weakref.finalize(self, machine.close)
            try:
                for name, array in self.tensors():
                    machine.push(name, array)
            except BaseException:
                machine.close()
                raise
            self._machine = machine
        return self._machine

    def close(self) -> None:
        """Free the machine. Parameters and state stay, and the next step opens a new machine."""
        with self._lock:
            machine = self._machine
            if machine is not None:
                self._held = {queue: machine.peek(queue, readout="raw") for queue in self._states}
                self._machine = None
                machine.close()

    def run(self, arrays: Mapping[str, Array], precision: Precision = "ideal") -> tuple[Array, ...]:
        """Raise HostError: a training only runs in steps."""
        del arrays, precision
        raise HostError("a training has train_step; load_into a module, and compile that to run it")

    def perf(self) -> ModelPerf:
        """Return the modelled cycles of one step with all its microbatches; `inputs_per_second` counts steps."""
        return ModelPerf(self._model_time({LOOP: str(self.placement.rounds), ZERO: "1"}).run, 1, "step")

    def report(self) -> ReportText:
        """Return the report of where the modelled time goes, and what is stored for the backward pass."""
        return ReportText(f"{super().report()}\n\n{self.stored}")

    # ------------------------------------------------------------------------------------------------- snapshots
    def snapshot(self, path: str | Path) -> None:
        """Write the complete state of the training to one file: the machine's state and the count of steps. Raises
        HostError before the first step, and if the file cannot be written."""
        if self._machine is None:
            raise HostError("snapshot: no step has been made; parameters() has what there is")
        notes = {"schema_version": 1, "step": self.step, "precision": self._machine.precision}
        target = Path(path)
        try:
            with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                held = Path(folder, _MACHINE)
                archive_path = Path(folder, "whole")
                self._machine.save(held)
                with zipfile.ZipFile(archive_path, "w") as archive:
                    archive.write(held, _MACHINE)
                    archive.writestr(_NOTES, json.dumps(notes))
                archive_path.replace(target)
        except OSError as error:
            raise HostError(f"snapshot: {target}: {error}") from None

    def resume(self, path: str | Path) -> None:
        """Continue from the file of a `snapshot` of the same training: the next steps give the same bits. Raises
        HostError for a file that is damaged or of another netlist."""
        try:
            with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
                notes = read_object(archive.read(_NOTES), f"resume: {path}", "a snapshot of a training", _FIX)
                if notes.get("schema_version") != 1:
                    raise HostError(f"resume: {path}: schema_version {notes.get('schema_version')} is not known")
                step = notes.get("step")
                precision = notes.get("precision")
                if type(step) is not int or step < 1 or precision not in get_args(Precision):
                    state = f"step {step!r}, precision {precision!r}"
                    raise HostError(f"resume: {path} is not a snapshot of a training: {state}: {_FIX}")
                archive.extract(_MACHINE, folder)
                self._machine_of_precision(cast("Precision", precision)).restore(Path(folder, _MACHINE))
                self.step = step
        except _BROKEN as error:
            raise HostError(f"resume: {path} is not a snapshot of a training: {error}") from None


__all__: Sequence[str] = ["CompiledTraining"]
