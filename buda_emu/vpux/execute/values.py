"""Elements: between bytes in memory, logical arrays, and the numbers that kernels compute with (VPUX 5)."""

import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.vpux.elements import Element
from buda_emu.vpux.execute.memory import Memory, Watch, regions
from buda_emu.vpux.layout import DimsOrder
from buda_emu.vpux.model import Type
from buda_emu.vpux.program import Buffer

Array = NDArray[Any]

_CHUNK: Final = 1 << 20  # numbers that are drawn at a time


def rounded(values: Array, target: Element) -> Array:
    """To a type, once: floats to nearest even; floats to integers truncated and saturated, NaN 0; integers saturate."""
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
            whole = np.trunc(np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
        low, high = whole <= float(limits.min), whole >= float(limits.max)
        inside = np.where(low | high, 0.0, whole).astype(kind)
        return np.where(low, limits.min, np.where(high, limits.max, inside)).astype(kind)
    if values.dtype.kind == "u":
        most = min(int(limits.max), int(np.iinfo(values.dtype).max))
        return np.minimum(values, values.dtype.type(most)).astype(kind)
    low, high = values < int(limits.min), values > int(limits.max)
    return np.where(low, limits.min, np.where(high, limits.max, values)).astype(kind)


def bf16_bits(values: Array) -> NDArray[np.uint16]:
    """The upper half of a float32, rounded to nearest even; NaN stays NaN."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    kept = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), (bits >> 16 | 0x40).astype(np.uint16), kept)


def bf16_values(bits: Array) -> NDArray[np.float32]:
    """What 16 bits stand for."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_logical(data: NDArray[np.uint8], of: Type) -> Array:
    """Flat bytes in memory order as a logical array. Elements narrower than a byte stay flat bytes."""
    found = of.element
    assert found is not None
    assert of.order is not None
    if of.bits % 8:
        return data
    typed = data.view(found.numpy).reshape(of.memory_shape)
    return typed.transpose([of.order.perm.index(dim) for dim in range(of.order.rank)])


def to_memory(values: Array, order: DimsOrder) -> NDArray[np.uint8]:
    """A logical array as flat bytes in memory order."""
    return np.frombuffer(np.ascontiguousarray(values.transpose(order.perm)).tobytes(), np.uint8)


def packed(values: Array, of: Type) -> NDArray[np.uint8]:
    """Integers of a type narrower than a byte as its compact bytes: memory order, lowest bits first."""
    assert of.order is not None
    flat = values.transpose(of.order.perm).reshape(-1, 1).astype(np.int64)
    return np.packbits((flat >> np.arange(of.bits) & 1).astype(np.uint8).reshape(-1), bitorder="little")


def load(memory: Memory | Watch, buffer: Buffer) -> Array:
    """A buffer's elements as a logical array, from the first of its spaces."""
    return to_logical(memory.read(regions(buffer)[0]), buffer.type)


def store(memory: Memory | Watch, buffer: Buffer, values: Array) -> None:
    """A logical array of the buffer's own type into all of its spaces."""
    of = buffer.type
    assert of.order is not None
    data = np.frombuffer(values.tobytes(), np.uint8) if of.bits % 8 else to_memory(values, of.order)
    for region in regions(buffer):
        memory.write(region, data)


def stimulus(function: str, index: int, of: Type) -> Array:
    """What argument `index` of a function holds where nothing is given: PCG64 seeded with crc32("function:index").

    Floats are multiples of 1/128 from -4 to 4, unsigned integers 0 to 15, signed ones -8 to 7.
    """
    found = of.element
    assert found is not None
    random = np.random.Generator(np.random.PCG64(zlib.crc32(f"{function}:{index}".encode())))
    kind = np.dtype(found.numpy)
    shape = (of.compact_bytes,) if of.bits % 8 else of.shape or ()
    low, high = (-512, 513) if kind.kind == "f" else (0, 16) if kind.kind == "u" else (-8, 8)
    values: Array = np.empty(shape, kind)
    flat = values.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        drawn = random.integers(low, high, min(_CHUNK, flat.size - start))
        flat[start : start + _CHUNK] = drawn / 128.0 if kind.kind == "f" else drawn
    return values
