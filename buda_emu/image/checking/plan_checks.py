"""Whether what the host does between programs fits the netlist and the archive."""

from collections.abc import Iterator

from buda_emu.checker.suggest import near
from buda_emu.checker.text import shown
from buda_emu.image.archive import Archive
from buda_emu.image.host.plan import FOLDER, DeviceStep, HostPlan
from buda_emu.image.mismatch import DEVICE, Mismatch
from buda_emu.image.model_io import KEY, ModelIo
from buda_emu.image.names import TOP
from buda_emu.netlist.model import Netlist


def plan_mismatches(plan: HostPlan, model: ModelIo, netlist: Netlist, archive: Archive) -> Iterator[Mismatch]:
    """Everything that a plan names and that is not there."""

    def wrong(rule: str, problem: str, *steps: str | int) -> Mismatch:
        return Mismatch(DEVICE, rule, problem, steps=(KEY, "host", *steps))

    for steps, problem in plan.problems():
        yield wrong("image-field", problem, *steps)
    if tuple(item.label for item in plan.given) != model.labels:
        yield wrong("image-field", "its inputs are not those of labels", "given")
    for value, file in plan.constants.items():
        if not archive.has(f"{TOP}/{FOLDER}/{file}"):
            yield wrong("image-member", f"{shown(file)} is not in the archive's folder {FOLDER}", "constants", value)
    labels = {"inputs": {item.label for item in model.inputs}, "outputs": {item.label for item in model.outputs}}
    for place, step in enumerate(plan.steps):
        if not isinstance(step, DeviceStep):
            if not archive.has(f"{TOP}/{FOLDER}/{step.file}"):
                problem = f"{shown(step.file)} is not in the archive's folder {FOLDER}"
                yield wrong("image-member", problem, "steps", place, "file")
            continue
        if step.program not in netlist.programs:
            hint = near(step.program, netlist.programs)
            problem = f"{shown(step.program)} is not a program of the netlist{f' ({hint})' if hint else ''}"
            yield wrong("image-queue", problem, "steps", place, "program")
        for part, known in labels.items():
            for label in getattr(step, part):
                if label not in known:
                    yield wrong(
                        "image-queue", f"{shown(label)} is not one of {KEY}.{part}", "steps", place, part, label
                    )
