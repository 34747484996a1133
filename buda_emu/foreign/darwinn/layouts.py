"""Conversions between the host's arrays and the device's bytes (DARWINN 7): numpy index arrays, no loop over elements.

The maps of a layout are the definition; rule D079 reports where the driver's shortcuts read other elements.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.darwinn.idl import ElementType, Layer, OutputShapeInfo
from buda_emu.foreign.darwinn.rules.places import maps_of, wrong_slice
from buda_emu.support.errors import HostError, PackageError, UnsupportedError

Array = NDArray[Any]
Buffer = bytes | bytearray | memoryview | Array
_MOST_BYTES: Final = 1 << 30  # of a tensor; a larger one is forged, as the SRAM has 8 MiB
_SIGN: Final = {1: (np.uint8, 0x80), 2: (np.uint16, 0x8000)}


def to_device(layer: Layer, array: Any) -> bytes:
    """Return the bytes that an input's DMAs read: every execution is padded with 0 to `size_bytes`, and the top bit of
    signed types is flipped.

    `array` holds the layer's elements in any shape, or their bytes. Raises HostError for another number of bytes.
    """
    element = _checked_element_type(layer)
    data = np.frombuffer(_as_bytes(array), np.uint8)
    actual = layer.actual_bytes
    padded = _device_bytes(layer)
    if len(data) != actual:
        raise HostError(f"input {layer.name!r} takes {actual} bytes, not {len(data)}")
    executions = layer.execution_count_per_inference
    execution_bytes = actual // executions
    # Where size_bytes is less than the layer's length, the driver copies the layer's length (D072).
    result = np.zeros((executions, max(padded // executions, execution_bytes)), np.uint8)
    result[:, :execution_bytes] = _flip_signs(data.reshape(executions, execution_bytes), element)
    return result.tobytes()


def relayout(layer: Layer, raw: Buffer) -> Array:
    """Return the host's array of an output from its bytes on the device.

    The shape is `[y, x, z]`; for 1-D `[1, 1, z]`, with several executions `[executions, 1, 1, z]`; for a sliced output
    the lengths of the layer's shape. The type is the layer's; bfloat stays bits (uint16). Raises HostError for another
    number of bytes, and PackageError for a layer whose maps or slices are wrong.
    """
    element = _checked_element_type(layer)
    padded = _device_bytes(layer)
    data = np.frombuffer(_as_bytes(raw), np.uint8)
    if len(data) != padded:
        raise HostError(f"output {layer.name!r} has {padded} bytes, not {len(data)}")
    words = np.frombuffer(data[: padded - padded % element.size].tobytes(), _word_dtype(element))
    values = words[_element_places(layer)]
    return _flip_signs(np.ascontiguousarray(values), element).view(element.dtype)


def unrelayout(layer: Layer, array: Any, fill: int = 0) -> bytes:
    """Return the bytes on the device of an output's host array, the inverse of `relayout`.

    Bytes that hold no element are `fill`. Raises HostError for another number of bytes.
    """
    element = _checked_element_type(layer)
    padded = _device_bytes(layer)
    index = _element_places(layer)
    data = _as_bytes(array)
    if len(data) != index.size * element.size:
        raise HostError(f"output {layer.name!r} has {index.size * element.size} bytes of elements, not {len(data)}")
    values = _flip_signs(np.frombuffer(data, _word_dtype(element)).reshape(index.shape), element)
    word_bytes = padded // element.size * element.size
    result = np.full(padded, fill, np.uint8)
    words = np.frombuffer(result[:word_bytes].tobytes(), _word_dtype(element)).copy()
    words[index] = values
    result[:word_bytes] = words.view(np.uint8)
    return result.tobytes()


def dequantize(layer: Layer, array: Any) -> NDArray[np.float32]:
    """Return the real values of a host array as float32: the integer difference to the zero point, converted, times
    the factor.

    Raises PackageError for a layer without quantisation.
    """
    element = _checked_element_type(layer)
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
    """Return the shape of the array that `relayout` returns."""
    if layer.slices is not None and layer.shape is not None:
        return tuple(end - start + 1 for start, end in layer.shape.dimension or ())
    shape = (layer.y_dim, layer.x_dim, layer.z_dim)
    if layer.execution_count_per_inference == 1:
        return shape
    return (layer.execution_count_per_inference, *shape)


def _element_places(layer: Layer) -> NDArray[np.int64]:
    """Return the place on the device, counted in elements, of every element of an output's array on the host. Raises
    PackageError for a wrong layout, UnsupportedError for an array of more than 2^30 elements."""
    element = _checked_element_type(layer)
    if prod(host_shape(layer)) > _MOST_BYTES:
        raise UnsupportedError(f"layer {layer.name!r} has {prod(host_shape(layer))} elements")
    if layer.slices is not None:
        return _slice_places(layer, element)
    if layer.y_dim == layer.x_dim == 1:
        return _vector_places(layer, element)
    return _layout_places(layer, element)


def _vector_places(layer: Layer, element: ElementType) -> NDArray[np.int64]:
    """Return the place on the device, in elements, of every element of a 1-D output, whose executions follow each other
    at multiples of `size_bytes`. Raises PackageError for a size that does not hold the elements, UnsupportedError for
    one that splits an element."""
    executions = layer.execution_count_per_inference
    if layer.size_bytes < layer.z_dim * element.size:
        raise PackageError(f"layer {layer.name!r}: {layer.size_bytes} bytes do not hold its elements (D072)")
    if executions > 1 and layer.size_bytes % element.size:
        raise UnsupportedError(f"layer {layer.name!r}: executions of {layer.size_bytes} bytes of {element.name}")
    index = np.arange(executions)[:, None] * (layer.size_bytes // element.size) + np.arange(layer.z_dim)
    return index.reshape(host_shape(layer)).astype(np.int64)


def _layout_places(layer: Layer, element: ElementType) -> NDArray[np.int64]:
    """Return the place on the device, in elements, of every element of a 3-D output, by the six maps of its layout
    (DARWINN 7). Raises PackageError for maps that are too short or lead out of the output, UnsupportedError for several
    executions."""
    if layer.execution_count_per_inference != 1:
        raise UnsupportedError(f"layer {layer.name!r}: several executions of a layer with a layout")
    if layer.output is not None:
        layout = layer.output.layout
    else:
        layout = None
    maps = "it has no layout"
    if layout is not None:
        maps = maps_of(layer, layout)
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
    if first.min() < 0 or first.max() + layer.z_dim > _device_bytes(layer) // element.size:
        raise PackageError(f"layer {layer.name!r}: an element lies outside of its {layer.size_bytes} bytes (D077)")
    return first[:, :, None] + np.arange(layer.z_dim)


def _checked_slices(
    layer: Layer, info: OutputShapeInfo, shape: tuple[tuple[int, int], ...], element: ElementType
) -> Iterator[tuple[Sequence[tuple[int, int]], Sequence[int], int]]:
    """Yield the box, the strides and the byte offset of each slice. Raises PackageError for a slice that breaks
    D080."""
    offsets = info.slice_offset or ()
    for number, layout in enumerate(info.slice_layout or ()):
        wrong = "no offset"
        if number < len(offsets):
            wrong = wrong_slice(layout, offsets[number], shape, element.size, layer.size_bytes)
        if wrong or layout.shape is None:
            raise PackageError(f"layer {layer.name!r}: slice {number}: {wrong} (D080)")
        yield layout.shape.dimension or (), layout.stride or (), offsets[number]


def _slice_places(layer: Layer, element: ElementType) -> NDArray[np.int64]:
    """Return the place on the device, in elements, of every element of a sliced output: each slice is a box of the
    shape with an offset and strides (DARWINN 7). Raises PackageError where slices are wrong or leave elements out."""
    shape: tuple[tuple[int, int], ...] = ()
    if layer.shape is not None:
        shape = tuple(layer.shape.dimension or ())
    lengths = [end - start + 1 for start, end in shape]
    if layer.slices is None or min(lengths, default=0) < 1:
        raise PackageError(f"layer {layer.name!r}: slices without a shape (D080)")
    index = np.full(lengths, -1, np.int64)
    for box, strides, offset in _checked_slices(layer, layer.slices, shape, element):
        window = tuple(slice(start - low, end - low + 1) for (start, end), (low, _) in zip(box, shape, strict=True))
        index[window] = _places_in_box(box, strides, offset // element.size)
    if index.min() < 0:
        raise PackageError(f"layer {layer.name!r}: the slices do not hold every element (D080)")
    return index


def _places_in_box(box: Sequence[tuple[int, int]], strides: Sequence[int], first: int) -> NDArray[np.int64]:
    """Return the place of every element of a slice's box: that of its first element, `first`, plus the strides
    times the distance from there. Places and strides count elements."""
    places = np.full((1,) * len(box), first, np.int64)
    for axis, ((start, end), stride) in enumerate(zip(box, strides, strict=True)):
        shape = [1] * len(box)
        shape[axis] = -1
        steps = np.arange(end - start + 1, dtype=np.int64) * stride
        places = places + steps.reshape(shape)
    return places


def _checked_element_type(layer: Layer) -> ElementType:
    """Return the type of a layer's elements. Raises PackageError for an unknown type and for a layer without
    elements, UnsupportedError for more than 1 GiB."""
    if layer.element is None:
        raise PackageError(f"layer {layer.name!r} is of unknown data type {layer.data_type} (D073)")
    if layer.execution_count_per_inference < 1 or min(layer.y_dim, layer.x_dim, layer.z_dim) < 1:
        raise PackageError(f"layer {layer.name!r} has no elements (D072, D075)")
    if layer.actual_bytes > _MOST_BYTES or layer.padded_bytes > _MOST_BYTES:
        raise UnsupportedError(f"layer {layer.name!r} has more than {_MOST_BYTES} bytes")
    return layer.element


def _device_bytes(layer: Layer) -> int:
    """Return the size of a layer on the device in bytes; 0 where the package has a negative one."""
    return max(layer.padded_bytes, 0)


def _word_dtype(element: ElementType) -> str:
    """Return numpy's name of the unsigned little-endian integer that is as wide as an element."""
    return f"<u{element.size}"


def _flip_signs(values: Array, element: ElementType) -> Array:
    """Return the values with the sign bit of every element of a signed type flipped (DARWINN 7); those of other types
    are returned unchanged."""
    if not element.signed:
        return values
    word, sign = _SIGN[element.size]
    return (np.ascontiguousarray(values).view(word) ^ word(sign)).view(values.dtype)


def _as_bytes(data: Any) -> bytes:
    """Return the bytes of an array in C order; bytes are returned unchanged."""
    if isinstance(data, bytes):
        return data
    return np.ascontiguousarray(data).tobytes()
