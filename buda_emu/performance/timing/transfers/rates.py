"""Rates at which a chip moves data, as the epoch model uses them (PERF 1, 1.2, 5.2), and their changes by
`--what-if`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast

from buda_emu.performance.timing.transfers.noc import Crossing, Link, Port, Way
from buda_emu.spec.archs import GIB
from buda_emu.spec.devices import Device
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.lazy import lazy

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")  # `test` shares out netlists to workers without it

# The only published figure of the host link as seen by a netlist: what device_to_host_bw_*.yaml state for it.
_HOST: Final = 4.15e9

WHAT_IF: Final[Mapping[str, tuple[str, float, str]]] = {
    "clock": ("clock", 1.0, "AI clock in MHz"),
    "dram_gbps": ("dram", 1e9, "GB/s of one DRAM channel"),
    "host_gbps": ("host", 1e9, "GB/s of the host link"),
    "eth_gbps": ("ethernet", 1e9, "GB/s between two chips"),
    "noc_bytes": ("noc", 1.0, "bytes in a cycle into one core"),
    "gather_bytes": ("gather", 1.0, "bytes in a cycle into one core that gathers from several"),
    "link_bytes": ("link", 1.0, "bytes in a cycle over one NoC link"),
    "port_bytes": ("port", 1.0, "bytes in a cycle through a worker core's port, of each NoC and direction"),
    "fpu": ("math", 1.0, "FPU and vector unit, times as fast as those of the chip"),
    "unpack_pack": ("moving", 1.0, "unpackers and packers, times as fast as those of the chip"),
    "epoch_setup": ("setup", 1.0, "cycles before each run of an epoch, in addition to loading it"),
}
"""Name -> field, factor, meaning."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes in a cycle of the AI clock, and latencies in cycles."""

    dram: float  # of one channel
    host: float  # of the host link, all channels together
    stream: float  # into one core
    gather: float  # into one core, from several places
    link: float  # of one NoC link
    ethernet: float  # of the links between two chips
    start: int  # cycles before the first byte of a transfer
    hop: int
    port: float = inf  # of a worker core, each NoC and direction
    memory_ports: tuple[float, float] = (inf, inf)  # of a DRAM core, into and out of it
    packets: tuple[tuple[int, float], ...] = ()  # bytes of a packet, bytes in a cycle of what travels in such packets
    read: tuple[int, int, int, int] = (0, 0, 0, 0)  # cycles before the first byte of what is read (`Path.far`)

    def over(self, link: Way) -> float:
        """Return the rate of a link, a port, or the links between two chips."""
        match link:
            case Link():
                return self.link
            case Crossing():
                return self.ethernet
            case Port("core"):
                return self.port
            case _:
                return self.memory_ports[link.way == "out of"]

    def of_packets(self, size: int) -> float:
        """Return the rate in bytes a cycle of a transfer in packets of `size` bytes: interpolated between measured
        sizes; packets below the smallest one take as long as that one. Infinite if none was measured."""
        return _of_packets(self.packets, size)


@lru_cache(1 << 12)
def _of_packets(packets: tuple[tuple[int, float], ...], size: int) -> float:
    """Return the rate of a transfer in packets of `size` bytes (see `Rates.of_packets`), infinite without measured
    sizes."""
    if not packets or size <= 0:
        return inf
    sizes, rates = zip(*packets, strict=True)
    if size < sizes[0]:
        return rates[0] * size / sizes[0]
    return float(np.interp(size, sizes, rates))


@dataclass(frozen=True, slots=True)
class Speed:
    """Clock in MHz, bandwidths in bytes a second. `noc`, `gather`, `link`, `port` and `memory_ports`, bytes in a
    cycle, follow the clock; memory, host and Ethernet do not."""

    clock: float
    dram: float  # of one channel
    host: float
    ethernet: float  # between two chips
    noc: float  # into one core
    gather: float
    link: float
    port: float  # of a worker core
    memory_ports: tuple[float, float]  # of a DRAM core, into and out of it
    packets: tuple[tuple[int, float], ...]  # bytes of a packet, bytes in a cycle
    start: int  # cycles before the first byte of a transfer
    hop: int
    read: tuple[int, int, int, int]  # cycles before the first byte of what is read, by distance
    measured_dram: float  # that of `dram` at which ops take the cycles that were measured
    setup: float = 0.0  # cycles before an epoch beside loading it: nothing is published
    math: float = 1.0  # times as fast as on the chip: FPU and vector unit
    moving: float = 1.0  # unpackers and packers

    def rates(self) -> Rates:
        """Return the rates in bytes per cycle of the clock."""
        cycle = self.clock * 1e6
        return Rates(
            dram=self.dram / cycle,
            host=self.host / cycle,
            stream=self.noc,
            gather=self.gather,
            link=self.link,
            ethernet=max(self.ethernet / cycle, 1e-9),
            start=self.start,
            hop=self.hop,
            port=self.port,
            memory_ports=self.memory_ports,
            packets=self.packets,
            read=self.read,
        )

    def times(self, names: Iterable[str], factor: float) -> "Speed":
        """Return a copy in which the quantities of these names are `factor` times as large."""
        return replace(self, **{name: _scale(getattr(self, name), factor) for name in names})


def _scale(value: Any, factor: float) -> Any:
    """Return a rate, or each rate of several, multiplied by `factor`; sizes of packets stay."""
    if isinstance(value, tuple):
        rates = cast("tuple[Any, ...]", value)
        if rates and isinstance(rates[0], tuple):
            return tuple((size, rate * factor) for size, rate in rates)
        return tuple(rate * factor for rate in rates)
    return value * factor


def require_figure(name: str, value: float) -> None:
    """Raise HostError for a figure of `what_if` that no chip can have."""
    if not 0 < value < 1e12:
        raise HostError(f"what-if: {name} must be above 0, not {value:g}")


def speed(device: Device, what_if: Mapping[str, float]) -> Speed:
    """Return the speed of a chip, with the figures of `what_if` replaced (names of `WHAT_IF`). Raises HostError for an
    unknown name or a figure that is not above 0."""
    into, hop, out = device.noc_latency
    cycles = device.clock * 1e6
    ethernet = min(device.eth_derated * GIB, min(device.eth_link_rate, *device.eth_port_rates) * cycles)
    result = Speed(
        clock=float(device.clock),
        dram=device.dram_measured * GIB,
        host=_HOST,
        ethernet=device.neighbour_links * ethernet,
        noc=device.stream_rate,
        gather=device.gather_rate,
        link=device.link_rate,
        port=device.core_port_rate,
        memory_ports=device.dram_port_rates,
        packets=device.packet_rates,
        start=into + hop + out,
        hop=hop,
        read=device.read_latency,
        measured_dram=device.dram_measured * GIB,
    )
    for name, value in what_if.items():
        if name not in WHAT_IF:
            if meant := near(name, WHAT_IF):
                hint = f" ({meant})"
            else:
                hint = ""
            raise HostError(f"what-if: {name!r} is not one of {', '.join(WHAT_IF)}{hint}")
        require_figure(name, value)
        field, factor, _ = WHAT_IF[name]
        result = replace(result, **{field: value * factor})
    return replace(result, measured_dram=result.measured_dram * result.clock / device.clock)
