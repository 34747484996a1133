"""Execute what is not a kernel: the ops of functions without tasks that the design documents use (VPUX 5), data
movements, and the decoding of constants."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.vpux.elements import Element
from buda_emu.foreign.vpux.execute.memory import (
    MOST_BYTES,
    Region,
    Watch,
    bf16_bits,
    bf16_values,
    load_values,
    pack_narrow,
    regions_of,
    round_to,
    store_values,
)
from buda_emu.foreign.vpux.kernels.declare import fail_op, logical_dim
from buda_emu.foreign.vpux.kernels.normalise import softmax_along
from buda_emu.foreign.vpux.model import AffineMap, Dense, Op, Opaque, Type
from buda_emu.foreign.vpux.program import Buffer, Program, read_uses, written_uses
from buda_emu.support.errors import ProgramError

Array = NDArray[Any]


def compute(watch: Watch, program: Program, op: Op) -> None:
    """Execute one op of a function without tasks on logical arrays. Raises ProgramError (X046) for operands that do not
    fit."""
    sources = [program.buffer(use) for use in read_uses(op)]
    targets = [program.buffer(use) for use in written_uses(op)]
    if not targets and op.results:
        targets = [program.buffers.get(op.results[0])]
    source, target = (items[0] if items else None for items in (sources, targets))
    if source is None or target is None:
        fail_op(f"{op.name} needs an input and an output")
    if source.type.shape != target.type.shape:
        fail_op(f"{op.name} turns shape {list(source.type.shape or ())} into {list(target.type.shape or ())}")
    with np.errstate(all="ignore"):
        result = _LAYERS[op.name.rpartition(".")[2]](op, load_values(watch, source))
    element_type = target.type.element
    assert element_type is not None
    store_values(watch, target, round_to(result, element_type))


def _require_integer(op: Op, name: str, default: int | None = None) -> int:
    """Return an integer attribute, or the default where it is absent. Raises ProgramError (X046) where it is absent
    without default or no integer."""
    number = op.attributes.get(name, default)
    if number is None:
        fail_op(f"{op.name} has no {name}")
    if type(number) is not int:  # `true` is not a number either
        fail_op(f"{op.name}: {name} is not an integer")
    return number


def _softmax(op: Op, values: Array) -> Array:
    """Return the softmax over the logical axis `axisInd`, whose last `padSize` elements become 0."""
    # as lowered: the logical axis, from either side, and padSize as the kernel's pad (VPUX 5; npu_compiler, softmax)
    dim = logical_dim(_require_integer(op, "axisInd"), values.ndim, f"{op.name}: axisInd")
    return softmax_along(values.astype(np.float64), dim, _require_integer(op, "padSize", 0))


def _relu(_: Op, values: Array) -> Array:
    """Return the maximum of each element and 0."""
    return np.maximum(values, np.zeros((), values.dtype))


def _unchanged(_: Op, values: Array) -> Array:
    """Return the values unchanged, for ops in which only the buffers' layouts differ."""
    return values


_LAYERS: Final[Mapping[str, Callable[[Op, Array], Array]]] = MappingProxyType(
    {"SoftMax": _softmax, "ReLU": _relu, "Reorder": _unchanged, "copy": _unchanged}
)


Bytes = NDArray[np.uint8]


def move(watch: Watch, program: Program, op: Op) -> None:
    """Execute a data movement. Raises ProgramError for sizes that differ."""
    source, target = operands(program, op)
    if source is None or target is None or op.name == "VPUIP.SyncDMA":
        return
    if op.name not in _PLAIN and isinstance(op.attributes.get("dma_descriptor"), Opaque):
        read, written = descriptor_regions(op, source, target)
        if read:
            data = _read_planes(watch, read)
            for space in target.spaces:  # a broadcast buffer lies in several
                _write_planes(watch, [replace(part, space=space) for part in written], data)
    else:
        _MOVES[op.name](watch, op, source, target)


def operands(program: Program, op: Op) -> tuple[Buffer | None, Buffer | None]:
    """Return the buffers that a data movement reads and writes; None for a missing one."""
    buffers: list[Buffer | None] = []
    for clause in ("inputs", "outputs"):
        uses = op.clause(clause)
        buffers.append(program.buffer(uses[0]) if uses else None)
    return buffers[0], buffers[1]


