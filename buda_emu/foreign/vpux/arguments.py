"""Pack and unpack the buffer that a kernel is called with: one struct for each tensor, scalars, then dimensions and
strides (VPUX 6).

There are two forms: 32 bytes a tensor with scalars in their own types (the design documents), and 36 with wide scalars
(today).
"""

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, TypedDict, cast

from buda_emu.foreign.vpux.elements import Element, data_type, data_type_name, element
from buda_emu.foreign.vpux.layout import DimsOrder
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError

Abi: TypeAlias = Literal[32, 36]
Scalar: TypeAlias = bool | int | float | tuple[Any, ...] | list[Any]

WINDOW_ARGUMENTS: Final = 0x1E000000
"""WIN_E: where a kernel sees its argument buffer."""
WINDOW_CMX: Final = 0x1F000000
"""WIN_F: where a kernel sees CMX."""
SLICE_BYTES: Final = 0x200000  # of CMX, by which the addresses of slices differ (VPUX)
MOST_TENSORS: Final = 8
"""Inputs, and outputs, of one kernel."""
MOST_SCALARS: Final = 1 << 16  # so that a forged list ends
_END: Final = object()
LOCATIONS: Final[Mapping[str | None, int]] = MappingProxyType({None: 0, "DDR": 1, "CMX_NN": 2})

_HEAD: Final = struct.Struct("<6IQ")
_FORMS: Final[Mapping[str, str]] = MappingProxyType(
    {"f16": "e", "f32": "f", "f64": "d", "i1": "b", "si1": "b", "ui1": "B"}
    | {f"{kind}{bits}": form for kind in ("i", "si") for bits, form in ((8, "b"), (16, "h"), (32, "i"), (64, "q"))}
    | {f"ui{bits}": form for bits, form in ((8, "B"), (16, "H"), (32, "I"), (64, "Q"))}
)


