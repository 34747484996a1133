"""Between the host's arrays and the device's bytes (DARWINN 7): numpy index arrays, no loop over elements.

The maps of a layout are the definition; where the driver's shortcuts read otherwise, rule D079 says so.
"""

from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.darwinn.idl import ElementType, Layer
from buda_emu.foreign.darwinn.rules.places import maps_of, wrong_slice
from buda_emu.support.errors import HostError, PackageError, UnsupportedError

Array = NDArray[Any]
Buffer = bytes | bytearray | memoryview | Array
_MOST_BYTES: Final = 1 << 30
_SIGN: Final = {1: (np.uint8, 0x80), 2: (np.uint16, 0x8000)}


def to_device(layer: Layer, array: Any) -> bytes:
    """The bytes that an input's DMAs read: every execution padded to `size_bytes` with 0, signed types with their top
    bit flipped.

    `array`: of the layer's elements in any shape, or their bytes. Raises HostError for another number of bytes.
    """
    element = _element(layer)
    data = np.frombuffer(_bytes(array), np.uint8)
    actual = layer.actual_bytes
    padded = _padded(layer)
    if len(data) != actual:
        raise HostError(f"input {layer.name!r} takes {actual} bytes, not {len(data)}")
    executions = layer.execution_count_per_inference
    one = actual // executions
    # the driver copies what the layer is long, where its size_bytes falls short (D072)
    result = np.zeros((executions, max(padded // executions, one)), np.uint8)
    result[:, :one] = _flipped(data.reshape(executions, one), element)
    return result.tobytes()


def relayout(layer: Layer, raw: Buffer) -> Array:
    """The host's array of an output from its bytes on the device.

    3-D: `[y, x, z]`; 1-D: `[1, 1, z]`, with several executions `[executions, 1, 1, z]`; sliced: the lengths of the
    layer's shape. Type as the layer's; bfloat stays bits (uint16).
    """
    element = _element(layer)
    padded = _padded(layer)
    data = np.frombuffer(_bytes(raw), np.uint8)
    if len(data) != padded:
        raise HostError(f"output {layer.name!r} has {padded} bytes, not {len(data)}")
    words = np.frombuffer(data[: padded - padded % element.size].tobytes(), _unsigned(element))
    values = words[_index(layer)]
    return _flipped(np.ascontiguousarray(values), element).view(element.dtype)


def unrelayout(layer: Layer, array: Any, fill: int = 0) -> bytes:
    """The inverse of `relayout`: the bytes on the device; those that hold no element are `fill`."""
    element = _element(layer)
    padded = _padded(layer)
    index = _index(layer)
    data = _bytes(array)
    if len(data) != index.size * element.size:
        raise HostError(f"output {layer.name!r} has {index.size * element.size} bytes of elements, not {len(data)}")
    values = _flipped(np.frombuffer(data, _unsigned(element)).reshape(index.shape), element)
    whole = padded // element.size
    result = np.full(padded, fill, np.uint8)
    words = np.frombuffer(result[: whole * element.size].tobytes(), _unsigned(element)).copy()
    words[index] = values
    result[: whole * element.size] = words.view(np.uint8)
    return result.tobytes()


def dequantize(layer: Layer, array: Any) -> NDArray[np.float32]:
    """Real values of a host array: differences to the zero point in integers, converted, times the factor in float32.

    Raises PackageError for a layer without quantisation.
    """
    element = _element(layer)
    if layer.numerics is None:
        raise PackageError(f"layer {layer.name!r} has no quantisation (D074)")
    factor = np.float32(layer.numerics.dequantization_factor)
    values = np.asarray(array)
    if element.dtype.startswith("float"):
        return (values.astype(np.float32) - np.float32(layer.numerics.zero_point)) * factor
    if element.name == "BFLOAT":
        real = (values.astype(np.uint32) << 16).view(np.float32)
        return (real - np.float32(layer.numerics.zero_point)) * factor
    device = values.astype(np.int64) + (1 << (8 * element.size - 1) if element.signed else 0)
    return (device - layer.numerics.zero_point).astype(np.float32) * factor


def host_shape(layer: Layer) -> tuple[int, ...]:
    """The shape that `relayout` gives."""
    if layer.slices is not None and layer.shape is not None:
        return tuple(end - start + 1 for start, end in layer.shape.dimension or ())
    shape = (layer.y_dim, layer.x_dim, layer.z_dim)
    return shape if layer.execution_count_per_inference == 1 else (layer.execution_count_per_inference, *shape)


def _index(layer: Layer) -> NDArray[np.int64]:
    """For every element of the host's array, its place on the device, in elements."""
    element = _element(layer)
    room = _padded(layer) // element.size
    if prod(host_shape(layer)) > _MOST_BYTES:
        raise UnsupportedError(f"layer {layer.name!r} has {prod(host_shape(layer))} elements")
    if layer.slices is not None:
        return _slice_index(layer, element)
    executions = layer.execution_count_per_inference
    if layer.y_dim == layer.x_dim == 1:
        if layer.size_bytes < layer.z_dim * element.size:
            raise PackageError(f"layer {layer.name!r}: {layer.size_bytes} bytes do not hold its elements (D072)")
        if executions > 1 and layer.size_bytes % element.size:
            raise UnsupportedError(f"layer {layer.name!r}: executions of {layer.size_bytes} bytes of {element.name}")
        index = np.arange(executions)[:, None] * (layer.size_bytes // element.size) + np.arange(layer.z_dim)
        return index.reshape(host_shape(layer)).astype(np.int64)
    if executions != 1:
        raise UnsupportedError(f"layer {layer.name!r}: several executions of a layer with a layout")
    layout = layer.output.layout if layer.output is not None else None
    maps = maps_of(layer, layout) if layout is not None else "it has no layout"
    if isinstance(maps, str):
        raise PackageError(f"layer {layer.name!r}: {maps} (D076)")
    ytile, xtile, offset, xlocal, ylocal, rowsize = (
        np.asarray(values, np.int64)
        for values in (maps.ytile, maps.xtile, maps.offset, maps.xlocal, maps.ylocal, maps.rowsize)
    )
    tile = ytile[:, None] + xtile
    if tile.min() < 0 or tile.max() >= len(offset):
        raise PackageError(f"layer {layer.name!r}: a tile has no offset (D077)")
    first = offset[tile] + ylocal[:, None] * rowsize + xlocal
    if first.min() < 0 or first.max() + layer.z_dim > room:
        raise PackageError(f"layer {layer.name!r}: an element lies outside of its {layer.size_bytes} bytes (D077)")
    return first[:, :, None] + np.arange(layer.z_dim)


def _slice_index(layer: Layer, element: ElementType) -> NDArray[np.int64]:
    info = layer.slices
    shape = tuple(layer.shape.dimension or ()) if layer.shape is not None else ()
    if info is None or not shape or any(start > end for start, end in shape):
        raise PackageError(f"layer {layer.name!r}: slices without a shape (D080)")
    layouts = info.slice_layout or ()
    offsets = info.slice_offset or ()
    index = np.full(tuple(end - start + 1 for start, end in shape), -1, np.int64)
    for number, layout in enumerate(layouts):
        wrong = "no offset"
        if number < len(offsets):
            wrong = wrong_slice(layout, offsets[number], shape, element.size, layer.size_bytes)
        if wrong or layout.shape is None:
            raise PackageError(f"layer {layer.name!r}: slice {number}: {wrong} (D080)")
        box = layout.shape.dimension or ()
        places = np.full((1,) * len(box), offsets[number] // element.size, np.int64)
        for axis, ((start, end), stride) in enumerate(zip(box, layout.stride or (), strict=True)):
            steps = np.arange(end - start + 1, dtype=np.int64) * stride
            places = places + steps.reshape([-1 if i == axis else 1 for i in range(len(box))])
        where = tuple(slice(start - low, end - low + 1) for (start, end), (low, _) in zip(box, shape, strict=True))
        index[where] = places
    if index.min() < 0:
        raise PackageError(f"layer {layer.name!r}: the slices do not hold every element (D080)")
    return index


def _element(layer: Layer) -> ElementType:
    if layer.element is None:
        raise PackageError(f"layer {layer.name!r} is of unknown data type {layer.data_type} (D073)")
    if layer.execution_count_per_inference < 1 or min(layer.y_dim, layer.x_dim, layer.z_dim) < 1:
        raise PackageError(f"layer {layer.name!r} has no elements (D072, D075)")
    if layer.actual_bytes > _MOST_BYTES or layer.padded_bytes > _MOST_BYTES:
        raise UnsupportedError(f"layer {layer.name!r} has more than {_MOST_BYTES} bytes")
    return layer.element


def _padded(layer: Layer) -> int:
    return max(layer.padded_bytes, 0)


def _unsigned(element: ElementType) -> str:
    return f"<u{element.size}"


def _flipped(values: Array, element: ElementType) -> Array:
    """Bits of elements with the sign bit flipped, for signed types."""
    if not element.signed:
        return values
    word, sign = _SIGN[element.size]
    return (np.ascontiguousarray(values).view(word) ^ word(sign)).view(values.dtype)


def _bytes(data: Any) -> bytes:
    if isinstance(data, bytes):
        return data
    return np.ascontiguousarray(data).tobytes()
