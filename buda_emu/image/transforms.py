"""Runtime transforms: what is done to a tensor between the host's shape and the queue's (NETLIST 8, 7.4, 7.5)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import HostError, UnsupportedError
from buda_emu.image.metadata import HostTm, Transform
from buda_emu.tensor.host import expand_shape, prestride, stack_entries

Array = NDArray[Any]


def host_to_queue(name: str, array: Array, transform: Transform) -> Array:
    """An input in the host's shape as [entries, t, rows, cols]; the caller holds it against the queue.

    Raises HostError where it has not the shape that the transform states, UnsupportedError for a transform whose
    meaning is not documented.
    """
    if transform.type == "NoTransform":
        return array.reshape(expand_shape(array.shape))
    if transform.type == "ReinterpretShape":
        original, new = _shapes(name, transform)
        parts = _microbatches(name, array, original)
        return np.concatenate([part.reshape(expand_shape(new)) for part in _as(name, parts, new)])
    if transform.type == "Prestride":
        return _prestrided(name, array, transform)
    raise _unsupported(name, transform)


def queue_to_host(name: str, array: Array, transform: Transform, tm: HostTm, untilized: bool) -> Array:
    """An output [entries, t, rows, cols] in the shape that the host asked for: z folded into rows and columns (LAYOUT
    3.5), then narrowed or given another shape. Raises HostError, UnsupportedError."""
    folded = array
    if (tm.hstack_factor, tm.vstack_factor) != (1, 1):
        folded = stack_entries(array, tm.hstack_factor, tm.vstack_factor, tm.row_major, untilized)
    if transform.type == "NoTransform":
        return folded
    if transform.type == "Unpad":
        return _narrowed(name, folded, _stated(name, transform, "unpadded_shape"))
    if transform.type == "ReinterpretShape":
        original, new = _shapes(name, transform)
        narrow = _narrowed(name, folded, original)
        parts = _as(name, narrow.reshape(-1, *original), new)
        return parts.reshape(parts.shape[0] * new[0], *new[1:])
    raise _unsupported(name, transform)


def check_supported(name: str, transform: Transform) -> None:
    """Raise UnsupportedError for an output whose transform is not emulated."""
    if transform.type not in ("NoTransform", "Unpad", "ReinterpretShape"):
        raise _unsupported(name, transform)


def _unsupported(name: str, transform: Transform) -> UnsupportedError:
    return UnsupportedError(
        f"{name}: the runtime transform {transform.type} is not emulated: nothing public says what it does; "
        "give and take tensors in the queue's own shape"
    )


def _shapes(name: str, transform: Transform) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return _stated(name, transform, "original_shape"), _stated(name, transform, "reinterpreted_shape")


def _stated(name: str, transform: Transform, field: str) -> tuple[int, ...]:
    shape: tuple[int, ...] | None = getattr(transform, field)
    if not shape:
        raise HostError(f"{name}: the image states no {field} for its runtime transform {transform.type}")
    return shape


def _microbatches(name: str, array: Array, shape: tuple[int, ...]) -> Array:
    """The array as [n, *shape]; its outermost dimension may be a multiple of the shape's."""
    if array.ndim != len(shape) or array.shape[1:] != shape[1:] or array.shape[0] % shape[0] or not array.size:
        raise HostError(f"{name}: shape {list(array.shape)}, the image states {list(shape)} for the host's tensor")
    return array.reshape(-1, *shape)


def _as(name: str, parts: Array, shape: Sequence[int]) -> Array:
    """[n, ...] with another shape of each part."""
    if parts[0].size != np.prod(shape):
        raise HostError(f"{name}: the image states shape {list(shape)} for a tensor of {parts[0].size} elements")
    return parts.reshape(parts.shape[0], *shape)


def _narrowed(name: str, array: Array, shape: tuple[int, ...]) -> Array:
    """The leading part of each row, column and z of [entries, t, rows, cols], as [n, *shape[1:]] (NETLIST 7.5)."""
    _, z, r, c = expand_shape(shape)
    if any(want > have for want, have in zip((z, r, c), array.shape[1:], strict=True)) or array.shape[0] % shape[0]:
        raise HostError(f"{name}: shape {list(array.shape)} cannot be narrowed to {list(shape)}")
    return array[:, :z, :r, :c].reshape(array.shape[0], *shape[1:])


def _prestrided(name: str, array: Array, transform: Transform) -> Array:
    """NETLIST 8: one stride for both directions, with all of its offsets (LAYOUT 5)."""
    stride = transform.stride_height
    if not stride or transform.stride_width != stride:
        raise HostError(
            f"{name}: Prestride with stride {transform.stride_height}x{transform.stride_width}: both must be equal"
        )
    if array.dtype.name not in ("float16", "float32", "float64", "bfloat16"):
        raise HostError(f"{name}: Prestride takes floats, not {array.dtype}")
    offsets = [(x, y) for y in range(stride) for x in range(stride)]
    return prestride(array.reshape(expand_shape(array.shape)).astype(np.float32), stride, offsets)