@dataclass(frozen=True, slots=True)
class TensorArg:
    """A tensor as a kernel sees it. `shape` is logical, `strides` are bits in memory order (None: compact).

    `order` is a name, code, permutation or DimsOrder (None: logical order); addresses are those that the kernel uses.
    Without `dims_address` and `strides_address` they point into the buffer. A dynamic tensor finds its dimensions at
    `dims_address`, int32, innermost first.
    """

    shape: tuple[int, ...]
    order: "DimsOrder | str | int | Sequence[int] | None" = None
    dtype: str = "f16"
    strides: tuple[int, ...] | None = None
    location: str | None = "CMX_NN"
    address: int = 0
    dynamic: bool = False
    dims_address: int | None = None
    strides_address: int | None = None

    @property
    def dims_order(self) -> DimsOrder:
        """The order of the dimensions in memory. Raises HostError for what is no order."""
        if self.order is None:
            return DimsOrder.identity(len(self.shape))
        return DimsOrder.of(self.order)

    @property
    def element(self) -> Element:
        """The element type. Raises HostError for an unknown one."""
        element_type = element(self.dtype)
        if element_type is None:
            raise HostError(f"no element type is named {self.dtype!r}")
        return element_type

    def memory(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return shape and strides (bits) in memory order. Raises HostError where their ranks differ."""
        shape = self.dims_order.to_memory(self.shape)
        if self.strides is not None:
            if len(self.strides) != len(shape):
                raise HostError(f"{len(self.strides)} strides do not belong to {plural(len(shape), 'dimension')}")
            return shape, self.strides
        strides: list[int] = []
        bits = self.element.bits
        for size in reversed(shape):
            strides.append(bits)
            bits *= size
        return shape, tuple(reversed(strides))


def pack(
    tensors: Sequence[TensorArg],
    scalars: Sequence[Scalar] = (),
    abi: Abi = 36,
    window: int = WINDOW_ARGUMENTS,
    offset: int = 0,
    arch: str = "37XX",
    inputs: int | None = None,
) -> bytes:
    """Return the bytes of a kernel's arguments, which are to stand at `window + offset`.

    `scalars` are values for abi 36, pairs of type and value for abi 32. With `inputs`: the dimensions of the first
    `inputs` tensors, their strides, then the dimensions and strides of the rest; without: dimensions and strides tensor
    by tensor. Raises HostError for values that do not fit."""
    _check_abi(abi)
    packed = b"".join(_pack_scalar(scalar, abi) for scalar in scalars)
    start = window + offset + abi * len(tensors) + len(packed)
    area, places = _pack_dims_and_strides(tensors, inputs)
    heads: list[bytes] = []
    try:
        for tensor, (dims, strides) in zip(tensors, places, strict=True):
            if tensor.dims_address is None:
                dims_at = start + dims
            else:
                dims_at = tensor.dims_address
            if tensor.strides_address is None:
                strides_at = start + strides
            else:
                strides_at = tensor.strides_address
            head = _HEAD.pack(
                tensor.address,
                not tensor.dynamic,
                len(tensor.shape),
                dims_at,
                strides_at,
                data_type(tensor.element, arch),
                tensor.dims_order.kernel_code,
            )
            heads.append(head + (struct.pack("<I", LOCATIONS[tensor.location]) if abi == 36 else b""))
    except (struct.error, KeyError) as error:
        raise HostError(f"a tensor cannot be packed: {error}") from None
    return b"".join(heads) + packed + area


def _pack_dims_and_strides(tensors: Sequence[TensorArg], inputs: int | None) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the packed dimensions and strides of all tensors, and the offsets of both for each tensor. Raises
    HostError for numbers that do not fit."""
    groups = [[n] for n in range(len(tensors))]
    if inputs is not None:
        groups = [list(range(len(tensors))[:inputs]), list(range(len(tensors))[inputs:])]
    area = b""
    dims_at = [0] * len(tensors)
    strides_at = [0] * len(tensors)
    try:
        for group in groups:
            for n in group:
                dims_at[n] = len(area)
                area += struct.pack(f"<{len(tensors[n].shape)}i", *reversed(tensors[n].memory()[0]))
            for n in group:
                strides_at[n] = len(area)
                area += struct.pack(f"<{len(tensors[n].shape)}q", *reversed(tensors[n].memory()[1]))
    except struct.error as error:
        raise HostError(f"dimensions or strides do not fit: {error}") from None
    return area, list(zip(dims_at, strides_at, strict=True))


def _pack_scalar(scalar: Scalar, abi: Abi) -> bytes:
    """Return a scalar, or a list of them, in the form of the 36-byte or 32-byte arguments. Raises HostError for one
    that does not fit."""
    try:
        if abi == 36:
            return b"".join(_pack_wide(value) for value in flatten([scalar]))
        if not isinstance(scalar, tuple) or len(scalar) != 2:
            raise HostError(f"{scalar!r} is not a scalar of the 32-byte form: (type, value)")
        type_name, value = scalar
        if type_name not in _FORMS:
            raise HostError(f"scalars of type {type_name!r} cannot be packed")
        form = _FORMS[str(type_name)]
        if form in "efd":
            return _pack_float(form, float(value))
        return struct.pack(f"<{form}", value)
    except (struct.error, OverflowError, ValueError, TypeError) as error:
        raise HostError(f"scalar {scalar!r} cannot be packed: {error}") from None


def _pack_wide(value: bool | int | float) -> bytes:
    """Return a scalar as it is packed for abi 36: a boolean as one bit, sign-extended to 8 bytes; an integer in 8
    bytes, whether signed or not; a float in 4."""
    if isinstance(value, bool):
        return struct.pack("<q", -int(value))
    if isinstance(value, float):
        return _pack_float("f", value)
    return struct.pack("<Q" if value >= 1 << 63 else "<q", value)


def _pack_float(form: str, value: float) -> bytes:
    """Return the bytes of a float in a `struct` format that may be too narrow for it; it becomes infinite then."""
    try:
        return struct.pack(f"<{form}", value)
    except OverflowError:
        return struct.pack(f"<{form}", math.copysign(math.inf, value))


def flatten(values: Iterable[Any]) -> list[Any]:
    """Return the values of nested lists and tuples, in order. Raises HostError for more than 65 536 values and
    lists."""
    leaves: list[Any] = []
    iterators: list[Any] = [iter(values)]
    for _ in range(MOST_SCALARS):
        value = next(iterators[-1], _END)
        if value is _END:
            iterators.pop()
            if not iterators:
                return leaves
        elif isinstance(value, tuple | list):
            iterators.append(iter(cast(Iterable[Any], value)))
        else:
            leaves.append(value)
    raise HostError(f"more than {MOST_SCALARS} values and lists of them")


class UnpackedTensor(TypedDict):
    """A tensor struct of an argument buffer."""

    address: int
    static: bool
    num_dims: int
    dims_address: int
    strides_address: int
    dtype: str
    order: int
    location: int | None
    dims: list[int] | None
    strides: list[int] | None


class Unpacked(TypedDict):
    """The content of an argument buffer, as a kernel reads it."""

    tensors: list[UnpackedTensor]
    scalars: list[int | float]


def unpack(
    data: bytes,
    tensors: int,
    scalar_types: Sequence[str] = (),
    abi: Abi = 36,
    window: int = WINDOW_ARGUMENTS,
    offset: int = 0,
) -> Unpacked:
    """Return what a kernel reads from its buffer: `tensors` structs, then scalars of these types.

    Dimensions and strides are innermost first, as they stand there; None where they stand outside of the buffer.
    `location` is None in the 32-byte form. Raises HostError for a buffer that is too short or holds nonsense.
    """
    _check_abi(abi)
    at = abi * tensors
    scalars: list[int | float] = []
    try:
        for type_name in scalar_types:
            if type_name not in _FORMS:
                raise HostError(f"scalars of type {type_name!r} cannot be read")
            form = struct.Struct("<" + (_FORMS[type_name] if abi == 32 or type_name == "f32" else "q"))
            scalars += form.unpack_from(data, at)
            at += form.size
        decoded = [_unpack_tensor(data, abi * n, abi, window + offset) for n in range(tensors)]
    except struct.error as error:
        raise HostError(f"a buffer of {len(data)} bytes holds no such arguments: {error}") from None
    return {"tensors": decoded, "scalars": scalars}


def _unpack_tensor(data: bytes, at: int, abi: Abi, base: int) -> UnpackedTensor:
    """Return the fields of the tensor struct at byte `at` of a buffer whose first byte has the address `base`.
    Raises HostError for more than 15 dimensions."""
    address, static, rank, dims_at, strides_at, code, order = _HEAD.unpack_from(data, at)
    if rank > 15:
        raise HostError(f"a tensor of {rank} dimensions")
    return {
        "address": address,
        "static": bool(static),
        "num_dims": rank,
        "dims_address": dims_at,
        "strides_address": strides_at,
        "dtype": data_type_name(code),
        "order": order,
        "location": struct.unpack_from("<I", data, at + _HEAD.size)[0] if abi == 36 else None,
        "dims": _unpack_array(data, dims_at - base, rank, "i") if static else None,
        "strides": _unpack_array(data, strides_at - base, rank, "q"),
    }


def _unpack_array(data: bytes, at: int, count: int, form: str) -> list[int] | None:
    """Return `count` numbers of the `struct` format `form` at byte `at`; None where they are not inside of the
    buffer."""
    layout = struct.Struct(f"<{count}{form}")
    if 0 <= at <= len(data) - layout.size:
        return list(layout.unpack_from(data, at))
    return None


def _check_abi(abi: int) -> None:
    """Raise HostError for another number of bytes of a tensor struct than 32 and 36."""
    if abi not in (32, 36):
        raise HostError(f"a tensor takes 32 or 36 bytes, not {abi}")
