"""The bytes of a tensor file as numpy arrays: BACKEND, BACKEND_TILIZED, and allowed pickles (NETLIST 8)."""

import importlib
import io
import pickle
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from buda_emu.checker.text import shown
from buda_emu.errors import HostError
from buda_emu.formats import host_decode
from buda_emu.image.rules import Place
from buda_emu.image.tensor_entry import TensorEntry
from buda_emu.netlist.model import Queue
from buda_emu.spec.formats import is_raw
from buda_emu.spec.host_shape import expand_shape
from buda_emu.tensor.layout import EntryLayout, unpack_entry
from buda_emu.tensor.mapped import giving_back
from buda_emu.tensor.packed import packed_tiles, pushed_layout
from buda_emu.tensor.referenced import Referenced, referenced
from buda_emu.tensor.tilize import untilize

Array = NDArray[Any]

ELEMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Float32": "<f4", "Float16": "<f2", "Float16_b": "<u2", "Int32": "<i4", "Int8": "<i1", "UInt8": "<u1",
        "UInt16": "<u2", "RawUInt32": "<u4", "RawUInt16": "<u2", "RawUInt8": "<u1",
    }
)  # fmt: skip
"""Element type of a raw tensor file for each format that a host tensor may have (NETLIST 4.6)."""


def raw_tensor(data: bytes, entry: TensorEntry) -> Array:
    """A .bin file as [entries, t, rows, cols] in its own element type; bfloat16 as float32, without loss."""
    array = np.frombuffer(data, np.dtype(ELEMENTS[entry.format])).reshape(entry.pushed_shape)
    return host_decode("Float16_b", array) if entry.format == "Float16_b" else array


def tilized_tensor(data: bytes, queue: Queue, alignment: int, place: Place, *, to_push: bool = False) -> Array:
    """A .tbin file as float32 [entries, t, rows, cols], or uint32 of a RawUInt queue (NETLIST 8, LAYOUT 3.1).

    `to_push`: the values that become the very tiles of the file when they are pushed; they differ for Fp8_e4m3 only.
    Raises ImageError for tiles whose headers do not state their size.
    """
    as_held = EntryLayout(queue.df, queue.blocking, "tilized", alignment)
    layout = pushed_layout(queue.df, queue.blocking, alignment) if to_push else as_held
    buffers = np.frombuffer(data, np.uint8).reshape(queue.blocking.cells, -1, layout.entry_bytes)
    entries: list[NDArray[np.float32]] = []
    for number in range(buffers.shape[1]):
        try:
            with np.errstate(all="ignore"):
                entries.append(unpack_entry(list(buffers[:, number]), layout))
        except HostError as error:
            raise place.error("image-tensor", f"entry {number}: {error}") from None
    values = untilize(np.stack(entries), queue.blocking.tile_dim, layout.megarow)
    return values.view(np.uint32) if is_raw(queue.df) else values


MAPPED: Final = ("Float32", "Float16_b")
"""Formats of .bin files whose elements are float32 or the upper half of one."""


def mapped_raw(data: NDArray[np.uint8], entry: TensorEntry, place: Place, check: Callable[[], None]) -> Referenced:
    """A .bin file in one of the formats MAPPED by reference. `check` raises where the image is not what it was."""
    array = data.view(ELEMENTS[entry.format]).reshape(entry.pushed_shape)
    return referenced(array, str(place.member), giving_back(data), check, bfloat16=entry.format == "Float16_b")


def mapped_tiles(
    data: NDArray[np.uint8], queue: Queue, alignment: int, place: Place, check: Callable[[], None]
) -> Referenced:
    """A .tbin file by reference, as `tilized_tensor` with `to_push`; of no format of words. `check` raises where the
    image is not what it was."""
    return packed_tiles(
        data,
        pushed_layout(queue.df, queue.blocking, alignment),
        str(place.member),
        check,
        lambda said: place.error("image-tensor", said),
    )


def pickled_tensor(data: bytes, place: Place) -> Array:
    """A pickled torch tensor or numpy array as [entries, t, rows, cols] (NETLIST 7.4).

    Loading runs whatever code the pickle holds: callers make sure that the user wants that. Raises HostError where a
    module is missing (torch, most likely), ImageError for anything else that goes wrong.
    """
    try:
        found: Any = pickle.load(io.BytesIO(data))
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise HostError(
            f"{place.archive}: {shown(place.member)}: this pickle needs the Python package {shown(package)}, which is "
            f"not installed: pip install {shown(package)}"
        ) from None
    except Exception as error:  # noqa: BLE001 - a pickle may raise anything
        raise place.error("image-tensor", f"it is not a whole pickle ({shown(error)})") from None
    given = _from_torch(found) if type(found).__module__.partition(".")[0] == "torch" else found
    if not isinstance(given, np.ndarray):
        raise place.error("image-tensor", f"it holds {shown(type(found).__name__)}, not a tensor")
    array = cast("Array", given)
    if array.dtype.kind not in "fiub" or array.ndim == 0 or not array.size:
        raise place.error("image-tensor", f"it holds {array.size} elements of type {array.dtype}")
    shape = array.shape if array.ndim > 2 else (1, *(1,) * (2 - array.ndim), *array.shape)  # NETLIST 7.4: 2-D has dim 3
    try:
        return array.reshape(expand_shape(shape))
    except HostError as error:
        raise place.error("image-tensor", str(error)) from None


def _from_torch(tensor: Any) -> Any:
    """A torch tensor as numpy's; bfloat16, which numpy does not have, as float32."""
    if not hasattr(tensor, "detach"):
        return tensor
    plain = tensor.detach().cpu()
    return (plain.float() if plain.dtype == importlib.import_module("torch").bfloat16 else plain).numpy()


def for_queue(array: Array, declared: str, queue: Queue) -> Array:
    """What to push so that the queue holds a tensor `declared` in a format: words for a RawUInt queue, else values.

    For a RawUInt queue a signed tensor is reinterpreted as unsigned of the same width (NETLIST 8), a float one gives
    the bits of its float32 (FORMATS 3.9). Raw words are the bits of a float32 in any other queue (FORMATS 3.10).
    """
    if not is_raw(queue.df):
        return array.astype(np.uint32).view(np.float32) if declared and is_raw(declared) else array
    if array.dtype.kind == "i":
        array = array.astype(np.int32) if array.dtype.itemsize == 8 else array  # NETLIST 7.4: int64 is cast first
        return array.view(f"u{array.dtype.itemsize}").astype(np.uint32)
    if array.dtype.kind == "f":
        single = host_decode("Float16", array) if array.dtype == np.float16 else array.astype(np.float32)
        return single.view(np.uint32)
    return array.astype(np.uint32)
