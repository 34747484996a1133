"""Chips: grid, L1, DRAM, NoC, Ethernet and clocks, from one JSON file for each architecture.

Every value in the files states its unit and its source (schemas/device.schema.json); `Device.source` returns the
source.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

from buda_emu.support.errors import HostError, UnsupportedError

DEVICES: Final = ("grayskull", "wormhole_b0", "blackhole")
"""Architectures with a file of their own."""

_SAME: Final = {"wormhole": "wormhole_b0"}  # PERF 1: the A0 part has the geometry of B0

Core = tuple[int, int]  # physical x, y


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One chip, possibly harvested or cut to a smaller grid. Sizes are in bytes, rates as their names say.

    `worker_columns` and `worker_rows` are the physical x and y of the cores that compute; a core's logical row and
    column index them (PERF 1). `l1_regions` lie from address 0 upward, up to `l1_data_start`.
    """

    name: str
    noc_grid: tuple[int, int]  # columns x, rows y
    worker_columns: tuple[int, ...]
    worker_rows: tuple[int, ...]
    harvesting: Literal["exact", "last", "none"]
    l1_bytes: int
    l1_regions: tuple[tuple[str, int], ...]
    l1_data_start: int
    l1_barrier: int
    dram_cores: tuple[tuple[Core, ...], ...]  # of each channel
    dram_channel_bytes: int
    dram_theoretical: float  # GiB/s of a channel
    dram_measured: float
    eth_cores: tuple[Core, ...]  # in order of the channels
    eth_l1_bytes: int
    eth_theoretical: float  # GiB/s of a link
    eth_derated: float
    eth_data: tuple[int, int]  # first address, end
    arc: Core
    pcie: Core
    clock: int  # MHz
    nocs: int
    noc_bytes_per_clock: int
    noc_packet_bytes: int
    noc_latency: tuple[int, int, int]  # cycles: into the NoC, between routers, out of it
    link_rate: float  # bytes in a cycle, as all rates below
    stream_rate: float  # into one core from one other
    gather_rate: float  # into one core that gathers from several buffers
    core_port_rate: float  # of a worker core, each NoC and direction
    dram_port_rates: tuple[float, float]  # of a DRAM core, into it and out of it
    eth_port_rates: tuple[float, float]
    eth_link_rate: float
    neighbour_links: int  # Ethernet links between two neighbouring chips
    packet_rates: tuple[tuple[int, float], ...]  # bytes of a packet, rate of a transfer in such packets
    read_latency: tuple[int, int, int, int]  # cycles: same core, same column, same row, any other
    noc_virtual_channels: int
    dst_size_alignment: int
    alignment: int  # of tiles and queue headers
    pack_bytes_per_clock: int
    unpack_bytes_per_clock: int
    product_cycles: int  # FPU cycles of a tile product and fidelity phase
    dram_input_queues: int  # of one core, as all limits below
    dram_output_queues: int
    streams: int
    fan_out_streams: int
    multicast_streams: int
    phase_tiles: int
    board: str = ""  # that it stands on, where one is named (spec/boards.py)

    @property
    def title(self) -> str:
        """Return the name for reports: the architecture, with its board if there is one."""
        if self.board:
            return f"{self.board} ({self.name})"
        return self.name

    @property
    def grid(self) -> tuple[int, int]:
        """Return the logical rows and columns of worker cores."""
        return len(self.worker_rows), len(self.worker_columns)

    @property
    def dram_channels(self) -> int:
        """Return the number of DRAM channels, as netlists count them."""
        return len(self.dram_cores)

    @property
    def blob_bytes(self) -> int:
        """Return the bytes that each worker core reads for every epoch: runtime configuration and overlay blob (PERF
        5.1)."""
        return sum(size for name, size in self.l1_regions if name in ("epoch_config", "overlay_blob"))

    @property
    def binary_bytes(self) -> int:
        """Return the bytes that a worker core with a kernel in an epoch reads in addition: the three compute
        binaries (PERF 5.1)."""
        return sum(size for name, size in self.l1_regions if name in ("trisc0", "trisc1", "trisc2"))

    @property
    def l1_data_bytes(self) -> int:
        """Return the bytes of a worker's L1 behind its reserved regions: the room that buffers have, which reports show
        beside their use."""
        return self.l1_bytes - self.l1_data_start

    def physical(self, row: int, column: int) -> Core:
        """Return the physical x, y of a logical core. Raises HostError outside of the grid."""
        rows, columns = self.grid
        if not (0 <= row < rows and 0 <= column < columns):
            raise HostError(f"{self.name}: core [{row}, {column}] is outside of the grid {rows}x{columns}")
        return self.worker_columns[column], self.worker_rows[row]

    def logical(self, x: int, y: int) -> tuple[int, int]:
        """Return the logical row and column of a physical core. Raises HostError if it is no worker core."""
        if x not in self.worker_columns or y not in self.worker_rows:
            raise HostError(f"{self.name}: {x}-{y} is not a worker core")
        return self.worker_rows.index(y), self.worker_columns.index(x)

    def label(self, row: int, column: int) -> str:
        """Return the name of a core in reports: its physical `x-y` (PERF 1)."""
        x, y = self.physical(row, column)
        return f"{x}-{y}"

    def source(self, field: str) -> str:
        """Return the source that a field's value was taken from, such as a section of the facts, as the file states it.
        Raises KeyError for a field that the file does not have."""
        return _read_file(self.name)[field]["from"]

    def with_grid(self, rows: int, columns: int) -> "Device":
        """Return the chip with its first rows and columns only. Raises HostError for more than it has."""
        limit = self.grid
        if not (1 <= rows <= limit[0] and 1 <= columns <= limit[1]):
            raise HostError(f"{self.name}: a grid of {rows}x{columns} is not within {limit[0]}x{limit[1]}")
        return replace(self, worker_rows=self.worker_rows[:rows], worker_columns=self.worker_columns[:columns])

    def harvested(self, rows: Collection[int]) -> "Device":
        """Return the chip without the given physical rows (PERF 1, Harvesting).

        grayskull loses exactly those; wormhole_b0 renumbers its rows and so loses as many of the last ones.
        Raises HostError for a row without workers, and UnsupportedError for a chip whose harvesting is not published.
        """
        for row in rows:
            if row not in self.worker_rows:
                rows_text = ", ".join(map(str, self.worker_rows))
                raise HostError(f"{self.name}: row {row} has no worker cores; rows are {rows_text}")
        lost = len(set(rows))
        if lost and self.harvesting == "none":
            raise UnsupportedError(f"{self.name}: nothing is published about harvesting; give a grid instead")
        if lost == len(self.worker_rows):
            raise HostError(f"{self.name}: no row would be left")
        if self.harvesting == "exact":
            worker_rows = tuple(y for y in self.worker_rows if y not in rows)
        else:
            worker_rows = self.worker_rows[: len(self.worker_rows) - lost]
        return replace(self, worker_rows=worker_rows)


