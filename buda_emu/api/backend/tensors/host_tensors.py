"""Host tensors on their way into queues and back: dimensions, element types, strides (NETLIST 4.6, 7.4)."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from buda_emu.api.backend.tensors.strides import StrideDescriptor
from buda_emu.errors import HostError, UnsupportedError
from buda_emu.formats.host import host_decode, host_read
from buda_emu.netlist.model import Queue
from buda_emu.spec.formats import FORMATS, is_raw
from buda_emu.tensor.host import prestride

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


def strided(array: "NDArray[Any]", strides: StrideDescriptor, word: str) -> "NDArray[Any]":
    """Activations [w, z, y, x] as the first layer of a convolution wants them, [w, 1, R, C] (LAYOUT 5).

    Raises HostError for a format other than Float32, Float16, Float16_b, and for offsets that do not fill their box.
    """
    if word not in ("Float32", "Float16", "Float16_b"):
        raise HostError(f"a tensor of {word} cannot be strided on the host")
    return prestride(array, strides.stride, strides.xy_offsets)


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


def refuse_repacking(df: str, ideal: bool) -> None:
    """Raises UnsupportedError where rounding again would change packed values: Fp8_e4m3 (FORMATS 3.6)."""
    if df == "Fp8_e4m3" and not ideal:
        raise UnsupportedError("packed Fp8_e4m3 tensors cannot be pushed: rounding changes them each time")
