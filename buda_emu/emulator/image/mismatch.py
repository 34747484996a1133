"""The record of a contradiction between parts of an image, and the names of device.json for its place."""

from dataclasses import dataclass
from typing import Final

from buda_emu.emulator.image.archive import TOP
from buda_emu.emulator.image.rules import Steps
from buda_emu.support.checker.diagnostic import Severity

DEVICE: Final = f"{TOP}/device.json"
STATE: Final = "compiled_graph_state"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A contradiction in a member, at `steps` below its root. Errors refuse the image."""

    member: str
    rule: str
    problem: str
    severity: Severity = "error"
    steps: Steps = ()