def _copy(watch: Watch, op: Op, source: Buffer, target: Buffer) -> None:
    """Copy the elements of one buffer to another in memory order. Raises ProgramError (X024) for sizes that differ."""
    data = watch.read(regions_of(source)[0])
    for region in regions_of(target):
        if region.size != len(data):
            raise ProgramError(f"{op.name} reads {len(data)} bytes and writes {region.size}", kind="op", rule="X024")
        watch.write(region, data)


def _convert(watch: Watch, op: Op, source: Buffer, target: Buffer) -> None:
    """Convert the elements of one buffer to the type of another of the same shape. Raises ProgramError (X024) for
    another shape."""
    values = load_values(watch, source)
    element_type = target.type.element
    assert element_type is not None
    if source.type.shape != target.type.shape:
        raise ProgramError(f"{op.name} changes the shape", kind="op", rule="X024")
    if element_type.name == "bf16":
        result: Any = bf16_bits(values)
    else:
        result = round_to(values, element_type)
    store_values(watch, target, result)


def _permute(watch: Watch, op: Op, source: Buffer, target: Buffer) -> None:
    """Copy the elements of one buffer to another with its memory dimensions permuted by `mem_perm`. Raises
    ProgramError for a map that does not permute them (X046) and for sizes that differ (X024)."""
    mem_perm = op.attributes.get("mem_perm")
    if isinstance(mem_perm, AffineMap):
        order = mem_perm.order
    else:
        order = None
    shape = source.type.memory_shape
    if order is None or order.rank != len(shape) or source.type.bits % 8:
        raise ProgramError(
            f"{op.name}: mem_perm does not permute the {len(shape)} dimensions of its input", kind="op", rule="X046"
        )
    data = watch.read(regions_of(source)[0]).reshape(*shape, -1)
    moved = np.ascontiguousarray(data.transpose(*order.perm, len(shape))).reshape(-1)
    for region in regions_of(target):
        if region.size != len(moved):
            raise ProgramError(f"{op.name} reads {len(moved)} bytes and writes {region.size}", kind="op", rule="X024")
        watch.write(region, moved)


_PLAIN: Final = ("VPUIP.NNDMA", "VPUIP.DMA", "VPUIP.Copy")
_MOVES: Final[Mapping[str, Callable[[Watch, Op, Buffer, Buffer], None]]] = MappingProxyType(
    {**dict.fromkeys(_PLAIN, _copy), "VPUIP.ConvertDMA": _convert, "VPUIP.PermuteDMA": _permute}
)


# ------------------------------------------------------------------------------------------------------ descriptors
def descriptor_regions(op: Op, source: Buffer, target: Buffer) -> tuple[list[Region], list[Region]]:
    """Return the regions that a descriptor reads and writes: planes of whole rows, then planes of the remainder of
    a row. Both are empty for a descriptor that moves nothing.

    Raises ProgramError for fields that are not integers, and for numbers that no memory holds.
    """
    planes = _descriptor_field(op, "numPlanes")
    length = _descriptor_field(op, "len")
    if planes == 0 or length == 0:
        return [], []
    if planes < 0 or length < 0 or planes * length > MOST_BYTES:
        raise ProgramError(f"{op.name}: a descriptor of {planes} planes of {length} bytes", kind="limit")
    return _side_regions(op, "src", source, planes, length), _side_regions(op, "dst", target, planes, length)


def _descriptor_field(op: Op, name: str) -> int:
    """Return a field of an op's descriptor, 0 where it is absent. Raises ProgramError where it is no integer."""
    descriptor = op.attributes.get("dma_descriptor")
    assert isinstance(descriptor, Opaque)
    field_value = descriptor.fields.get(name, 0)
    if type(field_value) is not int:  # `true` is not a number either
        raise ProgramError(f"{op.name}: {name} of its descriptor is not an integer", kind="op")
    return field_value


def _side_regions(op: Op, side: str, buffer: Buffer, planes: int, length: int) -> list[Region]:
    """Return the regions of one side, "src" or "dst", of a descriptor that moves `length` bytes in each plane."""
    width, stride, plane = (_descriptor_field(op, side + name) for name in ("Width", "Stride", "PlaneStride"))
    if width < 0 or max(abs(stride), abs(plane)) > MOST_BYTES:
        raise ProgramError(f"{op.name}: {side} rows of {width} bytes, {stride} apart", kind="limit")
    rows = length // width if width else 0
    rest = length - rows * width
    space = buffer.spaces[0]
    strides = (plane, stride, 1)
    parts: list[Region] = []
    if rows:
        shape = (planes, rows, width)
        parts.append(Region(space=space, address=buffer.address, shape=shape, strides=strides, element=1))
    if rest:
        address = buffer.address + rows * stride
        parts.append(Region(space=space, address=address, shape=(planes, 1, rest), strides=strides, element=1))
    return parts


