"""Host tensors on their way into queues and back: dimensions, element types, strides, stacking (NETLIST 4.6, 7.4)."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from buda_emu.api.backend.tensors.strides import StrideDescriptor
from buda_emu.errors import HostError, UnsupportedError
from buda_emu.formats.host import host_decode, host_read
from buda_emu.netlist.model import Queue
from buda_emu.spec.formats import FORMATS, is_raw

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIDE = 32  # LAYOUT 5: rows and columns of what prestride makes are whole tiles


def batch_first(array: "NDArray[Any]", dim: int) -> "NDArray[Any]":
    """[w, z, r, c] of a tensor of which the last `dim` dimensions are meaningful: its outermost one becomes w.

    Its own inverse, up to a contiguous copy. Raises HostError for another dim, and where a dimension in front of
    the meaningful ones is not 1.
    """
    unused = _unused(dim)
    if any(size != 1 for size in array.shape[:unused]):
        raise HostError(f"a tensor of {dim} dimensions has shape {list(array.shape)}: the unused ones must be 1")
    return array.swapaxes(0, unused)


def batch_back(array: "NDArray[Any]", dim: int) -> "NDArray[Any]":
    """The inverse of `batch_first` for what was read: contiguous."""
    return np.ascontiguousarray(array.swapaxes(0, _unused(dim)))


def _unused(dim: int) -> int:
    if not 1 <= dim <= 4:
        raise HostError(f"a tensor has 1 to 4 dimensions, not {dim}")
    return 4 - dim


def prestride(array: "NDArray[Any]", strides: StrideDescriptor, word: str) -> "NDArray[Any]":
    """Activations [w, z, y, x] as the first layer of a convolution wants them, [w, 1, R, C] (LAYOUT 5).

    Raises HostError for a format other than Float32, Float16, Float16_b, and for offsets that do not fill their box.
    """
    if word not in ("Float32", "Float16", "Float16_b"):
        raise HostError(f"a tensor of {word} cannot be strided on the host")
    s = strides.stride
    window_x, window_y = _window(strides.xy_offsets, s)
    w, channels, height, width = array.shape
    rows, cols = -(-height // s), -(-width // s)
    padded = np.zeros((w, channels, rows * s, cols * s), array.dtype)
    padded[:, :, :height, :width] = array
    parts = padded.reshape(w, channels, rows, s, cols, s)[:, :, :, :window_y, :, :window_x]
    used, length = channels * window_y * window_x, rows * cols
    result = np.zeros((w, 1, _whole(used), _whole(length)), array.dtype)
    # row = ((y mod s) * window_x + x mod s) * channels + z, column = (y div s) * cols + x div s
    result[:, 0, :used, :length] = parts.transpose(0, 3, 5, 1, 2, 4).reshape(w, used, length)
    return result


def _window(offsets: Sequence[tuple[int, int]], stride: int) -> tuple[int, int]:
    """Columns and rows of a stride's window that the kernel reaches."""
    if not offsets:
        raise HostError("a stride descriptor needs xy_offsets")
    spans = [(min(axis), max(axis)) for axis in zip(*offsets, strict=True)]
    extents = [last - first + 1 for first, last in spans]
    if len(set(offsets)) != math.prod(extents):
        raise HostError(f"the {len(set(offsets))} xy_offsets do not fill their box of {extents[0]} x {extents[1]}")
    return min(extents[0], stride), min(extents[1], stride)


def _whole(size: int) -> int:
    return -(-size // _SIDE) * _SIDE


def entries_for(queue: Queue, array: "NDArray[Any]", word: str) -> "NDArray[Any]":
    """What `Emulator.push` takes for a tensor [w, z, r, c] declared as format `word`.

    Raises HostError: w neither 1 nor a multiple of the queue's input_count, sizes that are not the queue's. Tensors
    for raw and flat queues are runs of data, so only their number of elements counts (LAYOUT 2, Megarow).
    """
    w, shape = array.shape[0], queue.blocking.element_shape
    if w != 1 and (queue.input_count < 1 or w % queue.input_count):
        raise HostError(f"push to {queue.name}: {w} entries are neither 1 nor a multiple of {queue.input_count}")
    if array.shape[1:] != shape:
        runs = is_raw(queue.df) or queue.layout == "flat"
        if not runs or math.prod(array.shape[1:]) != math.prod(shape):
            raise HostError(f"push to {queue.name}: an entry has shape {list(shape)}, not {list(array.shape[1:])}")
        array = array.reshape(w, *shape)
    if is_raw(queue.df):
        # Words of the host stay words, whatever integer format they are declared in.
        return (array if array.dtype.kind in "iu" else host_decode(word, array).view("<u4")).astype("<u4", copy=False)
    return host_decode(word, array)


def read_back(queue: Queue, values: "NDArray[Any]", ideal: bool) -> "tuple[NDArray[Any], str]":
    """What the host gets for raw values [n, t, rows, cols] of a queue: elements and their format (NETLIST 7.4).

    `ideal`: precision is ignored, so all but raw queues give Float32.
    """
    df = queue.df
    if is_raw(df):
        return (values, df) if df == "RawUInt32" else (values.astype("<u2"), "RawUInt16")
    if ideal or df == "Float32":
        return values, "Float32"
    elements = host_read(df, values)
    if FORMATS[df].kind == "int":
        return elements, df
    return elements, "Float16_b" if FORMATS[df].family == "b" else "Float16"


def stack(array: "NDArray[Any]", h: int, v: int, row_major: bool, untilized: bool) -> "NDArray[Any]":
    """[n, t, R, C] with h z-slices side by side and v below each other: [n, t/(h*v), R*v, C*h] (LAYOUT 3.5).

    Raises HostError where they do not divide t, and for columns of what the device has untilized.
    """
    if h == v == 1:
        return array
    n, t, rows, cols = array.shape
    if h < 1 or v < 1 or t % (h * v):
        raise HostError(f"hstack_factor {h} and vstack_factor {v} do not divide t = {t}")
    if untilized and (h > 1 or not row_major):
        raise HostError("an untilized queue can be stacked by rows only, in row-major order")
    depth = t // (h * v)
    if row_major:
        parts = array.reshape(n, depth, v, h, rows, cols).transpose(0, 1, 2, 4, 3, 5)
    else:
        parts = array.reshape(n, depth, h, v, rows, cols).transpose(0, 1, 3, 4, 2, 5)
    return parts.reshape(n, depth, v * rows, h * cols)


def refuse_repacking(df: str, ideal: bool) -> None:
    """Raises UnsupportedError where rounding again would change packed values: Fp8_e4m3 (FORMATS 3.6)."""
    if df == "Fp8_e4m3" and not ideal:
        raise UnsupportedError("packed Fp8_e4m3 tensors cannot be pushed: rounding changes them each time")
