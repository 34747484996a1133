"""Conversion of host tensors into queue entries and back (NETLIST 4.6, FORMATS 3.10 and 3.11, LAYOUT 2), and loans of
arrays to a machine's memory, which then refers to the array of the host instead of a copy."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats import host_decode, host_read, host_widen
from buda_emu.arithmetic.tensor.layout import EntryLayout, Form, pack_entry, tilize, unpack_entry, untilize
from buda_emu.arithmetic.tensor.referenced import BLOCK, Referenced
from buda_emu.emulator.memory.store import Source
from buda_emu.emulator.ops.base import Parallel
from buda_emu.emulator.ops.operands import convert
from buda_emu.emulator.runtime.machine.memory import Channel, Memory
from buda_emu.netlist.model import Netlist, Queue
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.formats import is_raw
from buda_emu.support.errors import HostError
from buda_emu.support.unmasked import refuse_masked_arrays

_SMALL_FLOATS = ("bfloat16", "float8_", "float6_", "float4_")  # of ml_dtypes: every value is a float32
_SMALL_INTS = ("int2", "uint2", "int4", "uint4")


def host_array(tensor: object, queue: Queue) -> NDArray[np.float32]:
    """Convert a tensor to float32 [entries, t, rows, cols], for a RawUInt queue to words as the bits of float32. A
    float32 array is not copied. Raises HostError for an element type or a shape that the queue does not take."""
    context = f"push to {queue.name}"
    plain = as_numpy(tensor, context)
    array = with_batch(plain)
    shape = queue.blocking.element_shape
    if array.ndim != 4 or array.shape[1:] != shape:
        raise HostError(f"{context}: shape {list(plain.shape)}, expected [entries, {shape[0]}, {shape[1]}, {shape[2]}]")
    if is_raw(queue.df):
        if array.dtype.kind not in "iu":
            raise HostError(f"{context}: {queue.df} takes unsigned integers (uint32), not {array.dtype}")
        return np.ascontiguousarray(array.astype(np.uint32, copy=False)).view(np.float32)
    return as_float32(array, context)


def as_float32(array: NDArray[Any], context: str) -> NDArray[np.float32]:
    """Convert the elements of a host tensor to float32; a float32 array is returned as it is. Values beyond float32
    become infinite. Raises HostError, which begins with `context`, for an element type that is not numeric or not
    known."""
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype == np.float32:
        return array
    if array.dtype == np.float16:
        return host_decode("Float16", array)
    if array.dtype.kind in "iub" or array.dtype == np.float64:
        with np.errstate(all="ignore"):  # what is too large for float32 is infinite
            return array.astype(np.float32)
    if array.dtype.name.startswith(_SMALL_FLOATS) or array.dtype.name in _SMALL_INTS:
        return array.astype(np.float32)
    raise HostError(f"{context}: element type {array.dtype} is not one a host tensor may have")


def with_batch(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array with the dimensions of 1 that a host may leave out: three dimensions are [entries, rows, cols],
    two are [rows, cols] of one entry (NETLIST 7.4). Any other number of dimensions is left as it is."""
    if array.ndim == 3:
        return array[:, np.newaxis]
    if array.ndim == 2:
        return array[np.newaxis, np.newaxis]
    return array


def require_names(arrays: object, labels: Sequence[str]) -> None:
    """Raise HostError, which lists the input names `labels`, unless the inputs of a model are a mapping from names."""
    if not isinstance(arrays, Mapping):
        kind = type(arrays).__name__
        raise HostError(f"run: a {kind}: give inputs by name ({', '.join(labels)}), or call the model with them")


