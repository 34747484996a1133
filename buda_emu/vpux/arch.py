"""What the two architectures allow (VPUX 4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from buda_emu.errors import HostError

KIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Arch:
    """Limits of an architecture. Barriers have slots for producers, for consumers, and for both together."""

    name: str
    tiles: int
    barriers: int
    producers: int
    consumers: int
    slots: int
    slice_bytes: int
    workspace_bytes: int
    ports: int = 2
    dma_channels: bool = False
    """Has each DMA port a queue for each of DDR and CMX?"""
    slice_in_address: bool = True
    """Do kernels see all slices of CMX one after another, or their own at one address?"""

    def available_barriers(self, tiles: int) -> int:
        """Barriers that a schedule on so many tiles may use at one time."""
        return min(self.barriers, self.barriers // self.tiles * max(tiles, 1))


ARCHES: Final[Mapping[str, Arch]] = MappingProxyType(
    {
        "37XX": Arch("37XX", 2, 64, 128, 128, 256, 2048 * KIB, 1936 * KIB),
        "40XX": Arch("40XX", 6, 96, 64, 64, 64, 2048 * KIB, 1440 * KIB, dma_channels=True, slice_in_address=False),
    }
)


def arch_named(name: str) -> Arch:
    """The limits of 37XX or 40XX. Raises HostError for any other."""
    found = ARCHES.get(name)
    if found is None:
        raise HostError(f"no architecture is named {name!r}: {' and '.join(ARCHES)} are")
    return found
