"""Values as the host sees them: decoding pushed tensors, reading queues back (FORMATS 3.10, 3.11, 3.4)."""

from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import F32, U32, from_bits, to_bits
from buda_emu.arithmetic.formats.codecs import FLOAT16, FLOAT16_B
from buda_emu.spec.formats import FORMATS, is_raw
from buda_emu.spec.single import INFINITY
from buda_emu.support.errors import HostError

HOST_DTYPES: Final[dict[str, Any]] = {
    "f32": np.float32,
    "i8": np.int8,
    "u8": np.uint8,
    "i32": np.int32,
    "u16": np.uint16,
}
"""numpy type of each host element word of the format table."""

HOST_TENSOR_FORMATS: Final = frozenset(
    ("Float32", "Float16", "Float16_b", "RawUInt32", "RawUInt16", "RawUInt8", "Int32", "Int8", "UInt8", "UInt16")
)
"""Formats that a pushed host tensor may be declared in (NETLIST 4.6, FORMATS 3.10)."""


_INT16 = np.iinfo(np.int16)
_INT32 = np.iinfo(np.int32)


def host_dtype(name: str) -> Any:
    """Return the numpy type of an element that the host reads from a queue of this format (FORMATS 3.11)."""
    return HOST_DTYPES[FORMATS[name].host_element]


def host_read(name: str, values: F32) -> NDArray[Any]:
    """Return the elements that a host reads from a queue of format `name` that holds `values`; same shape, type
    `host_dtype(name)`, but float32 for RawUInt32.

    Integers are rounded half to even and saturate, Int8 to -128..127, with two exceptions: a value that 32 bits do not
    hold (2^31 and more, infinities, NaN) reads as -2^31 would, and UInt8 of 32768 and more reads 0. Formats with an
    8-bit exponent give the upper 16 bits of the single, the others the half of FORMATS 3.4; block formats are not
    quantised here. Raw words give their low 16 bits; RawUInt32 comes back as the words viewed as float32.
    """
    spec = FORMATS[name]
    if name in ("Float32", "RawUInt32"):
        return values
    if spec.kind == "int":
        return _to_host_integers(name, values)
    if spec.kind == "raw":
        return to_bits(values).astype(np.uint16)
    if spec.family == "b":
        return FLOAT16_B.encode(values)
    return FLOAT16.encode(values)


def host_widen(name: str, elements: NDArray[Any]) -> F32 | U32:
    """Return elements that `host_read` gave for the format `name` as float32, those of raw formats as uint32 words.

    Halves of formats with a 5-bit exponent are read as IEEE halves, so exponent 31 gives an infinity or a NaN (FORMATS
    3.4).
    """
    spec = FORMATS[name]
    if is_raw(name):
        if name == "RawUInt32":
            return elements.view(np.uint32)
        return elements.astype(np.uint32)
    if spec.kind == "int" or name == "Float32":
        return elements.astype(np.float32, copy=False)
    if spec.family == "b":
        return FLOAT16_B.decode(elements)
    return ieee_half_to_single(elements)


def host_decode(name: str, array: NDArray[Any]) -> F32:
    """Return the elements of a host tensor declared as format `name` as float32 values, before they are quantised to
    the format (FORMATS 3.10, 3.4); same shape.

    Accepted are float16 or uint16 for Float16; bfloat16 or uint16 for Float16_b; float32 for Float32; any integers for
    the integer formats; and any integers, or float32 that carries the words, for RawUInt*, whose words come back viewed
    as float32. Raises HostError for another format or element type.
    """
    if name not in HOST_TENSOR_FORMATS:
        raise HostError(f"a host tensor cannot be declared as {name}")
    kind = FORMATS[name].kind
    dtype = array.dtype
    if kind == "raw" and dtype.kind in "iu":
        return from_bits(array.astype(np.uint32))
    if kind == "int" and dtype.kind in "iu":
        return array.astype(np.float32)
    if name in ("Float32", "RawUInt32", "RawUInt16", "RawUInt8") and dtype == np.float32:
        return array
    if name == "Float16" and dtype.name in ("float16", "uint16"):
        return ieee_half_to_single(_half_words(array))
    if name == "Float16_b" and dtype.name in ("bfloat16", "uint16"):
        return FLOAT16_B.decode(_half_words(array))
    raise HostError(f"a host tensor declared as {name} cannot have elements of type {dtype}")


def ieee_half_to_single(halves: NDArray[Any]) -> F32:
    """Return the float32 values of uint16 patterns read as IEEE halves: denormals normalised, exponent 31 an infinity
    or a NaN with its payload."""
    return _half_table()[halves]


@cache
def _half_table() -> F32:
    """Return the read-only table float32[65536] of the value of every IEEE half, by its bits; computed by the text of
    the standard and not by a conversion of the machine."""
    wide = np.arange(1 << 16, dtype=np.uint32)
    sign = (wide & np.uint32(0x8000)) << np.uint32(16)
    exponent = (wide >> np.uint32(10)) & np.uint32(0x1F)
    fraction = wide & np.uint32(0x3FF)
    normal = (exponent + np.uint32(112)) << np.uint32(23) | fraction << np.uint32(13)
    special = np.uint32(INFINITY) | fraction << np.uint32(13)
    denormal = to_bits(fraction.astype(np.float32) * np.float32(2.0**-24))
    table = from_bits(sign | np.where(exponent == 0, denormal, np.where(exponent == 31, special, normal)))
    table.flags.writeable = False
    return table


def _half_words(array: NDArray[Any]) -> NDArray[np.uint16]:
    """Return the bit patterns uint16 of an array of 16-bit elements; same shape."""
    return np.ascontiguousarray(array).reshape(array.shape).view(np.uint16)


def _to_host_integers(name: str, values: F32) -> NDArray[Any]:
    """Return values as integers of the host's type for the format `name`, converted as by vector instructions of
    x86-64: to 32 bits, then packed narrower, unsigned bytes by way of 16 bits that are taken as signed (FORMATS
    3.11)."""
    limits = np.iinfo(host_dtype(name))
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wide = np.rint(values.astype(np.float64))
    wide = np.where((wide >= _INT32.min) & (wide <= _INT32.max), wide, _INT32.min)
    if name == "UInt8":
        wide = np.where(wide > _INT16.max, 0, wide)
    return np.clip(wide, limits.min, limits.max).astype(limits.dtype)
