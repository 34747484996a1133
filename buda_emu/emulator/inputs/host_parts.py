"""Runs of an image whose host computes between programs: its plan, followed on a machine, and the time of the host."""

import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from buda_emu.emulator.image.device_image import DeviceImage
from buda_emu.emulator.image.host_plan import COMPUTES, DeviceStep, HostPlan, HostStep, follow
from buda_emu.emulator.image.model_io import ModelIo, made_up
from buda_emu.emulator.inputs.feed import push
from buda_emu.emulator.inputs.input_used import InputUsed
from buda_emu.emulator.inputs.numpy_files import npy_of
from buda_emu.emulator.inputs.of_image import begun_with
from buda_emu.emulator.inputs.stimulus import generator
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.support.errors import HostError, ProgramError
from buda_emu.support.records import dataclass
from buda_emu.support.unmasked import refuse_masked_arrays

Array = Any
MADE_UP: Final = "made-up inputs of the model"
TIMES: Final = 3
"""How often a step of the host is timed."""


@dataclass(frozen=True, slots=True)
class HostRun:
    """What a run gave: the model's outputs by label, what programs gave by queue, what was pushed, and the seconds of
    each step of the host, by its name."""

    outputs: Mapping[str, Array]
    entries: Mapping[str, Array]
    inputs: tuple[InputUsed, ...]
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class HostTime:
    """What a step of the host takes on this machine; `seconds` are None where it refuses the values, `why`."""

    step: str
    seconds: float | None
    why: str = ""

    def __str__(self) -> str:
        took = f"not measured: {self.why}" if self.seconds is None else f"{1e6 * self.seconds:,.0f} us on this machine"
        return f"{self.step}: {took}"


class HostParts:
    """An image's plan with what computes it. Raises HostError for a step that nothing here can compute."""

    def __init__(self, image: DeviceImage) -> None:
        self._image = image
        if image.model is None or image.model.host is None:
            raise HostError(f"{image.path}: the host computes nothing between its programs")
        self._model: ModelIo = image.model
        self.plan: HostPlan = image.model.host
        room = import_module(COMPUTES)
        self._compute = room.compute
        self._runs = {step.file: room.computed(step.form, image.host_file(step.file)) for step in self.plan.on_host}
        self._constants = {name: _array(image, file) for name, file in self.plan.constants.items()}

    def given(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Values of the model's inputs, by label. Raises HostError where one is missing, unknown, or of another
        shape."""
        labels = {item.label for item in self.plan.given}
        named = set(arrays)
        if labels != named:
            what = sorted(labels - named or named - labels)
            word = "no" if labels - named else "unknown"
            raise HostError(f"inputs: {word} {', '.join(what)}; the model takes {', '.join(self._model.labels)}")
        for item in self.plan.given:
            refuse_masked_arrays(arrays[item.label], f"input {item.label}")
            if np.shape(arrays[item.label]) != item.shape:
                shape = list(np.shape(arrays[item.label]))
                raise HostError(f"input {item.label}: shape {shape}, the model takes {list(item.shape)}")
        return {item.value: np.asarray(arrays[item.label]) for item in self.plan.given}

    def made_up(self, seed: int) -> dict[str, Array]:
        """The same, generated: normal numbers for floats, else integers that the model takes."""
        given = self.plan.given
        return {item.value: made_up(generator(seed, item.label), item.shape, item.dtype, item.below) for item in given}

    def read(self, path: Path, most: int) -> dict[str, Array]:
        """The same from one .npz file, which unpacks to at most so many bytes. Raises HostError."""
        from buda_emu.emulator.inputs.numpy_files import npz_of

        if path.suffix.lower() != ".npz" or not path.is_file():
            raise HostError(f"inputs: {path}: an image with host parts takes one .npz file, by the model's input names")
        return self.given(npz_of(f"inputs: {path}", path.read_bytes(), most))

    def on(self, machine: Emulator, parameters: Mapping[str, str], seed: int) -> HostRun:
        """One run on a machine that holds nothing yet, of made-up inputs. Raises as `run`."""
        push(machine, begun_with(self._image))
        return self.run(machine, self.made_up(seed), lambda name: machine.run(name, parameters), MADE_UP)

    def timed(self, seed: int) -> list[HostTime]:
        """What each step of the host takes: the shortest of `TIMES` runs on made-up operands of the model's shapes. No
        program runs."""
        found: list[HostTime] = []

        def device(step: DeviceStep, _: Mapping[str, Array]) -> dict[str, Array]:
            outputs = [item for item in self._model.outputs if item.label in step.outputs]
            return {item.label: made_up(generator(seed, item.label), item.shape, item.dtype, 2) for item in outputs}

        def compute(step: HostStep, operands: Sequence[Array]) -> Sequence[Array]:
            results: Sequence[Array] = [np.zeros(item.shape, item.dtype) for item in step.results]
            took: list[float] = []
            try:
                for _ in range(TIMES):
                    start = time.perf_counter()
                    results = self._compute(self._runs[step.file], step, operands)
                    took.append(time.perf_counter() - start)
            except ProgramError as error:
                found.append(HostTime(step.title, None, str(error)))
            else:
                found.append(HostTime(step.title, min(took)))
            return results

        follow(self.plan, {**self._constants, **self.made_up(seed)}, device, compute)
        return found

    def run(self, machine: Emulator, values: Mapping[str, Array], run: Callable[[str], None], source: str) -> HostRun:
        """Follow the plan on a machine that holds the image's constants. `run` runs a program; `source` is where the
        inputs come from. Raises what a run raises, and ProgramError where the host cannot compute the values."""
        entries: dict[str, Array] = {}
        pushed: list[InputUsed] = []
        seconds: dict[str, float] = {}
        own = {item.value for item in self.plan.given}

        def device(step: DeviceStep, given: Mapping[str, Array]) -> dict[str, Array]:
            for item in self._model.inputs:
                if item.label in given:
                    entry = item.to_queue(given[item.label])
                    machine.push(item.queue, entry)
                    where = source if step.inputs[item.label] in own else "host parts"
                    df = machine.netlist.queues[item.queue].df
                    pushed.append(InputUsed(item.queue, df, tuple(entry.shape), where))
            run(step.program)
            outputs = [item for item in self._model.outputs if item.label in step.outputs]
            entries.update({item.queue: machine.pop(item.queue) for item in outputs})
            return {item.label: item.from_queue(entries[item.queue]) for item in outputs}

        def compute(step: HostStep, operands: Sequence[Array]) -> Sequence[Array]:
            start = time.perf_counter()
            found = self._compute(self._runs[step.file], step, operands)
            seconds[step.title] = time.perf_counter() - start
            return found

        outputs = follow(self.plan, {**self._constants, **values}, device, compute)
        return HostRun(outputs, entries, tuple(pushed), seconds)


def _array(image: DeviceImage, file: str) -> Array:
    return npy_of(f"{image.path}: host/{file}", image.host_file(file))
