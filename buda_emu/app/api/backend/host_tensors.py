"""Conversions of host tensors: into entries of queues and back, into packed buffers, and to files."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from buda_emu.app.api.backend.tensor_descs import StrideDescriptor
from buda_emu.arithmetic.formats.host import host_decode, host_read
from buda_emu.arithmetic.tensor.host import prestride
from buda_emu.arithmetic.tensor.layout import EntryLayout, pack_entry, tilize, unpack_entry, untilize
from buda_emu.netlist.model import Netlist, Queue
from buda_emu.spec.formats import FORMATS, is_raw
from buda_emu.support.errors import HostError, UnsupportedError
from buda_emu.support.files import write_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]


def move_batch_first(array: "NDArray[Any]", dim: int) -> "NDArray[Any]":
    """Return a view of a tensor [w, z, r, c] that uses only its last `dim` dimensions, with the outermost of these
    moved to w.

    Raises HostError for a `dim` that is not 1 to 4, and for an unused dimension whose size is not 1.
    """
    unused = _unused_dims(dim)
    if any(size != 1 for size in array.shape[:unused]):
        raise HostError(f"a tensor of {dim} dimensions has shape {list(array.shape)}: the unused ones must be 1")
    return array.swapaxes(0, unused)


def move_batch_back(array: "NDArray[Any]", dim: int) -> "NDArray[Any]":
    """Return the inverse of `move_batch_first` as a contiguous array."""
    return np.ascontiguousarray(array.swapaxes(0, _unused_dims(dim)))


def _unused_dims(dim: int) -> int:
    """Return how many of the four dimensions are unused; they come first. Raises HostError."""
    if not 1 <= dim <= 4:
        raise HostError(f"a tensor has 1 to 4 dimensions, not {dim}")
    return 4 - dim


def apply_strides(array: "NDArray[Any]", strides: StrideDescriptor, word: str) -> "NDArray[Any]":
    """Rearrange activations [w, z, y, x] of format `word` into the rows [w, 1, R, C] that the first layer of a
    convolution reads (LAYOUT 5). Raises HostError for a format other than Float32, Float16, Float16_b, and for offsets
    that do not fill their box."""
    if word not in ("Float32", "Float16", "Float16_b"):
        raise HostError(f"a tensor of {word} cannot be strided on the host")
    return prestride(array, strides.stride, strides.xy_offsets)


def entries_for(queue: Queue, array: "NDArray[Any]", word: str) -> "NDArray[Any]":
    """Convert a tensor [w, z, r, c] declared as format `word` into entries [w, t, rows, cols] for `Emulator.push`.

    Raises HostError for a w that is neither 1 nor a multiple of the queue's input_count, and for sizes that are not the
    queue's. Tensors for raw and flat queues are runs of data, so only their number of elements counts (LAYOUT 2,
    Megarow).
    """
    w = array.shape[0]
    shape = queue.blocking.element_shape
    if w != 1 and (queue.input_count < 1 or w % queue.input_count):
        raise HostError(f"push to {queue.name}: {w} entries are neither 1 nor a multiple of {queue.input_count}")
    if array.shape[1:] != shape:
        is_run_of_data = is_raw(queue.df) or queue.layout == "flat"
        if not is_run_of_data or math.prod(array.shape[1:]) != math.prod(shape):
            raise HostError(f"push to {queue.name}: an entry has shape {list(shape)}, not {list(array.shape[1:])}")
        array = array.reshape(w, *shape)
    if is_raw(queue.df):
        # Words of the host stay words, whatever integer format they are declared in.
        if array.dtype.kind not in "iu":
            array = host_decode(word, array).view("<u4")
        return array.astype("<u4", copy=False)
    return host_decode(word, array)


def host_elements(queue: Queue, values: "NDArray[Any]", ideal: bool) -> "tuple[NDArray[Any], str]":
    """Convert raw values [n, t, rows, cols] of a queue into the elements that the host reads, and return these with
    their format (NETLIST 7.4).

    With `ideal`, formats are ignored: every queue but a raw one gives Float32.
    """
    df = queue.df
    if df == "RawUInt32":
        return values, df
    if is_raw(df):
        return values.astype("<u2"), "RawUInt16"
    if ideal or df == "Float32":
        return values, "Float32"
    elements = host_read(df, values)
    if FORMATS[df].kind == "int":
        return elements, df
    if FORMATS[df].family == "b":
        return elements, "Float16_b"
    return elements, "Float16"


def refuse_repacking(df: str, ideal: bool) -> None:
    """Raise UnsupportedError for Fp8_e4m3, whose packed values change when they are rounded again (FORMATS 3.6); do
    nothing for other formats, nor with `ideal`, where formats are ignored."""
    if df == "Fp8_e4m3" and not ideal:
        raise UnsupportedError("packed Fp8_e4m3 tensors cannot be pushed: rounding changes them each time")


def packed_layout(netlist: Netlist, queue: Queue) -> EntryLayout:
    """Return the layout of a queue's entries in memory. Raises HostError unless they are tilized."""
    if queue.layout != "tilized":
        raise HostError(f"queue {queue.name} is {queue.layout}: packed tensors are for tilized queues")
    return EntryLayout(queue.df, queue.blocking, "tilized", netlist.arch.alignment)


