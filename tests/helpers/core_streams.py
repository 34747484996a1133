"""The streams of each core, as the vendor's pipegen2 counts them and as we do, to be compared."""

from collections import Counter
from collections.abc import Iterable, Mapping

from buda_emu.performance.routing.streams.model import LIMITS, CoreUse

Core = tuple[int, int, int]
"""Chip, row and column of the NoC."""


class Streams:
    """The streams of a core: their ids, and how many phases each has; extra ones, and those that gather or multicast,
    are alike but for their ids, which programs may deal out in another order."""

    def __init__(self, phases: Mapping[int, int | None]) -> None:
        self.phases = dict(sorted(phases.items()))
        self.ids = list(self.phases)
        self.operands = {id: phases[id] for id in self.ids if 4 <= id < 40}
        self.others = Counter((id < 4, phases[id]) for id in self.ids if id not in self.operands)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Streams):
            return False
        return (self.ids, self.operands, self.others) == (other.ids, other.operands, other.others)

    def __repr__(self) -> str:
        return f"{self.ids} with phases {self.operands} {dict(self.others)}"


def exact(streams: Mapping[Core, Streams] | None) -> dict[Core, dict[int, int | None]] | None:
    """The phases of each core's streams by id: ids that are dealt out in another order are a difference."""
    return None if streams is None else {core: core_streams.phases for core, core_streams in streams.items()}


def ours(cores: Iterable[CoreUse], arch: str) -> dict[Core, Streams]:
    """The streams that we allocate."""
    limits = LIMITS[arch]
    found: dict[Core, Streams] = {}
    for core in cores:
        chip, row, column, ethernet = core.place
        place = (chip, row, column) if ethernet else (chip, limits.rows[row], limits.columns[column])
        found[place] = Streams({stream.id: stream.phases for stream in core.streams})
    return found
