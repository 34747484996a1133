"""What routing gives: streams by core, what they take of each limit, and what is refused."""

from typing import NamedTuple

from buda_emu.records import dataclass


class Place(NamedTuple):
    """A core: worker cores counted without the others, as in netlists; Ethernet cores as the NoC counts."""

    chip: int
    row: int
    column: int
    ethernet: bool = False

    def __str__(self) -> str:
        kind = "Ethernet core" if self.ethernet else "core"
        return f"{kind} [{self.row}, {self.column}] of chip {self.chip}"


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of a core."""

    id: int
    kind: str
    """`unpacker`, `packer`, `intermediate`, `multicast`, `packer_multicast`, `gather`, `gather_multicast`,
    `gather_relay` or `relay`."""
    operand: int | None
    """Which operand of the kernel it serves."""
    op: str
    """The op or queue whose buffer it serves, where it serves one."""
    pipes: tuple[int, ...]
    """Ids of the pipes that it takes part in."""
    buffer_bytes: int
    """Of L1 that this stream alone is given; 0 where it shares another's buffer."""
    phases: int | None
    """How often its configuration changes in an epoch, repeated iterations apart; None where they were not counted."""
    reads_queues: int
    """DRAM buffers that it reads."""
    writes_queues: int


@dataclass(frozen=True, slots=True)
class CoreUse:
    """What one core holds, beside `limits`."""

    place: Place
    ops: tuple[str, ...]
    streams: tuple[Stream, ...]
    extra_streams: int
    """Forks of packers, gathers' relays, relays."""
    multicast_streams: int
    """Of the architecture's `multicast_streams`: gathers and multicasts."""
    kernel_inputs: int
    kernel_outputs: int
    tile_header_bytes: int
    stream_bytes: int
    fallback_bytes: int
    blob_bytes: int
    """Beyond the blob's room that each core has."""
    available_bytes: int

    @property
    def l1_bytes(self) -> int:
        """All that data buffers take, of `available_bytes`."""
        return self.tile_header_bytes + self.stream_bytes + self.fallback_bytes + self.blob_bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pipe graph cannot run: `number` is what it needs of what there are `limit` of."""

    what: str
    """`readers_of_a_queue`, `ncrisc_readers`, `ncrisc_writers`, `kernel_inputs`, `kernel_outputs`, `extra_streams`,
    `multicast_streams`, `ethernet_streams`, `operand_stream`, `phases`, `l1` or `pipe_graph`."""
    message: str
    place: Place | None = None
    number: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Routed:
    """Cores by chip, row and column; refusals in the order in which pipegen2 looks for them, empty where it accepts."""

    cores: tuple[CoreUse, ...]
    refusals: tuple[Refusal, ...]


class RefusedError(Exception):
    """Nothing more can be worked out: `refusal` says why. Caught where routing begins."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
