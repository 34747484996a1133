"""Runs of an image whose host computes between programs: its plan, executed on a machine, and the time of the host's
steps."""

import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from buda_emu.emulator.image.device_image import DeviceImage
from buda_emu.emulator.image.host_plan import COMPUTES, DeviceStep, HostPlan, HostStep, follow
from buda_emu.emulator.image.model_io import ModelIo, check_input, made_up
from buda_emu.emulator.image.shape_rules import fill_by_rules
from buda_emu.emulator.inputs.feed import push
from buda_emu.emulator.inputs.input_used import InputUsed
from buda_emu.emulator.inputs.numpy_files import npy_of
from buda_emu.emulator.inputs.of_image import initial_blocks
from buda_emu.emulator.inputs.stimulus import generator
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.support.errors import HostError, ProgramError
from buda_emu.support.records import dataclass

Array = Any
MADE_UP: Final = "made-up inputs of the model"
TIMES: Final = 3
"""The number of measurements of each step of the host, of which the shortest counts."""


@dataclass(frozen=True, slots=True)
class HostRun:
    """The result of a run: the model's outputs by label, the results of programs by queue, the pushed data, and the
    seconds of each step of the host by its name."""

    outputs: Mapping[str, Array]
    entries: Mapping[str, Array]
    inputs: tuple[InputUsed, ...]
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class HostTime:
    """The time of one step of the host on this machine; `seconds` is None where it refuses the values, for the reason
    `why`."""

    step: str
    seconds: float | None
    why: str = ""

    def __str__(self) -> str:
        if self.seconds is None:
            took = f"not measured: {self.why}"
        else:
            took = f"{1e6 * self.seconds:,.0f} us on this machine"
        return f"{self.step}: {took}"


