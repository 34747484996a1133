"""The users of the memory channel, NoC link or port that limits an epoch, and the gain from spreading its load."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from buda_emu.timing.epoch.result import EpochTiming
from buda_emu.timing.transfers.flows import CHANNEL, Flow, channel_name
from buda_emu.timing.transfers.noc import Path

_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class User:
    """A stream `source > target` and its share of the bytes that a channel or link carries for one input."""

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Contention:
    """A channel or link: `cycles` that it works for each input, `users` with the greatest share first.

    `spread`: cycles of every one of `places` channels if they shared the load of all of them alike, None where there is
    no such choice. `rest`: what would be the busiest then, and its cycles.
    """

    name: str
    cycles: float
    users: tuple[User, ...]
    places: int
    spread: float | None
    rest: tuple[str, float]

    def sentence(self, pace: float | None) -> str:
        """For whoever has to place queues; `pace`: cycles of an input that it sets, None where it does not."""
        named = ", ".join(f"{user.name} {100 * user.share:.0f} %" for user in self.users[:_NAMED])
        more = f" and {len(self.users) - _NAMED} more" if len(self.users) > _NAMED else ""
        text = f"it carries {named}{more}"
        name, cycles = self.rest
        least = max(cycles, self.spread or 0.0)
        if self.spread is not None and self.spread < self.cycles:
            text += f"; spread alike over {self.places} channels it would work {self.spread:,.0f} cycles"
        if pace is None or least >= pace or (self.spread is None and not name):
            return text
        what = f"{name}, {cycles:,.0f} cycles," if cycles >= (self.spread or 0.0) else "the channels"
        if self.spread is None:
            text += "; with less to carry"
        return f"{text}, and {what} would set the pace: at best {100 * (1 - least / pace):.0f} % fewer cycles"


def contention(
    timing: EpochTiming, edges: Sequence[Flow], paths: Sequence[Path], name: str, channels: int
) -> Contention | None:
    """Of a DRAM channel, the host link or a NoC link by its name in `timing`; None for anything else. `channels`: DRAM
    channels of the chip."""
    carried: dict[str, float] = {}
    for edge, path in zip(edges, paths, strict=True):
        size = _carries(edge, path, name)
        if size:
            carried[edge.name] = carried.get(edge.name, 0.0) + size
    if not carried:
        return None
    total = sum(carried.values())
    users = [User(flow, size / total) for flow, size in carried.items()]
    users.sort(key=lambda user: (-user.share, user.name))
    is_dram = name.startswith(CHANNEL)
    chip = name.partition(",")[2]  # its channels have one name but for the number
    dram = [item for item in timing.memory if item.name.startswith(CHANNEL) and item.name.partition(",")[2] == chip]
    spread = sum(item.cycles for item in dram) / channels if is_dram else None
    aside = {item.name for item in dram} if is_dram else {name}
    if not is_dram:  # a transfer is as slow as the fullest link on its way
        aside |= set(carried)
    others = [item for _, item in timing.busy() if item.name not in aside]
    rest = max(others, key=lambda item: item.cycles, default=None)
    cycles = next(item.cycles for item in (*timing.memory, *timing.links) if item.name == name)
    return Contention(
        name, cycles, tuple(users), channels if is_dram else 1, spread, (rest.name, rest.cycles) if rest else ("", 0.0)
    )


def _carries(edge: Flow, path: Path, name: str) -> float:
    """Bytes of one input."""
    if edge.once:
        return 0.0
    if name == "host link":
        return sum(edge.memory_bytes.values()) if edge.memory == "host" else 0.0
    if name.startswith(CHANNEL):
        if edge.memory != "dram":
            return 0.0
        return sum(size for number, size in edge.memory_bytes.items() if channel_name(number, edge.chip) == name)
    return sum(size for way, size in path.loads() if str(way) == name)
