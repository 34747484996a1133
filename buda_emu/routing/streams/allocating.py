"""Ids and L1 for streams, core by core, and what a core has not got."""

from collections import Counter
from collections.abc import Iterable, Iterator

from buda_emu.routing.streams.draft import Draft
from buda_emu.routing.streams.limits import (
    ETHERNET_EXTRA_STREAMS,
    ETHERNET_L1_BYTES,
    ETHERNET_MULTICAST_STREAMS,
    ETHERNET_STREAMS,
    EXTRA_STREAMS,
    KERNEL_INPUTS,
    KERNEL_OUTPUTS,
    TILE_HEADER_BUFFER,
    TRACKED_QUEUES,
    TRACKING_BYTES,
    CoreLimits,
)
from buda_emu.routing.streams.model import CoreUse, Place, Refusal, Stream

GATHERS = {"gather", "gather_multicast", "multicast", "packer_multicast"}


class Core:
    """One core's streams while they get ids."""

    def __init__(self, place: Place, limits: CoreLimits) -> None:
        self.place = place
        self.limits = limits
        self.streams: list[Draft] = []
        self.inputs = self.outputs = 0
        self.blob = 0
        self.ops: dict[str, None] = {}  # whose kernels run here
        self.extra = self.multicasts = self.transfers = 0
        self._ids = set[int]()
        self.twice: list[Draft] = []

    def need_blob(self, size: int) -> None:
        """Make room for a blob of `size` bytes, in whole blocks of 4 kB beyond what every core has."""
        beyond = size - self.limits.blob_bytes
        if beyond > 0 and not self.blob:
            self.blob = beyond & ~0xFFF

    def number(self, stream: Draft) -> None:
        """Give `stream`, and the others of its packer's buffer, their ids."""
        if stream.kind == "packer" and stream.forks:
            for place, fork in enumerate(stream.forks):
                if fork.id is None and not fork.deleted:
                    self._number(fork, first=place == 0)
        elif stream.id is None:
            self._number(stream)

    def _number(self, stream: Draft, first: bool = True) -> None:
        kind = stream.kind
        if kind == "packer_multicast" and not self.place.ethernet:
            self.multicasts += 1
            self._take(stream, self.limits.multicast_streams - 1 - ((stream.operand or 16) - 16))
        elif kind in GATHERS:
            self.multicasts += 1
            self._take(stream, self._free(range(self._multicast_limit)))
        elif stream.ethernet and not stream.firmware and kind in ("relay", "unpacker"):
            self.transfers += 1
            self._take(stream, self._free((*ETHERNET_STREAMS, *ETHERNET_MULTICAST_STREAMS)))
        elif stream.operand is not None and (first or kind == "intermediate") and not self.place.ethernet:
            self._take(stream, self.limits.operand_streams[stream.operand])
        else:
            self.extra += 1
            self._take(stream, self._free(ETHERNET_EXTRA_STREAMS if self.place.ethernet else EXTRA_STREAMS))

    @property
    def _multicast_limit(self) -> int:
        return len(ETHERNET_MULTICAST_STREAMS) if self.place.ethernet else self.limits.multicast_streams

    def _free(self, ids: Iterable[int]) -> int:
        return next((id for id in ids if id not in self._ids), -1)

    def _take(self, stream: Draft, id: int) -> None:
        if id >= 0 and id in self._ids:
            self.twice.append(stream)
        self._ids.add(id)
        stream.id = id

    def short_of(self) -> Iterator[Refusal]:
        """Kinds of streams of which there are too few."""
        for stream in self.twice:
            message = f"{self.place}: two streams serve operand {stream.operand}"
            yield Refusal("operand_stream", message, self.place, 2, 1)
        ethernet = self.place.ethernet
        transfers = len(ETHERNET_STREAMS) + len(ETHERNET_MULTICAST_STREAMS) if ethernet else 0
        extra = len(ETHERNET_EXTRA_STREAMS if ethernet else EXTRA_STREAMS)
        gathers = "streams that gather or multicast"
        yield from self._beyond("multicast_streams", gathers, self.multicasts, self._multicast_limit)
        yield from self._beyond(
            "ethernet_streams",
            "streams that transfer between chips",
            self.transfers + self.multicasts if self.transfers else 0,
            transfers,
        )
        yield from self._beyond("extra_streams", "extra streams", self.extra, extra)

    def short_of_kernel_operands(self) -> Iterator[Refusal]:
        """Kernel inputs and outputs of which there are too many."""
        yield from self._beyond("kernel_inputs", "kernel inputs", self.inputs, KERNEL_INPUTS)
        yield from self._beyond("kernel_outputs", "kernel outputs", self.outputs, KERNEL_OUTPUTS)

    def _beyond(self, what: str, words: str, number: int, limit: int) -> Iterator[Refusal]:
        if number > limit:
            ops = f" ({', '.join(self.ops)})" if self.ops else ""
            message = f"{self.place}{ops} needs {number} {words}, and has {limit}"
            yield Refusal(what, message, self.place, number, limit)

    def use(self, on_chip: int) -> CoreUse:
        """What the core holds; worker cores of the chip move tiles of `on_chip` distinct sizes."""
        ethernet = self.place.ethernet
        sizes = len({stream.msg_size for stream in self.streams}) if ethernet else on_chip
        tracked = sum(stream.tracked for stream in self.streams)
        return CoreUse(
            place=self.place,
            ops=tuple(self.ops),
            streams=tuple(sorted(map(_stream, self.streams), key=lambda stream: stream.id)),
            extra_streams=self.extra,
            multicast_streams=self.multicasts,
            kernel_inputs=self.inputs,
            kernel_outputs=self.outputs,
            tile_header_bytes=(sizes - 1) * TILE_HEADER_BUFFER,
            stream_bytes=sum(stream.given for stream in self.streams),
            fallback_bytes=max(0, tracked - TRACKED_QUEUES) * TRACKING_BYTES,
            blob_bytes=self.blob,
            available_bytes=ETHERNET_L1_BYTES if ethernet else self.limits.l1_bytes,
        )


