"""The record of a run's input data. It is a file of its own because a plain run needs no other result."""

from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class InputUsed:
    """The data that was pushed to a queue. `source` is the file, "test-config", "default", ..."""

    queue: str
    format: str
    shape: tuple[int, ...]
    source: str