def rows_of_mask(mask: int) -> tuple[int, ...]:
    """Return the physical rows of a harvesting mask, bit n for row n (PERF 1). Raises HostError for a negative mask
    and for the illegal bits 0, 6 and 12 upward."""
    rows = tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1)
    wrong = [row for row in rows if row in (0, 6) or row >= 12]
    if mask < 0 or wrong:
        if wrong:
            problem = f"bit {wrong[0]} is"
        else:
            problem = "negative numbers are"
        raise HostError(f"harvesting mask {mask:#x}: {problem} illegal")
    return rows


@cache
def device(arch: str) -> Device:
    """Return the unharvested chip of an architecture. Raises HostError for an architecture without a table."""
    name = _SAME.get(arch, arch)
    if name not in DEVICES:
        raise HostError(f"no device table for '{arch}'; there are {', '.join(DEVICES)}")
    content = _read_file(name)
    fields = {key: _field_value(key, entry["value"]) for key, entry in content.items() if isinstance(entry, dict)}
    del fields["grid"]  # follows from rows and columns; the file states it for its readers
    return Device(name=name, **fields)


@cache
def _read_file(name: str) -> Mapping[str, Any]:
    """Return the content of an architecture's file."""
    return json.loads((files("buda_emu.spec.devices") / f"{name}.json").read_text(encoding="utf-8"))


def _field_value(key: str, value: Any) -> Any:
    """Return the value of the field `key` as `Device` has it: cores as (x, y), lists as tuples."""
    if key in ("arc", "pcie"):
        return _core(value)
    if key == "eth_cores":
        return tuple(map(_core, value))
    if key == "dram_cores":
        return tuple(tuple(map(_core, channel)) for channel in value)
    return _as_tuples(value)


def _as_tuples(value: Any) -> Any:
    """Return a value with tuples in place of all lists."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _core(label: str) -> Core:
    """Return the physical x and y of a core that a file names as "x-y"."""
    x, _, y = label.partition("-")
    return int(x), int(y)