def as_numpy(tensor: object, context: str = "tensor") -> NDArray[Any]:
    """Return a tensor (numpy, torch on the CPU, or anything that numpy takes) as a numpy array, without a copy where
    memory can be shared. torch's bfloat16 and float8 come as float32. Raises HostError, which begins with `context`,
    for a value that holds no numbers."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        return _from_torch(tensor, torch, context)
    refuse_masked_arrays(tensor, context)
    try:
        array = np.asarray(tensor)
    except (ValueError, TypeError) as error:
        raise HostError(f"{context}: {type(tensor).__name__} is not an array: {error}") from None
    if array.dtype.hasobject:
        raise HostError(f"{context}: {type(tensor).__name__} is not an array of numbers")
    return array


def _from_torch(tensor: Any, torch: Any, context: str) -> NDArray[Any]:
    """Return a torch tensor on the CPU as a numpy array, sharing memory where possible; bfloat16 and float8 come as
    float32. Raises HostError for a sparse, quantised or remote tensor and for an element type that numpy lacks.
    `context` begins the message."""
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise HostError(f"{context}: a {tensor.layout} tensor; pass a dense one (tensor.to_dense(), .dequantize())")
    if tensor.device.type != "cpu":
        raise HostError(f"{context}: the tensor is on {tensor.device}; pass tensor.cpu()")
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.dtype == torch.bfloat16:
        words = plain.contiguous().view(torch.int16).numpy().view(np.uint16)
        return (words.astype(np.uint32) << 16).view(np.float32)
    if plain.dtype.is_floating_point and plain.dtype.itemsize == 1:
        return plain.to(torch.float32).numpy()
    try:
        return plain.numpy()
    except (TypeError, RuntimeError) as error:
        raise HostError(f"{context}: element type {plain.dtype} is not one a host tensor may have: {error}") from None


Readout = Literal["raw", "host"]


class HostIo:
    """The conversion between host tensors and tiles. `quantised`: pushes are rounded to the queue's format (precision
    "format"). Pointers and slots are handled by `buda_emu.emulator.runtime.host.exchange`."""

    def __init__(self, netlist: Netlist, parallel: Parallel, quantised: bool) -> None:
        self._netlist = netlist
        self._parallel = parallel
        self._quantised = quantised
        self._ops = netlist.ops

    def label(self, queue: Queue) -> str:
        """Return the format label that entries pushed by the host carry (OPS 3.1): the queue's format, or Float32
        without rounding."""
        if self._quantised or is_raw(queue.df):
            return queue.df
        return "Float32"

    def values(self, queue: Queue, tiles: NDArray[np.float32], readout: Readout) -> NDArray[Any]:
        """Convert entries float32[w, tiles, 1024] to what the host reads: [w, t, rows, cols], float32 or uint32
        (RawUInt)."""
        t, rows, cols = queue.blocking.shape
        shaped = tiles.reshape(len(tiles), t, rows, cols, 32, 32)
        values = untilize(shaped, queue.blocking.tile_dim, _is_megarow(queue))
        if is_raw(queue.df):
            return values.view(np.uint32)
        if readout == "raw" or not self._quantised:
            return values
        return host_widen(queue.df, host_read(queue.df, values))

    def image(self, queue: Queue, tiles: NDArray[np.float32]) -> list[NDArray[np.uint8]]:
        """Return the bytes of one entry, float32[tiles, 1024], as the device would hold it: one array for each buffer
        of the grid, row-major (LAYOUT 3). Raises UnsupportedError for a format without that layout."""
        with np.errstate(all="ignore"):
            return pack_entry(tiles.reshape(*queue.blocking.shape, 32, 32), self._entry_layout(queue))

    def with_bytes(self, queue: Queue, tiles: NDArray[np.float32], offset: int, data: bytes) -> NDArray[np.float32]:
        """Return one entry, float32[tiles, 1024], after `data` was written to its image. `offset` counts the bytes of
        all buffers of the image one after the other. A value whose bytes do not change keeps its bits. Raises HostError
        for bytes outside of the image or in the header of a tile."""
        before = self.image(queue, tiles)
        image = np.concatenate(before)
        if not 0 <= offset <= offset + len(data) <= image.size:
            raise HostError(
                f"an entry of {queue.name} has bytes 0..{image.size - 1}, not {offset}..{offset + len(data) - 1}"
            )
        image[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
        layout = self._entry_layout(queue)
        old, new = (
            unpack_entry(buffers, layout).reshape(tiles.shape) for buffers in (before, np.split(image, len(before)))
        )
        return np.where(old.view(np.uint32) == new.view(np.uint32), tiles, new)

    def _entry_layout(self, queue: Queue) -> EntryLayout:
        """Return the layout of a queue's entry in device memory: flat as the host pushed it, untilized by its producer,
        or in tiles."""
        producer = self._ops.get(queue.input)
        form: Form = "flat" if queue.layout == "flat" else "tilized"
        if producer is not None and producer.untilize_output:
            form = "untilized"
        return EntryLayout(queue.df, queue.blocking, form, self._netlist.arch.alignment)

    def host_array(self, queue: Queue, array: object) -> NDArray[np.float32]:
        """Convert the caller's array to float32 [entries, t, rows, cols], for a RawUInt queue to words as the bits of
        float32 (NETLIST 7.4). Raises HostError for a shape or element type that does not fit."""
        return host_array(array, queue)

    def tiles(self, queue: Queue, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Convert entries [w, t, rows, cols] to tiles float32[w, tiles, 1024], rounded to the queue's format in
        precision "format"."""
        tiles = tilize(values, queue.blocking.tile_dim, _is_megarow(queue))
        result = tiles.reshape(len(values), -1, TILE_ELEMENTS)
        if self._quantised and queue.df != "Float32":
            with np.errstate(all="ignore"):
                convert(result, queue.df, self._parallel, truncate=False)
        return result

    def source(self, queue: Queue, array: Referenced) -> Source:
        """Return a function that reads, when it is called, the tiles of slices first..last of an array that is held by
        reference, as a push of the array would store them. `array` is [entries, t, rows, cols]."""
        _, rows, cols = queue.blocking.shape
        height, width = queue.blocking.tile_dim
        slices = array.reshape(-1, rows * height, cols * width)
        step = max(1, BLOCK // (cols * TILE_ELEMENTS))

        def read(first: int, last: int) -> NDArray[np.float32]:
            """Return the tiles of slices first..last (the last one not included), read a block of rows at a time."""
            tiles = np.empty((last - first, rows, cols, TILE_ELEMENTS), np.float32)
            for number in range(first, last):
                for row in range(0, rows, step):
                    end = min(row + step, rows)
                    one_slice = slice(number, number + 1)
                    element_rows = slice(row * height, end * height)
                    box = one_slice, element_rows, slice(0, cols * width)
                    values = np.ascontiguousarray(slices.read(box))[np.newaxis]
                    if is_raw(queue.df):
                        words = values.astype(np.uint32).view(np.float32)
                    else:
                        words = as_float32(values, queue.name)
                    tiles[number - first, row:end] = self.tiles(queue, words).reshape(end - row, cols, TILE_ELEMENTS)
            array.give_back()
            return tiles.reshape(last - first, rows * cols, TILE_ELEMENTS)

        return read


def _is_megarow(queue: Queue) -> bool:
    """Return whether the tiles of a queue hold consecutive runs of the host's data instead of 32x32 blocks (LAYOUT 2
    Megarow)."""
    return is_raw(queue.df) or queue.layout == "flat"


def whole_tiles(entry: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the elements of one entry, in row-major order, as float32[tiles, 1024]; the last row is filled with
    zeros."""
    count = -(-entry.size // TILE_ELEMENTS)
    flat = np.zeros(count * TILE_ELEMENTS, np.float32)
    flat[: entry.size] = entry.reshape(-1)
    return flat.reshape(count, TILE_ELEMENTS)


SHARE_OF_LENT: Final = 4
"""A lent array may be copied at once as long as all that the memory holds stays within 1/4 of its limit. A larger share
would leave less room for what ops compute."""
_OF_SHARE: Final = 8
"""A lent array is copied at once only if its size is at most 1/8 of that share: reading it takes its size once more."""


class Lender:
    """Lends arrays to the memory of one machine."""

    def __init__(self, netlist: Netlist, memory: Memory, host: HostIo) -> None:
        self._netlist = netlist
        self._memory = memory
        self._host = host

    def may_lend(self, channel: Channel, queue: Queue, array: Referenced) -> bool:
        """Return whether a queue or ram may refer to this array instead of copying it: shape and elements fit, the
        memory is no view of another ram's, and no tilizer reads the rows as the host gave them."""
        view = channel.view
        count = len(array) if array.ndim == 4 else 0
        fits = array.shape[1:] == queue.blocking.element_shape and 0 < count <= view.entries
        has_wrong_elements = is_raw(queue.df) and array.dtype.kind not in "iu"
        tilized = channel.flat is not None and self._has_tilizer(queue)
        return fits and not has_wrong_elements and view.name == view.store.name and not tilized

    def lend(self, channel: Channel, queue: Queue, array: Referenced) -> bool:
        """Let a queue or ram refer to an array, if nothing is stored there yet; a small array is copied at once, as
        long as all queues stay within a share of the memory limit. Returns False, and does nothing, where something is
        stored."""
        view = channel.view
        count = len(array)
        memory = self._memory
        share = memory.limit // SHARE_OF_LENT
        size = view.store.slice_bytes(count * view.t)
        is_small = memory.held + size <= share and size <= share // _OF_SHARE
        if not view.store.lend(self._host.source(queue, array), count * view.t, self._host.label(queue)):
            return False
        if is_small:
            view.store.settle()
        else:
            memory.lends = True
        return True

    def _has_tilizer(self, queue: Queue) -> bool:
        """Return whether some op (a tilizer) reads the queue's rows as the host gave them."""
        readers = (op for op in self._netlist.ops.values() if queue.name in op.inputs)
        return any(op.has("reads what was pushed") for op in readers)
