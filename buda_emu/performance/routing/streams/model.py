"""The result of routing: streams by core, the use of each core's resources with their limits, and refusals; and
the same as YAML, to read and to compare."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from buda_emu.performance.routing.pipes.links import ETHERNET_CORES
from buda_emu.spec.archs import ARCHS, EXTRA_STREAMS, KERNEL_STREAMS, UNUSED_L1
from buda_emu.support.records import dataclass


class Place(NamedTuple):
    """A core. Worker cores are counted without the others, as in netlists; Ethernet cores have NoC coordinates."""

    chip: int
    row: int
    column: int
    ethernet: bool = False

    def __str__(self) -> str:
        if self.ethernet:
            kind = "Ethernet core"
        else:
            kind = "core"
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
    """The bytes of L1 that this stream alone is given; 0 if it shares another's buffer."""
    phases: int | None
    """How often its configuration changes in an epoch, repeated iterations apart; None where they were not counted."""
    reads_queues: int
    """DRAM buffers that it reads."""
    writes_queues: int


@dataclass(frozen=True, slots=True)
class CoreUse:
    """The use of one core's resources; the limits stand in `LIMITS`."""

    place: Place
    ops: tuple[str, ...]
    streams: tuple[Stream, ...]
    extra_streams: int
    """Forks of packers, gathers' relays, relays."""
    multicast_streams: int
    """The number of streams that gather or multicast, among the architecture's `multicast_streams`."""
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
        """Return the bytes that all data buffers take; the limit is `available_bytes`."""
        return self.tile_header_bytes + self.stream_bytes + self.fallback_bytes + self.blob_bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a pipe graph cannot run: it needs `number` of a resource that is there `limit` times."""

    what: str
    """`readers_of_a_queue`, `ncrisc_readers`, `ncrisc_writers`, `kernel_inputs`, `kernel_outputs`, `extra_streams`,
    `multicast_streams`, `ethernet_streams`, `operand_stream`, `phases`, `l1` or `pipe_graph`."""
    message: str
    place: Place | None = None
    number: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Routed:
    """Cores by chip, row and column, and refusals in the order of pipegen2's checks; no refusals if it accepts the
    graph."""

    cores: tuple[CoreUse, ...]
    refusals: tuple[Refusal, ...]


class RefusedError(Exception):
    """A refusal after which routing cannot continue. `route` catches it."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


ETHERNET_STREAMS = range(9, 12)  # only these, and those that multicast, transfer between chips
ETHERNET_MULTICAST_STREAMS = range(4)
ETHERNET_EXTRA_STREAMS = (*range(12, 32), *range(4, 9))

GATHER_RELAY_TILES = 4  # of each relay, at least, on worker and Ethernet cores
GATHER_TILES = 12  # of all relays of a gather together, at least
ETHERNET_GATHER_TILES = 8  # likewise on Ethernet cores

TILES_A_PHASE = 2048  # of message info (PERF 1.1)
PHASES_AN_ITERATION = 15  # where one source feeds one path
MOST_EPOCH_TILES = 1 << 32  # through a buffer: what has more is not followed
MOST_PHASES = 1 << 16  # of an iteration, likewise: no core has room for the blob of so many
PHASE_BYTES = 64  # of a blob, as pipegen2 estimates
EPOCH_BYTES = 12 * 1024  # of a blob, before its phases
TILE_HEADER_BUFFER = 16 * TILES_A_PHASE  # bytes

NCRISC_READERS = 8  # streams of a core that read from DRAM (PERF 1.1)
NCRISC_WRITERS = 8  # and that write to it
READERS_OF_A_QUEUE = 255  # more are refused
TRACKED_QUEUES = 40  # beyond, the NCRISC keeps track of queues in L1
TRACKING_BYTES = 36  # of each

READ_BYTES = 52 * 1024  # of one read from DRAM, at most, and of a buffer that reads, at least
WRITE_BYTES = 80 * 1024  # of one write, at most
READ_TILES = 64 * 1024 - 1  # of one read from DRAM, at most: 2^16 - 1
MERGED_READ_BYTES = 100 * 1024  # of a buffer that both reads from DRAM and is the kernel's operand, at most


@dataclass(frozen=True, slots=True)
class CoreLimits:
    """The resources of one architecture's worker core."""

    l1_begin: int
    """First byte of data buffers, where no extra blob lies before them."""
    l1_end: int
    blob_bytes: int
    """The bytes of the overlay blob that every core has room for."""
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
        """Return the bytes of L1 for data buffers."""
        return self.l1_end - UNUSED_L1 - self.l1_begin


