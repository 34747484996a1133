"""Byte-addressed memory spaces, zero at first, the regions in them, and the conversion of bytes to arrays (VPUX 4)."""

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.vpux.elements import Element
from buda_emu.foreign.vpux.layout import DimsOrder
from buda_emu.foreign.vpux.model import Type
from buda_emu.foreign.vpux.program import Buffer
from buda_emu.performance.timeline import Access, Hazard
from buda_emu.support.errors import ProgramError

Bytes = NDArray[np.uint8]

MOST_BYTES: Final = 768 << 20
"""The memory that a function may hold unless a run is given another limit: chosen so that a forged size cannot take all
memory of a small machine."""


MOST_ADDRESS: Final = 1 << 48  # no chip has as much memory; sums of addresses fit int64
_DRAWN_RANGES: Final[Mapping[str, tuple[int, int]]] = {"f": (-512, 513), "u": (0, 16), "i": (-8, 8)}
"""The least integer of the default content, and the one after the largest, by numpy's letter for a kind of type."""


@dataclass(frozen=True, slots=True)
class Region:
    """Elements in one space: an address, a shape and strides in bytes in memory order, and the bytes of an element."""

    space: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: int

    @property
    def size(self) -> int:
        """Bytes of the elements, without gaps."""
        product = self.element
        for size in self.shape:
            product *= size
        return product

    @property
    def extent(self) -> tuple[int, int]:
        """The first byte, and the byte after the last one."""
        if not self.size:
            return self.address, self.address
        steps = [(size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True)]
        low = self.address + sum(min(step, 0) for step in steps)
        return low, self.address + sum(max(step, 0) for step in steps) + self.element

    def stretches(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the region's bytes as stretches without gap: where each starts and where it stops."""
        run = self.element
        outer = len(self.shape)
        while outer and (self.strides[outer - 1] == run or self.shape[outer - 1] == 1):
            run *= self.shape[outer - 1]
            outer -= 1
        if not self.size:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        starts = np.array([self.address], np.int64)
        for size, stride in zip(self.shape[:outer], self.strides[:outer], strict=True):
            if size == 1:
                continue
            starts = (starts[:, None] + np.arange(size, dtype=np.int64)[None] * stride).reshape(-1)
        return starts, starts + run


def regions_of(buffer: Buffer) -> tuple[Region, ...]:
    """Return the region of a buffer in each of its spaces. Elements narrower than a byte are one row of compact bytes.

    Raises ProgramError for a type without a known layout.
    """
    of = buffer.type
    if not of.is_laid_out:
        raise ProgramError(f"{buffer.name or 'a buffer'} of type {of} has no layout in memory")
    if of.bits % 8:
        return tuple(
            Region(space=space, address=buffer.address, shape=(of.compact_bytes,), strides=(1,), element=1)
            for space in buffer.spaces
        )
    strides = tuple(stride // 8 for stride in of.memory_strides)
    return tuple(
        Region(space=space, address=buffer.address, shape=of.memory_shape, strides=strides, element=of.bits // 8)
        for space in buffer.spaces
    )


class Memory:
    """The bytes of all spaces that a function touches, with a flag for each that was written."""

    def __init__(self, extents: Iterable[tuple[str, int, int]], limit: int = MOST_BYTES) -> None:
        """`extents`: space, first byte, and the one after the last, of everything that will be touched.

        Raises ProgramError for an address below 0 and where all of it is more bytes than the limit.
        """
        self._spaces: dict[str, list[tuple[int, int]]] = {}
        for space, low, high in extents:
            if low < 0:
                raise ProgramError(f"an address in {space} is {low}: below the first byte", kind="limit")
            if high > MOST_ADDRESS:
                raise ProgramError(f"an address in {space} is {high}: beyond any memory", kind="limit")
            if high > low:
                self._spaces.setdefault(space, []).append((low, high))
        total = 0
        self._parts: dict[str, list[tuple[int, Bytes, Bytes]]] = {}
        for space, items in self._spaces.items():
            joined = _merge_stretches(items)
            total += sum(high - low for low, high in joined)
            if total > limit:
                raise ProgramError(f"the function holds more than {limit >> 20} MiB of memory", kind="limit")
            self._parts[space] = [
                (low, np.zeros(high - low, np.uint8), np.zeros(high - low, np.uint8)) for low, high in joined
            ]

    def view(self, region: Region) -> Bytes:
        """Return the region's bytes as a writable view of memory, with shape [memory shape, bytes of an element].
        Raises ProgramError for bytes that do not belong to the function."""
        return self._view(region, 1)

    def written_flags(self, region: Region) -> Bytes:
        """Return, as a writable view, 1 for each byte of the region that was written, else 0; the shape is that of
        `view`. Raises ProgramError for bytes that do not belong to the function."""
        return self._view(region, 2)

    def _view(self, region: Region, part: int) -> Bytes:
        """Return a view of a region: its bytes for `part` 1, the flags of written bytes for 2. Raises ProgramError
        for bytes that do not belong to the function."""
        shape = (*region.shape, region.element)
        if not region.size:
            return np.zeros(shape, np.uint8)
        low, high = region.extent
        for start, values, written in self._parts.get(region.space, ()):
            if start <= low and high <= start + len(values):
                return region_in(region, values if part == 1 else written, start)
        raise ProgramError(f"bytes {low} to {high - 1} of {region.space} do not belong to the function", kind="limit")

    def read(self, region: Region) -> Bytes:
        """Return a copy of the region's bytes, flat, in memory order. Raises ProgramError for bytes that do not belong
        to the function."""
        if region.size:
            return self.view(region).reshape(-1).copy()
        return np.zeros(0, np.uint8)

    def write(self, region: Region, data: Bytes) -> None:
        """Store bytes, in memory order, to a region and mark them as written. Raises ProgramError for bytes that do not
        belong to the function."""
        view = self.view(region)
        view[...] = data.reshape(view.shape)
        self.written_flags(region)[...] = 1


def _merge_stretches(items: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges of bytes (first, one past the last) in order, with those that touch or overlap merged: each gets an
    array of its own."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(items):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


@dataclass(frozen=True, slots=True)
class Event:
    """An access: a task read or wrote a region. `digest` is that of the bytes, where digests were asked for."""

    task: int
    region: Region
    writes: bool
    digest: bytes = b""


class Watch:
    """Records the accesses of tasks, and reads of bytes that nothing wrote; `task` is the one at work.

    With `digests` the bytes of each access are recorded as a digest.
    """

    def __init__(self, memory: Memory, *, digests: bool = False) -> None:
        self.memory = memory
        self.task = -1
        self.events: list[Event] = []
        self.unwritten: list[Hazard] = []
        self._digests = digests

    def extents(self) -> Iterator[Access]:
        """Yield every access as one stretch, from its first to its last byte."""
        for event in self.events:
            low, high = event.region.extent
            yield Access(task=event.task, space=event.region.space, address=low, size=high - low, writes=event.writes)

    def accesses(self, tasks: Collection[int]) -> Iterator[Access]:
        """Yield every stretch of bytes that one of these tasks touched."""
        for event in self.events:
            if event.task not in tasks:
                continue
            starts, stops = event.region.stretches()
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
                yield Access(
                    task=event.task, space=event.region.space, address=start, size=stop - start, writes=event.writes
                )

    def read(self, region: Region) -> Bytes:
        """Return a copy of the region's bytes, flat, in memory order; record the access, and the first read of each
        task of bytes that nothing wrote. Raises ProgramError for bytes that do not belong to the function."""
        self._note_unwritten(region)
        data = self.memory.read(region)
        self._note(region, data, writes=False)
        return data

    def write(self, region: Region, data: Bytes) -> None:
        """Store bytes, in memory order, to a region, and record the access. Raises ProgramError for bytes that do not
        belong to the function."""
        self._note(region, data, writes=True)
        self.memory.write(region, data)

    def count_unwritten(self, region: Region) -> int:
        """Return how many bytes of a region no task wrote; what the run began with does not count."""
        if not region.size:
            return 0
        low, high = region.extent
        changes = np.zeros(high - low + 1, np.int64)
        for event in self.events:
            if event.writes and event.region.space == region.space:
                starts, stops = (np.clip(ends, low, high) - low for ends in event.region.stretches())
                np.add.at(changes, starts, 1)
                np.add.at(changes, stops, -1)
        is_written = (np.cumsum(changes[:-1]) > 0).astype(np.uint8)
        missing = np.zeros(high - low, np.uint8)  # elements may overlap: each byte counts once
        region_in(region, missing, low)[...] = region_in(region, is_written, low) == 0
        return int(np.count_nonzero(missing))

    def _note(self, region: Region, data: Bytes, *, writes: bool) -> None:
        """Record an access of the task at work, with the digest of `data` where digests are asked for."""
        if self.task >= 0 and region.size:
            if self._digests:
                plain = np.ascontiguousarray(data).tobytes()
            else:
                plain = b""
            if self._digests:
                digest = blake2b(plain, digest_size=16).digest()
            else:
                digest = b""
            self.events.append(Event(self.task, region, writes, digest))

    def _note_unwritten(self, region: Region) -> None:
        """Record the read of a region if nothing wrote some of its bytes; for each task only its first such read."""
        if self.task < 0 or (self.unwritten and self.unwritten[-1].second == self.task) or not region.size:
            return
        written = self.memory.written_flags(region)
        if written.all():
            return
        low, high = region.extent
        missing = np.zeros(high - low, np.uint8)  # elements may overlap: each byte counts once
        region_in(region, missing, low)[...] = written == 0
        wrong = int(np.count_nonzero(missing))
        place = low + int(missing.argmax())
        self.unwritten.append(
            Hazard(kind="unwritten", first=-1, second=self.task, space=region.space, address=place, size=wrong)
        )


def region_in(region: Region, data: Bytes, low: int) -> Bytes:
    """Return the region's bytes as a view of an array `data` whose first byte has the address `low`."""
    strided: Any = np.lib.stride_tricks.as_strided
    # the stride of a single element may be any number
    strides = [0 if size == 1 else stride for size, stride in zip(region.shape, region.strides, strict=True)]
    return strided(data[region.address - low :], (*region.shape, region.element), (*strides, 1))


Array = NDArray[Any]

_CHUNK: Final = 1 << 20  # numbers that are drawn at a time


def round_to(values: Array, target: Element) -> Array:
    """Return values in a type, with one rounding: floats to nearest even; floats to integers truncated and saturated,
    NaN to 0; integers saturate."""
    values = np.asarray(values)
    if values.dtype.kind == "b":
        values = values.astype(np.int64)
    if target.kind == "float":
        with np.errstate(all="ignore"):
            return values.astype(target.numpy)
    kind: Any = np.dtype(target.numpy)
    limits = np.iinfo(kind)
    if target.kind == "bool":
        return (values != 0).astype(kind)
    if values.dtype.kind == "f":
        with np.errstate(all="ignore"):
            truncated = np.trunc(np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
        low = truncated <= float(limits.min)
        high = truncated >= float(limits.max)
        inside = np.where(low | high, 0.0, truncated).astype(kind)
        return np.where(low, limits.min, np.where(high, limits.max, inside)).astype(kind)
    if values.dtype.kind == "u":
        limit = min(int(limits.max), int(np.iinfo(values.dtype).max))
        return np.minimum(values, values.dtype.type(limit)).astype(kind)
    low = values < int(limits.min)
    high = values > int(limits.max)
    return np.where(low, limits.min, np.where(high, limits.max, values)).astype(kind)


def bf16_bits(values: Array) -> NDArray[np.uint16]:
    """Return the bits of bf16: the upper half of a float32, rounded to nearest even; NaN stays NaN."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    upper = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), (bits >> 16 | 0x40).astype(np.uint16), upper)


def bf16_values(bits: Array) -> NDArray[np.float32]:
    """Return the floats that bf16 bits stand for."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_logical(data: NDArray[np.uint8], of: Type) -> Array:
    """Return flat bytes in memory order as a logical array. Elements narrower than a byte stay flat bytes."""
    element_type = of.element
    assert element_type is not None
    assert of.order is not None
    if of.bits % 8:
        return data
    typed = data.view(element_type.numpy).reshape(of.memory_shape)
    return typed.transpose([of.order.perm.index(dim) for dim in range(of.order.rank)])


def to_memory(values: Array, order: DimsOrder) -> NDArray[np.uint8]:
    """Return a logical array as flat bytes in memory order."""
    return np.frombuffer(np.ascontiguousarray(values.transpose(order.perm)).tobytes(), np.uint8)


def pack_narrow(values: Array, of: Type) -> NDArray[np.uint8]:
    """Return integers of a type narrower than a byte as its compact bytes: memory order, lowest bits first."""
    assert of.order is not None
    flat = values.transpose(of.order.perm).reshape(-1, 1).astype(np.int64)
    return np.packbits((flat >> np.arange(of.bits) & 1).astype(np.uint8).reshape(-1), bitorder="little")


def load_values(memory: Memory | Watch, buffer: Buffer) -> Array:
    """Return a buffer's elements as a logical array, read from the first of its spaces. Raises ProgramError for a
    buffer without a known layout."""
    return to_logical(memory.read(regions_of(buffer)[0]), buffer.type)


def store_values(memory: Memory | Watch, buffer: Buffer, values: Array) -> None:
    """Write a logical array of the buffer's own type into all of its spaces. Raises ProgramError for a buffer without a
    known layout."""
    of = buffer.type
    assert of.order is not None
    if of.bits % 8:
        data = np.frombuffer(values.tobytes(), np.uint8)
    else:
        data = to_memory(values, of.order)
    for region in regions_of(buffer):
        memory.write(region, data)


def make_stimulus(function: str, index: int, of: Type) -> Array:
    """Return the default content of argument `index` of a function: PCG64 seeded with crc32("function:index").

    Floats are multiples of 1/128 from -4 to 4, unsigned integers 0 to 15, signed ones -8 to 7.
    """
    element_type = of.element
    assert element_type is not None
    random = np.random.Generator(np.random.PCG64(zlib.crc32(f"{function}:{index}".encode())))
    kind = np.dtype(element_type.numpy)
    if of.bits % 8:
        shape = (of.compact_bytes,)
    else:
        shape = of.shape or ()
    low, high = _DRAWN_RANGES[kind.kind]
    values: Array = np.empty(shape, kind)
    flat = values.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        drawn = random.integers(low, high, min(_CHUNK, flat.size - start))
        if kind.kind == "f":
            flat[start : start + _CHUNK] = drawn / 128.0
        else:
            flat[start : start + _CHUNK] = drawn
    return values
