"""DMAs: bytes from one layout to another, or as a descriptor says (VPUX 4)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import ProgramError
from buda_emu.vpux.execute.memory import MOST_BYTES, Region, Watch, regions
from buda_emu.vpux.execute.values import bf16_bits, load, rounded, store
from buda_emu.vpux.model import AffineMap, Op, Opaque
from buda_emu.vpux.program import Buffer, Program

Bytes = NDArray[np.uint8]


def move(watch: Watch, program: Program, op: Op) -> None:
    """Do a data movement. Raises ProgramError for sizes that differ."""
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
    """What a data movement reads and writes."""
    found: list[Buffer | None] = []
    for clause in ("inputs", "outputs"):
        uses = op.clause(clause)
        found.append(program.buffer(uses[0]) if uses else None)
    return found[0], found[1]


def _copy(watch: Watch, op: Op, source: Buffer, target: Buffer) -> None:
    data = watch.read(regions(source)[0])
    for region in regions(target):
        if region.size != len(data):
            raise ProgramError(f"{op.name} reads {len(data)} bytes and writes {region.size}", kind="op", rule="X024")
        watch.write(region, data)


def _convert(watch: Watch, op: Op, source: Buffer, target: Buffer) -> None:
    values = load(watch, source)
    wanted = target.type.element
    assert wanted is not None
    if source.type.shape != target.type.shape:
        raise ProgramError(f"{op.name} changes the shape", kind="op", rule="X024")
    result: Any = bf16_bits(values) if wanted.name == "bf16" else rounded(values, wanted)
    store(watch, target, result)


def _permute(watch: Watch, op: Op, source: Buffer, target: Buffer) -> None:
    given = op.attributes.get("mem_perm")
    order = given.order if isinstance(given, AffineMap) else None
    shape = source.type.memory_shape
    if order is None or order.rank != len(shape) or source.type.bits % 8:
        raise ProgramError(
            f"{op.name}: mem_perm does not permute the {len(shape)} dimensions of its input", kind="op", rule="X046"
        )
    data = watch.read(regions(source)[0]).reshape(*shape, -1)
    moved = np.ascontiguousarray(data.transpose(*order.perm, len(shape))).reshape(-1)
    for region in regions(target):
        if region.size != len(moved):
            raise ProgramError(f"{op.name} reads {len(moved)} bytes and writes {region.size}", kind="op", rule="X024")
        watch.write(region, moved)


_PLAIN: Final = ("VPUIP.NNDMA", "VPUIP.DMA", "VPUIP.Copy")
_MOVES: Final[Mapping[str, Callable[[Watch, Op, Buffer, Buffer], None]]] = MappingProxyType(
    {**dict.fromkeys(_PLAIN, _copy), "VPUIP.ConvertDMA": _convert, "VPUIP.PermuteDMA": _permute}
)


# ------------------------------------------------------------------------------------------------------ descriptors
def descriptor_regions(op: Op, source: Buffer, target: Buffer) -> tuple[list[Region], list[Region]]:
    """What a descriptor reads and writes: planes of whole rows, then of what is left of a row. Empty for nothing.

    Raises ProgramError for fields that are not integers, and for numbers that no memory holds.
    """
    fields = op.attributes.get("dma_descriptor")
    assert isinstance(fields, Opaque)

    def number(name: str) -> int:
        found = fields.fields.get(name, 0)
        if type(found) is not int:  # `true` is not a number either
            raise ProgramError(f"{op.name}: {name} of its descriptor is not an integer", kind="op")
        return found

    planes, length = number("numPlanes"), number("len")
    if planes == 0 or length == 0:
        return [], []
    if planes < 0 or length < 0 or planes * length > MOST_BYTES:
        raise ProgramError(f"{op.name}: a descriptor of {planes} planes of {length} bytes", kind="limit")
    found: list[list[Region]] = []
    for side, buffer in (("src", source), ("dst", target)):
        width, stride, plane = (number(side + name) for name in ("Width", "Stride", "PlaneStride"))
        if width < 0 or max(abs(stride), abs(plane)) > MOST_BYTES:
            raise ProgramError(f"{op.name}: {side} rows of {width} bytes, {stride} apart", kind="limit")
        rows, rest = divmod(length, width) if width else (0, length)
        parts: list[Region] = []
        space, address = buffer.spaces[0], buffer.address
        if rows:
            parts.append(Region(space, address, (planes, rows, width), (plane, stride, 1), 1))
        if rest:
            parts.append(Region(space, address + rows * stride, (planes, 1, rest), (plane, stride, 1), 1))
        found.append(parts)
    return found[0], found[1]


def _read_planes(watch: Watch, parts: Sequence[Region]) -> Bytes:
    return np.concatenate([watch.read(part).reshape(part.shape[0], -1) for part in parts], axis=1)


def _write_planes(watch: Watch, parts: Sequence[Region], data: Bytes) -> None:
    at = 0
    for part in parts:
        length = part.shape[1] * part.shape[2]
        watch.write(part, data[:, at : at + length])
        at += length
