"""Relays by which pipes go from chip to chip, and the cores that they are on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Core(NamedTuple):
    """A worker core, rows and columns counted over them alone, or an Ethernet core, of the NoC, with its channel."""

    chip: int
    row: int
    column: int
    channel: int = -1

    @property
    def place(self) -> tuple[int, int]:
        """Row and column."""
        return self.row, self.column


@dataclass(slots=True)
class Hop:
    """A relay on the way between chips. `piece`: tiles that are sent at a time; `number`: of the core's relays;
    `tiles`: what it holds at least; `result`: what the buffer says of blocks where it is like an op's."""

    id: int
    chip: int
    piece: int
    epoch_tiles: int
    tile_bytes: int
    core: Core | None = None
    number: int = 0
    tiles: int = 1
    result: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def at(self) -> Core:
        """Its core, when it has one."""
        assert self.core is not None
        return self.core
