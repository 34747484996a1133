"""What a core offers to streams, by architecture: ids, L1, and what its NCRISC keeps track of.

Held against the vendor's pipegen2, whose refusals name these numbers.
"""

from buda_emu.records import dataclass
from buda_emu.routing.ethernet_cores import ETHERNET_CORES

EXTRA_STREAMS = range(40, 64)  # of worker cores: what operands, gathers and multicasts do not use

ETHERNET_STREAMS = range(9, 12)  # only these, and those that multicast, transfer between chips
ETHERNET_MULTICAST_STREAMS = range(4)
ETHERNET_EXTRA_STREAMS = (*range(12, 32), *range(4, 9))

GATHER_RELAYS = 3  # of one gather, at most
GATHER_RELAY_TILES = 4  # of each relay, at least, on worker and Ethernet cores
GATHER_TILES = 12  # of all relays of a gather together, at least
ETHERNET_GATHER_TILES = 8

TILES_A_PHASE = 2048
PHASES_AN_ITERATION = 15  # where one source feeds one path
MOST_EPOCH_TILES = 1 << 32  # through a buffer: what has more is not followed
MOST_PHASES = 1 << 16  # of an iteration, likewise: no core has room for the blob of so many
PHASE_BYTES = 64  # of a blob, as pipegen2 estimates
EPOCH_BYTES = 12 * 1024  # of a blob, before its phases
TILE_HEADER_BUFFER = 16 * TILES_A_PHASE  # bytes
UNUSED_L1 = 64  # bytes at the end of L1
ETHERNET_L1_BYTES = 256 * 1024 - UNUSED_L1 - (36 + 124) * 1024  # for data buffers

NCRISC_READERS = 8
NCRISC_WRITERS = 8
READERS_OF_A_QUEUE = 255
KERNEL_INPUTS = 24
KERNEL_OUTPUTS = 24
TRACKED_QUEUES = 40  # beyond, the NCRISC keeps track of queues in L1
TRACKING_BYTES = 36  # of each

READ_BYTES = 52 * 1024  # of one read from DRAM, at most, and of a buffer that reads, at least
WRITE_BYTES = 80 * 1024  # of one write, at most
READ_TILES = 64 * 1024 - 1
MERGED_READ_BYTES = 100 * 1024  # of a buffer that both reads from DRAM and is the kernel's operand, at most


@dataclass(frozen=True, slots=True)
class CoreLimits:
    """One architecture's worker core."""

    l1_begin: int
    """First byte of data buffers, where no extra blob lies before them."""
    l1_end: int
    blob_bytes: int
    """Of the overlay blob that every core has room for."""
    multicast_streams: int
    """Ids 0 and up: the only streams that can gather or multicast."""
    operand_streams: tuple[int, ...]
    """Id of the stream of each operand, inputs, outputs and intermediates."""
    packer_multicast: bool
    """Whether a packer's stream can multicast by itself (`direct_mcast`)."""
    rows: tuple[int, ...]
    """Row of the NoC for each row of worker cores."""
    columns: tuple[int, ...]
    ethernet_cores: tuple[tuple[int, int], ...]
    """Row and column of the NoC for each Ethernet channel's core."""

    @property
    def l1_bytes(self) -> int:
        """Room for data buffers."""
        return self.l1_end - UNUSED_L1 - self.l1_begin


_ROWS = (*range(1, 6), *range(7, 12))

LIMITS = {
    "grayskull": CoreLimits(
        l1_begin=204 * 1024,
        l1_end=1024 * 1024,
        blob_bytes=64 * 1024 - 128,
        multicast_streams=3,
        operand_streams=tuple(range(8, 40)),
        packer_multicast=False,
        rows=_ROWS,
        columns=tuple(range(1, 13)),
        ethernet_cores=ETHERNET_CORES["grayskull"],
    ),
    "wormhole_b0": CoreLimits(
        l1_begin=204 * 1024,
        l1_end=1499136,
        blob_bytes=64 * 1024 - 128,
        multicast_streams=4,
        operand_streams=(4, 5, *range(10, 40)),
        packer_multicast=True,
        rows=_ROWS,
        columns=(*range(1, 5), *range(6, 10)),
        ethernet_cores=ETHERNET_CORES["wormhole_b0"],
    ),
}