def _stream(stream: Draft) -> Stream:
    return Stream(
        -1 if stream.id is None else stream.id,
        stream.kind,
        stream.operand,
        stream.op,
        tuple(stream.pipes),
        stream.given,
        stream.phases,
        stream.reads,
        stream.writes,
    )


def give_l1(streams: list[Draft]) -> None:
    """Note in `given` what each stream's buffer takes: forks have one in common, sharers one, padding one a core."""
    _find_sharers(streams)
    padding = set[tuple[object, ...]]()
    for stream in streams:
        if stream.placed or stream.kind in ("gather", "gather_multicast"):
            continue
        key = None if stream.padding is None else (stream.place, stream.bytes, *stream.padding)
        if key is None or key not in padding:
            stream.given = stream.bytes
        if key is not None:
            padding.add(key)
        _place(stream)
        if stream.shares is not None:
            _place(stream.shares)


def _place(stream: Draft) -> None:
    for one in stream.forks if stream.forks is not None and stream.kind != "intermediate" else (stream,):
        one.placed = True


def _find_sharers(streams: list[Draft]) -> None:
    by_buffer = {stream.buf_id: stream for stream in reversed(streams) if stream.buf_id != -1}
    for stream in streams:
        other = by_buffer.get(stream.shared_id) if stream.shared_id != -1 else None
        if other is None or "intermediate" in (stream.kind, other.kind) or stream.shares is not None:
            continue
        stream.shares = other
        if other.shares is None:
            other.shares = stream


def tile_sizes(streams: Iterable[Draft]) -> Counter[int]:
    """How many distinct sizes of tiles the worker cores of each chip move."""
    sizes = {(stream.place.chip, stream.msg_size) for stream in streams if not stream.place.ethernet}
    return Counter(chip for chip, _ in sizes)