_ROWS = (*range(1, 6), *range(7, 12))

LIMITS = {
    "grayskull": CoreLimits(
        l1_begin=204 * 1024,
        l1_end=ARCHS["grayskull"].l1_bytes,
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
        l1_end=ARCHS["wormhole_b0"].l1_bytes,
        blob_bytes=64 * 1024 - 128,
        multicast_streams=4,
        operand_streams=(4, 5, *range(10, 40)),
        packer_multicast=True,
        rows=_ROWS,
        columns=(*range(1, 5), *range(6, 10)),
        ethernet_cores=ETHERNET_CORES["wormhole_b0"],
    ),
}


def as_yaml(routed: Routed, name: str, arch: str) -> str:
    """Return, as YAML text, the streams by core with their pipes, the use of each core's resources, and refusals.
    `name` is the pipe graph's. Equal results give equal text. Raises KeyError for an architecture without limits."""
    lines = [f"graph: {_yaml_word(name)}", f"arch: {arch}", "refusals:" if routed.refusals else "refusals: []"]
    for refusal in routed.refusals:
        lines += _refusal_lines(refusal)
    lines.append("cores:" if routed.cores else "cores: []")
    for core in routed.cores:
        lines += _core_lines(core, arch)
    return "\n".join(lines) + "\n"


def _refusal_lines(refusal: Refusal) -> Iterator[str]:
    """Yield the lines of YAML of a refusal."""
    yield f"  - what: {refusal.what}"
    yield f"    message: {_yaml_word(refusal.message)}"
    if refusal.place is not None:
        yield f"    core: {list(refusal.place[:3])}"
    if refusal.number is not None:
        yield f"    number: {refusal.number}"
        yield f"    limit: {refusal.limit}"


def _core_lines(core: CoreUse, arch: str) -> Iterator[str]:
    """Yield the lines of YAML of a core: the use of its resources with their limits, and its streams."""
    limits = LIMITS[arch]
    place = core.place
    yield f"  - {'ethernet' if place.ethernet else 'core'}: [{place.chip}, {place.row}, {place.column}]"
    yield f"    ops: [{', '.join(map(_yaml_word, core.ops))}]"
    if not place.ethernet:
        yield f"    extra_streams: {core.extra_streams}  # of {len(EXTRA_STREAMS)}"
        yield f"    multicast_streams: {core.multicast_streams}  # of {limits.multicast_streams}"
        yield f"    kernel_inputs: {core.kernel_inputs}  # of {KERNEL_STREAMS}"
        yield f"    kernel_outputs: {core.kernel_outputs}  # of {KERNEL_STREAMS}"
    yield f"    l1_bytes: {core.l1_bytes}  # of {core.available_bytes}"
    for key, size in (
        ("stream_bytes", core.stream_bytes),
        ("tile_header_bytes", core.tile_header_bytes),
        ("blob_bytes", core.blob_bytes),
        ("fallback_bytes", core.fallback_bytes),
    ):
        if size:
            yield f"    {key}: {size}"
    yield "    streams:"
    for stream in core.streams:
        yield f"      {stream.id}: {{{', '.join(_stream_fields(stream))}}}"


def _stream_fields(stream: Stream) -> Iterator[str]:
    """Yield `key: value` for the fields of a stream, without those that are 0 or empty."""
    yield f"kind: {stream.kind}"
    if stream.op:
        yield f"op: {_yaml_word(stream.op)}"
    if stream.operand is not None:
        yield f"operand: {stream.operand}"
    yield f"pipes: [{_join_numbers(stream.pipes)}]"
    for key, value in (
        ("buffer_bytes", stream.buffer_bytes),
        ("phases", stream.phases),
        ("reads_queues", stream.reads_queues),
        ("writes_queues", stream.writes_queues),
    ):
        if value:
            yield f"{key}: {value}"


def _join_numbers(numbers: Iterable[int]) -> str:
    """Return numbers with commas between them."""
    return ", ".join(map(str, numbers))


def _yaml_word(text: str) -> str:
    """Return `text` as a YAML scalar: names as they are, other text quoted, characters that cannot be printed
    escaped."""
    plain = text.replace("_", "").replace(".", "").replace("-", "")
    if plain.isalnum() and text[0].isalpha() and text.isascii() and text.lower() not in _NO_TEXT:
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    """Return a character as it stands in a double-quoted YAML string."""
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\U{ord(character):08x}"


_NO_TEXT = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