def pack(netlist: Netlist, queue: Queue, entries: "NDArray[Any]") -> "Bytes":
    """Pack entries [w, t, rows, cols] into uint8[grid cells, w * entry_bytes]. They are float32, or uint32 for raw
    queues. Raises HostError for a queue that is not tilized."""
    layout = packed_layout(netlist, queue)
    tiles = tilize(entries.view("<f4"), queue.blocking.tile_dim, layout.megarow)
    with np.errstate(all="ignore"):
        packed = [np.stack(pack_entry(entry, layout)) for entry in tiles]
    return np.concatenate(packed, axis=1)


def unpack(netlist: Netlist, queue: Queue, data: "Bytes", df: str) -> "NDArray[Any]":
    """Return the entries [w, t, rows, cols] of buffers as `pack` makes them, which the sender declares as format `df`.
    Raises HostError for a queue that is not tilized, another format than the queue's, and a wrong number or size of
    buffers."""
    layout = packed_layout(netlist, queue)
    if df != queue.df:
        raise HostError(f"push to {queue.name}: packed as {df}, the queue holds {queue.df}")
    cells, size = data.shape
    if cells != queue.blocking.cells or not size or size % layout.entry_bytes:
        raise HostError(
            f"push to {queue.name}: {cells} buffers of {size} bytes, "
            f"expected {queue.blocking.cells} of a multiple of {layout.entry_bytes}"
        )
    parts = data.reshape(cells, -1, layout.entry_bytes).swapaxes(0, 1)
    tiles = np.stack([unpack_entry(list(entry), layout) for entry in parts])
    values = untilize(tiles, queue.blocking.tile_dim, layout.megarow)
    return values.view("<u4") if is_raw(queue.df) else values


def write_words(path: str, data: "NDArray[Any]") -> None:
    """Write the bytes of an array in whole 32-bit words; the last one is filled up with zeros."""
    raw = data.tobytes()
    padding = bytes(-len(raw) % 4)
    write_file(path, lambda stream: stream.write(raw + padding))


def read_words(path: str, size: int) -> bytes:
    """Return the first `size` bytes of a file of whole 32-bit words. Raises HostError for a file of another size."""
    expected = -(-size // 4) * 4
    with Path(path).open("rb") as file:
        raw = file.read(expected + 1)
    if len(raw) != expected:
        size_text = f"{len(raw)}" if len(raw) < expected else f"more than {expected}"
        raise HostError(f"{path} has {size_text} bytes, expected {expected}")
    return raw[:size]
