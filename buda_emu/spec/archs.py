"""Architectures with the numbers that the rules and the device model need (NETLIST 2.1, LAYOUT 6, PERF 1)."""

from collections.abc import Mapping

from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Arch:
    """One architecture. Sizes are in bytes; the grid is (rows, columns) of worker cores, unharvested."""

    name: str
    grid: tuple[int, int]
    l1_bytes: int
    dram_channels: int
    dram_channel_bytes: int
    eth_cores: int
    host_channels: int
    alignment: int  # of tiles and queue headers, NETLIST 1.9
    dest_tiles: int  # NETLIST V040: tiles that fit half dest in a 16-bit format
    tf32_inputs: bool  # Float32 op inputs are truncated to Tf32 (OPS 3 step 5)
    documented: bool = True  # False: an internal word that parses but has no device table
    about: str = ""  # explanation of a name that is not self-explanatory


GIB = 1 << 30  # bytes

DRAM_RESERVED = 256 << 20
"""Bytes at the start of each DRAM channel that belong to the backend: it uses nothing above them on any chip (NETLIST
V153)."""
HOST_CHANNEL_BYTES = GIB
HOST_RESERVED = {0: 128 << 20, 3: 256 << 20}
"""Bytes at the end of a host channel that the backend keeps for itself, by channel (NETLIST V156, LAYOUT 6)."""
REMOTE_WINDOW = 0x30000000
"""Address in channel 0 of grayskull's DRAM from which on other chips and the host can write (LAYOUT 6)."""

# Streams of a worker core, as the vendor's programs count them (net2pipe, pipegen2).
EXTRA_STREAMS = range(40, 64)
"""Ids of the streams that belong to no operand, gather or multicast: for forks, relays, and reads of DRAM."""
GATHER_STREAMS = 3
"""Streams of one gather, at most."""
KERNEL_STREAMS = 24
"""Streams that feed a core's kernel, at most, and streams that it feeds."""

ARCHS: Mapping[str, Arch] = {
    arch.name: arch
    for arch in (
        Arch(
            name="grayskull",
            grid=(10, 12),
            l1_bytes=1048576,
            dram_channels=8,
            dram_channel_bytes=GIB,
            eth_cores=0,
            host_channels=1,
            alignment=32,
            dest_tiles=8,
            tf32_inputs=False,
        ),
        # The obsolete A0 part has the tables of wormhole_b0; only V040 (dest x4) and V093 tell them apart.
        Arch(
            name="wormhole",
            grid=(10, 8),
            l1_bytes=1499136,
            dram_channels=6,
            dram_channel_bytes=2 * GIB,
            eth_cores=16,
            host_channels=4,
            alignment=32,
            dest_tiles=32,
            tf32_inputs=True,
            about="the obsolete A0 part",
        ),
        Arch(
            name="wormhole_b0",
            grid=(10, 8),
            l1_bytes=1499136,
            dram_channels=6,
            dram_channel_bytes=2 * GIB,
            eth_cores=16,
            host_channels=4,
            alignment=32,
            dest_tiles=8,
            tf32_inputs=True,
        ),
        # The 10x14 file of NETLIST 2.1: the larger of the two published ones.
        Arch(
            name="blackhole",
            grid=(10, 14),
            l1_bytes=1499136,
            dram_channels=8,
            dram_channel_bytes=4 * GIB,
            eth_cores=14,
            host_channels=4,
            alignment=64,
            dest_tiles=8,
            tf32_inputs=False,
        ),
        Arch(
            name="jawbridge",
            grid=(10, 8),
            l1_bytes=1499136,
            dram_channels=6,
            dram_channel_bytes=2 * GIB,
            eth_cores=16,
            host_channels=4,
            alignment=32,
            dest_tiles=8,
            tf32_inputs=False,
            documented=False,
            about="an internal name that the reference accepts (NETLIST 1.2), about which nothing is "
            "published; netlists are read for it with the sizes of wormhole_b0",
        ),
    )
}
DEFAULT_ARCH = "wormhole_b0"

UNUSED_L1 = 64
"""Bytes at the end of L1 that nobody uses."""
ETHERNET_L1_BYTES = 256 * 1024 - UNUSED_L1 - (36 + 124) * 1024
"""Bytes of an Ethernet core for data buffers."""