class HostParts:
    """An image's plan with functions that compute its steps. Raises HostError for a step that nothing here can
    compute."""

    def __init__(self, image: DeviceImage) -> None:
        self._image = image
        if image.model is None or image.model.host is None:
            raise HostError(f"{image.path}: the host computes nothing between its programs")
        self._model: ModelIo = image.model
        self.plan: HostPlan = image.model.host
        room = import_module(COMPUTES)
        self._compute = room.compute
        self._runs = {
            step.file: room.operator_from_image(step.form, image.host_file(step.file)) for step in self.plan.on_host
        }
        self._constants = {name: _constant_array(image, file) for name, file in self.plan.constants.items()}

    def values_of_inputs(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return the values of the model's inputs, by their names in the plan, from arrays by label. Raises HostError
        where one is missing, unknown, or of another shape or type than the model takes."""
        labels = {plan_input.label for plan_input in self.plan.given}
        named = set(arrays)
        if labels != named:
            names = sorted(labels - named or named - labels)
            word = "no" if labels - named else "unknown"
            raise HostError(f"inputs: {word} {', '.join(names)}; the model takes {', '.join(self._model.labels)}")
        return {
            plan_input.value: check_input(
                arrays[plan_input.label], plan_input.label, plan_input.shape, plan_input.dtype
            )
            for plan_input in self.plan.given
        }

    def made_up(self, seed: int) -> dict[str, Array]:
        """Return generated values of the model's inputs, by their names in the plan: normal numbers for floats, else
        integers below the bound that the model declares."""
        plan_inputs = self.plan.given
        values: dict[str, Array] = {}
        for plan_input in plan_inputs:
            stream = generator(seed, plan_input.label)
            array = made_up(stream, plan_input.shape, plan_input.dtype, plan_input.below)
            values[plan_input.value] = fill_by_rules(self.plan.rules, plan_input.label, array)
        return values

    def read(self, path: Path, byte_limit: int) -> dict[str, Array]:
        """Return the values of the model's inputs, by their names in the plan, from one .npz file, which unpacks to at
        most `byte_limit` bytes. Raises HostError."""
        from buda_emu.emulator.inputs.numpy_files import npz_of

        if path.suffix.lower() != ".npz" or not path.is_file():
            raise HostError(f"inputs: {path}: an image with host parts takes one .npz file, by the model's input names")
        return self.values_of_inputs(npz_of(f"inputs: {path}", path.read_bytes(), byte_limit))

    def on(self, machine: Emulator, parameters: Mapping[str, str], seed: int) -> HostRun:
        """Push the image's constants to a machine that holds nothing yet, and run the plan once with generated inputs.
        Raises as `run`."""
        push(machine, initial_blocks(self._image))
        return self.run(machine, self.made_up(seed), lambda name: machine.run(name, parameters), MADE_UP)

    def time_steps(self, seed: int) -> list[HostTime]:
        """Measure each step that the host computes: the shortest of `TIMES` runs on generated operands of the model's
        shapes. Programs of the device do not run; generated outputs take the place of theirs."""
        times: list[HostTime] = []

        def device(step: DeviceStep, _: Mapping[str, Array]) -> dict[str, Array]:
            """Return generated outputs in place of a program's."""
            outputs = [model_output for model_output in self._model.outputs if model_output.label in step.outputs]
            return {
                model_output.label: made_up(
                    generator(seed, model_output.label), model_output.shape, model_output.dtype, 2
                )
                for model_output in outputs
            }

        def compute(step: HostStep, operands: Sequence[Array]) -> Sequence[Array]:
            """Measure the step on these operands, and return its results, zeros where the step refuses the operands."""
            results: Sequence[Array] = [np.zeros(result.shape, result.dtype) for result in step.results]
            seconds: list[float] = []
            try:
                for _ in range(TIMES):
                    start = time.perf_counter()
                    results = self._compute(self._runs[step.file], step, operands)
                    seconds.append(time.perf_counter() - start)
            except ProgramError as error:
                times.append(HostTime(step.title, None, str(error)))
            else:
                times.append(HostTime(step.title, min(seconds)))
            return results

        follow(self.plan, {**self._constants, **self.made_up(seed)}, device, compute)
        return times

    def run(self, machine: Emulator, values: Mapping[str, Array], run: Callable[[str], None], source: str) -> HostRun:
        """Execute the plan on a machine that holds the image's constants. `values`: the model's inputs by their names
        in the plan; `run` runs the program of a name; `source` names the origin of the inputs. Raises what `run`
        raises, and ProgramError where the host cannot compute the values."""
        entries: dict[str, Array] = {}
        pushed: list[InputUsed] = []
        seconds: dict[str, float] = {}
        model_values = {plan_input.value for plan_input in self.plan.given}

        def device(step: DeviceStep, program_inputs: Mapping[str, Array]) -> dict[str, Array]:
            """Push the inputs of a program, run it, and return its outputs as the model's tensors."""
            for model_input in self._model.inputs:
                if model_input.label in program_inputs:
                    entry = model_input.to_queue(program_inputs[model_input.label])
                    machine.push(model_input.queue, entry)
                    origin = "host parts"
                    if step.inputs[model_input.label] in model_values:
                        origin = source
                    df = machine.netlist.queues[model_input.queue].df
                    pushed.append(InputUsed(model_input.queue, df, tuple(entry.shape), origin))
            run(step.program)
            outputs = [model_input for model_input in self._model.outputs if model_input.label in step.outputs]
            entries.update({model_input.queue: machine.pop(model_input.queue) for model_input in outputs})
            return {model_input.label: model_input.from_queue(entries[model_input.queue]) for model_input in outputs}

        def compute(step: HostStep, operands: Sequence[Array]) -> Sequence[Array]:
            """Compute a step of the host, and record how long it took."""
            start = time.perf_counter()
            results = self._compute(self._runs[step.file], step, operands)
            seconds[step.title] = time.perf_counter() - start
            return results

        outputs = follow(self.plan, {**self._constants, **values}, device, compute)
        return HostRun(outputs, entries, tuple(pushed), seconds)


def _constant_array(image: DeviceImage, file: str) -> Array:
    """Return a constant of the plan, read from an array file of the image. Raises HostError for a damaged file."""
    return npy_of(f"{image.path}: host/{file}", image.host_file(file))
