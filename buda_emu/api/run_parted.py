"""Runs an image whose host computes between its programs."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from buda_emu.api.report import ProgramSummary, RunReport, summarise
from buda_emu.runtime.emulator import Emulator
from buda_emu.spec.precision import Precision
from buda_emu.verify.inputs.host_parts import MADE_UP, HostParts
from buda_emu.verify.inputs.of_image import begun_with
from buda_emu.verify.inputs.push import push

if TYPE_CHECKING:
    from pathlib import Path

    from buda_emu.image.device_image import DeviceImage


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
    parts = HostParts(image)
    given = parts.made_up(report.seed) if inputs is None else parts.read(inputs, memory_limit)
    source = MADE_UP if inputs is None else str(inputs)
    netlist = image.for_inputs
    took: list[ProgramSummary] = []
    precision: Precision = report.precision  # type: ignore[assignment]
    with Emulator(netlist, precision, report.threads, memory_limit=memory_limit) as emulator:
        start = time.perf_counter()
        held = push(emulator, begun_with(image), progress)
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
