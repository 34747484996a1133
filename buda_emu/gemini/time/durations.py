"""Cycles (facts GEMINI 5.2): fitted on the reference traces, exact at 16 GiB/s and 1 GHz, a model at other rates."""

from dataclasses import dataclass
from math import ceil, floor, isfinite
from typing import Final

from buda_emu.errors import HostError, ProgramError
from buda_emu.gemini.model import Workload

FITTED_GIBPS: Final = 16.0
FITTED_GHZ: Final = 1.0
TILE: Final = 20  # cycles around the work of each tile
LOAD: Final = 20
STORE: Final = 30
FIRST_WEIGHT: Final = 89  # more for the first weight straight to the store; seen in assembler files only
CONFIGURE: Final = 21
CONTROL: Final = 35  # 30 to 39 in the traces
_KNEE, _SLOPE = 8000, 5300  # cycles of a transfer from which on it gets slower, and how much
_MOST = 1e15


@dataclass(frozen=True, slots=True)
class Rates:
    """Of DRAM, of the chip, and of a NoC link."""

    dram_gibps: float = FITTED_GIBPS
    freq_ghz: float = FITTED_GHZ
    noc_bytes_per_cycle: float = 32

    def __post_init__(self) -> None:
        for name in ("dram_gibps", "freq_ghz", "noc_bytes_per_cycle"):
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float))
                or not (isfinite(value) and 0 < value < _MOST)
            ):
                raise HostError(f"{name} is a number above 0, not {value!r}")

    @property
    def dram_bytes_per_cycle(self) -> float:
        """What the one DRAM queue moves."""
        return self.dram_gibps * 2**30 / (self.freq_ghz * 1e9)

    @property
    def fitted(self) -> bool:
        """The rates of the reference traces."""
        return (self.dram_gibps, self.freq_ghz) == (FITTED_GIBPS, FITTED_GHZ)

    def transfer(self, size: int, *, store: bool) -> int:
        """Cycles of a transfer of so many bytes to or from DRAM."""
        x = size / self.dram_bytes_per_cycle
        if x > _MOST:
            raise ProgramError(f"a transfer of {size} bytes takes more than {_MOST:.0e} cycles", kind="limit")
        return (STORE if store else LOAD) + ceil(x + max(0.0, (x - _KNEE) / _SLOPE))

    def hop(self, hops: int, size: int) -> int:
        """Cycles of a piece over the NoC."""
        x = size / self.noc_bytes_per_cycle
        if x > _MOST:
            raise ProgramError(f"a piece of {size} bytes takes more than {_MOST:.0e} cycles", kind="limit")
        return hops + ceil(x)


def tile_cycles(work: Workload) -> int:
    """Of each tile of a workload (A)."""
    count = max(len(work.tiles), 1)
    return _positive(work) and TILE + floor(work.time / count + 0.5)


def whole_cycles(work: Workload) -> int:
    """Of a workload (B)."""
    return _positive(work) and int(work.time)


def _positive(work: Workload) -> bool:
    if not 0 <= work.time < _MOST:
        raise ProgramError(f"{work.place}/time: {work} takes {work.time} cycles")
    return True
