"""A compiled training: its parameters live on the machine, and each step runs forward, backward and optimizer."""

import json
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np

from buda_emu.compiler.compiled import Array, CompiledModel, ModelPerf, as_numpy
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
    """What `compile_training` returns.

    `learning_rate` may be set between steps, or be a function of the step (from 0); `step` counts the steps that were
    made. `stored`: what lies in memory between the passes, and what is computed again instead.
    """

    def __init__(self, graph: Graph, placement: Placement, title: str, choices: Choices, stored: Stored) -> None:
        super().__init__(graph, placement, title)
        self.choices = choices
        self.stored = stored
        self.learning_rate = choices.learning_rate
        self.step = 0
        self._held: dict[str, Array] = {state.queue: state.held[None] for state in self._states.values()}
        self._machine: Emulator | None = None

    @property
    def _states(self) -> Mapping[str, State]:
        return self.placement.tiles.states

    # --------------------------------------------------------------------------------------------------- one step
    def train_step(self, inputs: Any, target: Any, precision: Precision = "ideal") -> float:
        """The loss before the step. `inputs`: an array, or a tuple where the module takes several, and `target` a tuple
        where there are several; with microbatches their first dimensions hold all of them.

        Another precision than that of the step before takes parameters and optimizer state over, as rounded there.
        Raises HostError for other inputs than the module takes.
        """
        given: tuple[Any, ...] = tuple(inputs) if type(inputs) in (tuple, list) else (inputs,)
        count = self.choices.targets
        targets: tuple[Any, ...] = tuple(target) if count else (target,)
        labels = self.io.labels
        taken = labels[: -(count or 1)]
        if len(given) != len(taken):
            raise HostError(f"{plural(len(given), 'input')}, the module takes {len(taken)}: {', '.join(taken)}")
        if len(targets) != (count or 1):
            raise HostError(f"{plural(len(targets), 'target')}, the loss takes {count}")
        arrays = dict(zip(labels, map(as_numpy, (*given, *targets)), strict=True))
        parts = [self.io.queues(part) for part in self._microbatches(arrays)]
        machine = self._running(precision)
        for part in parts:
            for name, array in part.items():
                machine.push(name, array)
        rate = self.learning_rate(self.step) if callable(self.learning_rate) else self.learning_rate
        for name, number in self.choices.optimizer.numbers(rate, self.step + 1, self.choices.options).items():
            self._push_number(machine, NUMBER + name, number)
        count = self.choices.microbatches
        rounds = self.placement.rounds
        machine.run(program_name(FORWARD), {LOOP: rounds})
        (output,) = self.io.outputs
        loss = float(np.sum(output.from_queue(machine.pop(output.queue, count)), dtype=np.float64))
        machine.run(program_name(BACKWARD), {LOOP: rounds, ZERO: True})
        machine.run(program_name(OPTIMIZE), {})
        self.step += 1
        return loss

    def _microbatches(self, arrays: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
        count = self.choices.microbatches
        if count == 1:
            yield dict(arrays)
            return
        for label, array in arrays.items():
            if not array.ndim or array.shape[0] % count:
                raise HostError(f"input {label}: shape {list(array.shape)}, for {count} microbatches")
        cut = {label: np.split(array, count) for label, array in arrays.items()}
        for number in range(count):
            yield {label: parts[number] for label, parts in cut.items()}

    def _push_number(self, machine: Emulator, label: str, number: float) -> None:
        state = self.placement.tiles.state(label)
        if state is not None:
            machine.push(state.queue, np.full((1, *state.held.shape), number, np.float32))

    # --------------------------------------------------------------------------------------- parameters and state
    def parameters(self) -> dict[str, Array]:
        """Of the module, as they are on the machine now: float32 by the module's names."""
        return {name: self._state(self._copies(name)[-1]) for name in self._trained()}

    def gradients(self) -> dict[str, Array]:
        """Of the last step, by the names of the module's parameters: zeros before the first one."""
        return {name: self._state(GRADIENT + name) for name in self._trained()}

    def state(self) -> dict[str, Array]:
        """All that the machine keeps: parameters, buffers, what the optimizer keeps (`<parameter>.mean`), by name."""
        return {item.label: self._state(item.label) for item in self._states.values()}

    def load_into(self, module: Any) -> None:
        """Write parameters and buffers into the torch module that was compiled, or one like it. Raises HostError for a
        module that lacks one or has it in another shape."""
        torch: Any = import_module("torch")  # not all of it has types
        own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        trained = self._trained()
        states = {**self.state(), **self.parameters()}
        for name, array in states.items():
            if name not in own:
                if name in trained:
                    raise HostError(f"load_into: {type(module).__name__} has no parameter {name}")
                continue
            if tuple(own[name].shape) != array.shape:
                raise HostError(f"load_into: {name} is {list(own[name].shape)}, here {list(array.shape)}")
            with torch.no_grad():
                own[name].copy_(torch.from_numpy(array.copy()))

    def set_parameters(self, arrays: Mapping[str, Any]) -> None:
        """Give parameters, or anything else that `state` names, new values. Raises HostError for an unknown name or
        another shape."""
        for name, item in ((copy, item) for own, item in arrays.items() for copy in self._copies(own)):
            state = self.placement.tiles.state(name)
            array = np.asarray(as_numpy(item), np.float32)
            if state is None or array.shape != state.host_shape:
                raise HostError(f"set_parameters: {name}: no state of that name, or not of shape {list(array.shape)}")
            held = np.zeros((1, *state.held.shape), np.float32)
            held.reshape(-1)[state.layout.place("zrc").ravel()] = array.ravel()
            if not array.shape:
                held[:] = array
            self._held[state.queue] = held
            if self._machine is not None:
                self._machine.push(state.queue, held)

    def _copies(self, name: str) -> list[str]:
        """A parameter's states: the one that the model reads, and perhaps the one that the optimizer changes."""
        return [name, name + MASTER] if self.placement.tiles.state(name + MASTER) else [name]

    def _trained(self) -> list[str]:
        return [output.state.removeprefix(GRADIENT) for output in self.graph.outputs if output.accumulate]

    def _state(self, label: str) -> Array:
        state = self.placement.tiles.state(label)
        assert state is not None
        held = self._read(state.queue)
        flat = held.reshape(-1)[state.layout.place("zrc").ravel()]
        return flat.reshape(state.host_shape).astype(state.dtype)

    def _read(self, queue: str) -> Array:
        return self._held[queue] if self._machine is None else self._machine.peek(queue, readout="raw")

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Constants, and the states as they are now, by queue, [1, t, rows, columns]."""
        for queue in self.placement.queues.values():
            if queue.role == "constant":
                yield queue.name, self.placement.tiles.constants[queue.tensor].values[None]
        for queue, state in self._states.items():
            yield queue, state.entries(self._read(queue)[0])

    # ---------------------------------------------------------------------------------------------- the machine
    def _running(self, precision: Precision) -> Emulator:
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
        """Free the machine; parameters and state stay, and the next step makes another."""
        if self._machine is not None:
            self._held = {queue: self._machine.peek(queue, readout="raw") for queue in self._states}
            self._machine.close()
            self._machine = None

    def run(self, arrays: Mapping[str, Array], precision: Precision = "ideal") -> tuple[Array, ...]:
        """Not of a training. Raises HostError."""
        del arrays, precision
        raise HostError("a training has train_step; load_into a module, and compile that to run it")

    def perf(self) -> ModelPerf:
        """Modelled cycles of one step, all its microbatches: `inputs_per_second` are steps."""
        return ModelPerf(self._modelled({LOOP: str(self.placement.rounds), ZERO: "1"}).run, 1)

    def report(self) -> str:
        """As of a model, and what is stored for the backward pass."""
        return f"{super().report()}\n\n{self.stored}"

    # ------------------------------------------------------------------------------------------------- snapshots
    def snapshot(self, path: str | Path) -> None:
        """Write all that the training is to one file: the machine's state and the count of steps. Raises HostError
        before the first step, and when the file cannot be written."""
        if self._machine is None:
            raise HostError("snapshot: no step has been made; parameters() has what there is")
        notes = {"schema_version": 1, "step": self.step, "precision": self._machine.precision}
        target = Path(path)
        try:
            with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                held = Path(folder, _MACHINE)
                whole = Path(folder, "whole")
                self._machine.save(held)
                with zipfile.ZipFile(whole, "w") as archive:
                    archive.write(held, _MACHINE)
                    archive.writestr(_NOTES, json.dumps(notes))
                whole.replace(target)
        except OSError as error:
            raise HostError(f"snapshot: {target}: {error}") from None

    def resume(self, path: str | Path) -> None:
        """Go on where `snapshot` of the same training was made: the next steps give the same bits. Raises HostError
        for a file that is damaged or of another netlist."""
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
                self._running(cast("Precision", precision)).restore(Path(folder, _MACHINE))
                self.step = step
        except _BROKEN as error:
            raise HostError(f"resume: {path} is not a snapshot of a training: {error}") from None


__all__: Sequence[str] = ["CompiledTraining"]
