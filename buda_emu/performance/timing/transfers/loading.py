"""The cost of loading an epoch each time it is executed: its blobs and binaries, and the headers of its queues (PERF
5.1).

Every worker core of a chip that takes part reads runtime configuration and overlay blob out of its DRAM channel, and,
if it has a kernel in the epoch, the three compute binaries. All cores do so at once, so the channels are the limit. The
assignment of cores to channels is not published: bytes are distributed evenly. DRAM has the same rate as in the rest of
the model, the backend's measured rate of a channel (PERF 1): on wormhole_b0 80,000 cycles with a kernel on each of 80
cores, on grayskull 196,000 with 120.

No figure is published for initialising streams, releasing compute cores from reset and putting them back, and writing
back the read pointer. They are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from buda_emu.netlist.model import Netlist, Op
from buda_emu.performance.timing.transfers.flows import Flow
from buda_emu.performance.timing.transfers.noc import Path
from buda_emu.performance.timing.transfers.rates import Speed, speed
from buda_emu.spec.devices import Device


@dataclass(frozen=True, slots=True)
class ChipLoad:
    """Loading of one chip: `cores` read, `kernels` of them have a kernel; reading the bytes takes `cycles`, then the
    headers of queues take `headers` cycles."""

    chip: int
    cores: int
    kernels: int
    bytes: int
    cycles: float
    headers: float

    @property
    def total(self) -> float:
        """Return the cycles until the chip's ops may begin."""
        return self.cycles + self.headers


@dataclass(frozen=True, slots=True)
class EpochLoad:
    """Loading of all chips of an epoch, which happens at the same time."""

    chips: tuple[ChipLoad, ...]

    @property
    def cycles(self) -> float:
        """Return the cycles until all chips are ready."""
        return max((chip.total for chip in self.chips), default=0.0)


def load_bytes(chip: Device, kernels: int, extra: int = 0) -> int:
    """Return the bytes that the worker cores of a chip read for an epoch in which `kernels` of them have a kernel;
    `extra` bytes are added to each core's blob."""
    rows, columns = chip.grid
    return rows * columns * (chip.blob_bytes + extra) + kernels * chip.binary_bytes


def load_cycles(chip: Device, kernels: int, extra: int = 0, fast: Speed | None = None) -> float:
    """Return the cycles of the AI clock that it takes to read the bytes of `load_bytes`: the larger of the time in the
    DRAM channels, all together, and that in the port of one core. `fast` replaces the chip's own speed."""
    fast = fast or speed(chip, {})
    rates = fast.rates()
    core_bytes = chip.blob_bytes + extra + (chip.binary_bytes if kernels else 0)
    return max(load_bytes(chip, kernels, extra) / (rates.dram * chip.dram_channels), core_bytes / rates.port)


def epoch_load(
    netlist: Netlist, graphs: Iterable[str], edges: Sequence[tuple[Flow, Path]], chip: Device, fast: Speed
) -> EpochLoad:
    """Return the loading of an epoch of these graphs: on each chip, blobs, binaries and the headers of queues."""
    by_chip: dict[int, list[Op]] = {}
    for name in graphs:
        graph = netlist.graphs[name]
        by_chip.setdefault(graph.target_device, []).extend(graph.ops)
    waits = _header_cycles(edges, fast)
    loads: list[ChipLoad] = []
    for number, ops in by_chip.items():
        kernels = min(sum(op.blocking.cells for op in ops if len(op.grid_loc) == 2), chip.grid[0] * chip.grid[1])
        extra = max((extra_blob(chip, op) for op in ops), default=0)
        loads.append(
            ChipLoad(
                chip=number,
                cores=chip.grid[0] * chip.grid[1],
                kernels=kernels,
                bytes=load_bytes(chip, kernels, extra),
                cycles=load_cycles(chip, kernels, extra, fast),
                headers=max((waits.get(op.name, 0.0) for op in ops), default=0.0),
            )
        )
    return EpochLoad(tuple(loads))


def extra_blob(chip: Device, op: Op) -> int:
    """Return the bytes by which an op's `overlay_size` exceeds the blob that every core has, 0 if it does not (PERF
    1.1)."""
    blob = dict(chip.l1_regions)["overlay_blob"]
    return max(op.overlay_size - blob, 0)


def _header_cycles(edges: Sequence[tuple[Flow, Path]], fast: Speed) -> Mapping[str, float]:
    """Return by op the cycles in which its cores read the headers of their queues in DRAM, one after the other (PERF
    5.1, 5.2). Queues in host memory, of which no figure is published, do not count."""
    header_cycles: dict[str, float] = {}
    for edge, path in edges:
        if edge.memory == "dram":
            if edge.operand < 0:
                op = edge.source
            else:
                op = edge.target
            header_cycles[op] = header_cycles.get(op, 0.0) + fast.read[path.far]
    return header_cycles
