"""What a run was fed with. Apart from other results: a plain run needs no more of them."""

from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class InputUsed:
    """What was pushed to a queue. `source`: the file, "test-config", "default", ..."""

    queue: str
    format: str
    shape: tuple[int, ...]
    source: str
