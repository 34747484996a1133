"""Parts of an image that do not match, and where device.json names them."""

from dataclasses import dataclass
from typing import Final

from buda_emu.emulator.image.archive import TOP
from buda_emu.emulator.image.rules import Steps
from buda_emu.support.checker.diagnostic import Severity

DEVICE: Final = f"{TOP}/device.json"
STATE: Final = "compiled_graph_state"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A finding on a member, `steps` below its beginning. Errors refuse the image."""

    member: str
    rule: str
    problem: str
    severity: Severity = "error"
    steps: Steps = ()