def _read_planes(watch: Watch, parts: Sequence[Region]) -> Bytes:
    """Return the bytes of a descriptor's regions, one row for each plane."""
    return np.concatenate([watch.read(part).reshape(part.shape[0], -1) for part in parts], axis=1)


def _write_planes(watch: Watch, parts: Sequence[Region], data: Bytes) -> None:
    """Write bytes, one row for each plane, to a descriptor's regions."""
    at = 0
    for part in parts:
        length = part.shape[1] * part.shape[2]
        watch.write(part, data[:, at : at + length])
        at += length


_WORDS: Final = {"true": "1", "false": "0", "inf": "Infinity", "nan": "NaN"}
_HEX: Final = re.compile(r"0x[0-9a-fA-F]+")


def logical_values(op: Op) -> Array:
    """Return the elements of a constant in its declared type and logical shape; those narrower than a byte as compact
    bytes.

    Raises ProgramError for text that is wrong.
    """
    of = op.types[0]
    content = op.attributes.get("content")
    if not isinstance(content, Dense) or of.shape is None or of.element is None:
        raise ProgramError("a constant without content")
    values = _decode_values(content, of)
    if of.bits < 8 and content.text.startswith('"') and values.size == of.compact_bytes != of.count:
        return values  # packed already
    if values.size == 1:
        values = np.broadcast_to(values.reshape(()), of.shape)
    if values.size != of.count:
        raise ProgramError(f"a constant of {values.size} elements for a shape of {of.count}")
    values = values.reshape(of.shape)
    if of.bits >= 8:
        return values
    return pack_narrow(values, of)


def _decode_values(content: Dense, of: Type) -> Array:
    """Return the elements of a constant's content as a flat or nested array in the type `of`."""
    target = of.element
    assert target is not None
    if content.type is not None:
        written = content.type.element
    else:
        written = None
    if not content.text:
        return np.zeros(0, target.numpy)
    if not content.text.startswith('"'):
        values = _decode_numbers(content.text, written or target)
    else:
        values = _decode_hex(content.text.strip('"'), written or target)
        if written is not None and written.name == "bf16" != target.name:
            values = bf16_values(values)
        elif written is None or written.name == target.name:
            return values
    return _convert_constant(values, written, target)


def _convert_constant(values: Array, written: Element | None, target: Element) -> Array:
    """Return the elements of a constant in the type `target`, rounded once; bits of bf16 and of types that are only
    moved as raw integers. `written` is the type that its content states, None where it states none."""
    if target.name == "bf16" and (written is None or written.kind != "quant"):
        return bf16_bits(values)
    if target.is_raw:
        return values.astype(target.numpy)
    return round_to(values, target)


def _decode_hex(text: str, written: Element) -> Array:
    """Return the elements of a hex string, which are little-endian. Raises ProgramError for a wrong string."""
    try:
        data = bytes.fromhex(text.removeprefix("0x"))
        return np.frombuffer(data, np.dtype(written.numpy).newbyteorder("<"))
    except ValueError as error:
        raise ProgramError(f"the hex string of a constant is wrong: {error}") from None


def _decode_numbers(text: str, written: Element) -> Array:
    """Return a number, or lists of lists of numbers, as an array; hex digits are the bits of a float. Raises
    ProgramError for other text."""
    plain = re.sub(r"\b(true|false|inf|nan)\b", lambda word: _WORDS[word[0]], text)
    plain = re.sub(r"(?<=\d)\.(?!\d)", ".0", plain)
    try:
        plain = _HEX.sub(lambda word: _decode_bits(word[0], written), plain)
        values = np.array(json.loads(plain))
    except (ValueError, RecursionError, OverflowError) as error:
        raise ProgramError(f"the elements of a constant are wrong: {error}") from None
    if values.dtype.kind not in "fiub":
        raise ProgramError("the elements of a constant are not numbers of one shape")
    return values


def _decode_bits(text: str, written: Element) -> str:
    """Return a number written in hex digits in the form that JSON has for it."""
    if written.kind != "float" or written.bits == 8:
        return str(int(text, 16))
    size = written.bits // 8
    raw = np.frombuffer((int(text, 16) & (1 << 8 * size) - 1).to_bytes(size, "little"), np.uint8)
    bits = raw.view(written.numpy)
    return json.dumps(float((bf16_values(bits) if written.name == "bf16" else bits)[0]))
