"""The bytes of a tensor file as numpy arrays: BACKEND, BACKEND_TILIZED, and allowed pickles (NETLIST 8)."""

import importlib
import io
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats import host_decode
from buda_emu.arithmetic.tensor.host import prestride, stack_entries
from buda_emu.arithmetic.tensor.layout import EntryLayout, unpack_entry
from buda_emu.arithmetic.tensor.mapped import packed_tiles, page_releaser, pushed_layout
from buda_emu.arithmetic.tensor.referenced import Referenced, reference_to
from buda_emu.arithmetic.tensor.tilize import untilize
from buda_emu.emulator.image.host_checks import (
    TILE,
    extent_of,
    filling,
    tile_rows,
    undivided_indices,
    unequal_strides,
    unlike_cut,
    unlike_entries,
    unlike_parts,
    unrepeatable,
    unstated,
)
from buda_emu.emulator.image.metadata import HostTm, TensorEntry, Transform
from buda_emu.emulator.image.rules import Place
from buda_emu.netlist.model import Queue
from buda_emu.spec.formats import is_raw
from buda_emu.spec.host_shape import expand_shape
from buda_emu.support.checker.text import short_line
from buda_emu.support.errors import HostError, UnsupportedError

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
    return reference_to(array, str(place.member), page_releaser(data), check, bfloat16=entry.format == "Float16_b")


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
            f"{place.archive}: {short_line(place.member)}: this pickle needs the Python package "
            f"{short_line(package)}, which is not installed: pip install {short_line(package)}"
        ) from None
    except Exception as error:  # noqa: BLE001 - a pickle may raise anything
        raise place.error("image-tensor", f"it is not a whole pickle ({short_line(error)})") from None
    given = _from_torch(found) if type(found).__module__.partition(".")[0] == "torch" else found
    if not isinstance(given, np.ndarray):
        raise place.error("image-tensor", f"it holds {short_line(type(found).__name__)}, not a tensor")
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


_NO_INDEX: Final = 0xFFFFFFFF  # what fills up the indices of an embedding: all bits set


@dataclass(frozen=True, slots=True)
class InputState:
    """What the image says of one input. `shape`: the host's, if stated, a batch first. `broadcast`: dimensions of size
    1 that are repeated over their tile instead of filled with zeros."""

    transform: Transform
    shape: tuple[int, ...] | None
    broadcast: tuple[int, ...]


def host_to_queue(name: str, array: Array, state: InputState, queue: Queue, microbatch: int) -> Array:
    """An input in the host's shape as [entries, t, rows, cols]; the caller holds it against the queue.

    Raises HostError where the array has not the shape that the transform states, UnsupportedError for a transform of
    outputs.
    """
    transform = state.transform
    if transform.type == "NoTransform":
        batched = state.shape is not None and array.shape[1:] == state.shape[1:]
        four = expand_shape(array.shape) if batched else _four(array.shape, microbatch)
        return _padded(name, array.reshape(four), queue, microbatch, state.broadcast)
    if transform.type == "ReinterpretShape":
        original, new = _shapes(name, transform)
        _batch(name, array, original)
        view = _as(name, array, new)
        return _padded(name, view.reshape(expand_shape(view.shape)), queue, microbatch, state.broadcast)
    if transform.type == "Prestride":
        return _prestrided(name, array, transform)
    if transform.type == "EmbeddingIndex":
        return _embedding_indices(name, array, _stated(name, transform, "original_shape"), queue)
    raise _unsupported(name, transform, "an input")


def queue_to_host(name: str, array: Array, transform: Transform, original: Sequence[int] | None) -> Array:
    """An output as `folded` gives it, cut to its own rows and columns and reshaped. `original`: the shape that the
    image states for it, if any. Raises HostError, UnsupportedError for a transform of inputs."""
    if transform.type in ("NoTransform", "Concatenate"):
        return _narrowed(name, array, original, original) if original else array
    if transform.type == "Unpad":
        shape = _stated(name, transform, "unpadded_shape")
        return _narrowed(name, array, shape, shape)
    if transform.type == "ReinterpretShape":
        stated, cut = _shapes(name, transform)
        return _narrowed(name, array, cut, stated)
    raise _unsupported(name, transform, "an output")


def folded(array: Array, tm: HostTm, untilized: bool) -> Array:
    """An output [entries, t, rows, cols] with z folded into rows and columns (LAYOUT 3.5). Raises HostError."""
    if (tm.hstack_factor, tm.vstack_factor) == (1, 1):
        return array
    return stack_entries(array, tm.hstack_factor, tm.vstack_factor, tm.row_major, untilized)


def concatenated(arrays: Mapping[str, Array], transforms: Mapping[str, Transform], microbatch: int) -> dict[str, Array]:
    """Folded outputs where those of one `concat_group` are one: it takes the place of the group's first, the others
    vanish (FRONTEND 7). Raises HostError where a group does not fit together."""
    groups: dict[int, list[str]] = {}
    for name in arrays:
        transform = transforms.get(name)
        if transform is not None and transform.type == "Concatenate":
            groups.setdefault(transform.concat_group or 0, []).append(name)
    found: dict[str, Array] = {}
    for name, array in arrays.items():
        group = next((names for names in groups.values() if name in names), None)
        if group is None:
            found[name] = array
        elif name == group[0]:
            found[name] = _joined(
                sorted(group, key=lambda item: transforms[item].concat_index or 0),
                arrays,
                transforms[name].concat_dim or 0,
                microbatch,
            )
    return found


def check_supported(name: str, transform: Transform) -> None:
    """Raise UnsupportedError for an output with a transform of inputs."""
    if transform.type not in ("NoTransform", "Unpad", "ReinterpretShape", "Concatenate"):
        raise _unsupported(name, transform, "an output")


def _unsupported(name: str, transform: Transform, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name}: the runtime transform {transform.type} is not one for {what}; "
        "give and take tensors in the queue's own shape"
    )


def _shapes(name: str, transform: Transform) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return _stated(name, transform, "original_shape"), _stated(name, transform, "reinterpreted_shape")


def _stated(name: str, transform: Transform, field: str) -> tuple[int, ...]:
    _require(name, unstated(transform, field))
    return getattr(transform, field)


def _require(name: str, problem: str) -> None:
    """Raises HostError where there is a problem."""
    if problem:
        raise HostError(f"{name}: {problem}")


def _batch(name: str, array: Array, shape: tuple[int, ...]) -> None:
    """Hold an array against the shape that the image states; its outermost dimension may be a multiple of that's."""
    if array.ndim != len(shape) or array.shape[1:] != shape[1:] or array.shape[0] % shape[0] or not array.size:
        raise HostError(f"{name}: shape {list(array.shape)}, the image states {list(shape)} for the host's tensor")


def _as(name: str, array: Array, shape: Sequence[int]) -> Array:
    """The same elements in entries of another shape; its first number, a batch, does not count."""
    _require(name, unlike_entries(array.size, shape))
    return array.reshape(-1, *shape[1:])


def _padded(name: str, array: Array, queue: Queue, microbatch: int, broadcast: Sequence[int]) -> Array:
    """[w, z, r, c] with whole tiles: filled up with zeros, or repeated (FRONTEND 7). One entry serves a microbatch."""
    four = np.repeat(array, microbatch, axis=0) if array.shape[0] == 1 < microbatch else array
    tile_dim = queue.blocking.tile_dim
    _require(name, unrepeatable(four.shape, tile_dim, broadcast))
    for axis, count, repeated in filling(four.shape, tile_dim, broadcast):
        widths = [(0, count if place == axis else 0) for place in range(4)]
        four = np.pad(four, widths, mode="edge" if repeated else "constant")
    return four


def _four(shape: tuple[int, ...], microbatch: int) -> tuple[int, int, int, int]:
    """[w, z, r, c] of a tensor of fewer dimensions, of which the image does not state the shape. The outermost one is
    the batch; but in two dimensions or one it is only where it has the microbatch's size: otherwise there are one
    matrix' rows and columns, or one row."""
    if len(shape) == 2 and shape[0] != microbatch:
        return 1, 1, *shape
    if len(shape) == 1:
        return (shape[0], 1, 1, 1) if shape[0] == microbatch else (1, 1, 1, shape[0])
    return expand_shape(shape)


def _narrowed(name: str, array: Array, cut: Sequence[int], shape: Sequence[int]) -> Array:
    """Each entry of [entries, t, rows, cols] cut to the rows and columns of `cut`, then given the shape of `shape`. The
    first numbers, batches, do not count."""
    _require(name, unlike_cut(array.shape, cut, shape))
    t, rows, columns = extent_of(cut)
    return array[:, :t, :rows, :columns].reshape(len(array), *shape[1:])


def _joined(names: Sequence[str], arrays: Mapping[str, Array], dim: int, microbatch: int) -> Array:
    parts = [arrays[name] for name in names]
    axis = dim + 4 if dim < 0 else dim
    problem = unlike_parts([part.shape for part in parts], dim)
    if problem or (axis == 0 and any(part.shape[0] % microbatch for part in parts)):
        shapes = ", ".join(f"{name} {list(arrays[name].shape)}" for name in names)
        raise HostError(f"outputs {shapes} cannot be concatenated along dimension {dim}")
    if axis:
        return np.concatenate(parts, axis)
    # Along the batch: microbatch by microbatch, as a front end reads them.
    split = [part.reshape(-1, microbatch, *part.shape[1:]) for part in parts]
    if len({part.shape[0] for part in split}) > 1:
        raise HostError(f"outputs {', '.join(names)} have not equally many microbatches")
    return np.concatenate(split, 1).reshape(-1, *parts[0].shape[1:])


def _prestrided(name: str, array: Array, transform: Transform) -> Array:
    """NETLIST 8: one stride for both directions, with all of its offsets (LAYOUT 5)."""
    _require(name, unequal_strides(transform))
    stride = transform.stride_height or 0
    if array.dtype.name not in ("float16", "float32", "float64", "bfloat16"):
        raise HostError(f"{name}: Prestride takes floats, not {array.dtype}")
    offsets = [(x, y) for y in range(stride) for x in range(stride)]
    return prestride(array.reshape(expand_shape(array.shape)).astype(np.float32), stride, offsets)


def _embedding_indices(name: str, array: Array, original: Sequence[int], queue: Queue) -> Array:
    """Indices [w, n] or [n] as the words of tiles: filled up to whole tiles of rows, then groups of 32 swapped with
    their places, so that an index lies where the device looks for it (FRONTEND 7)."""
    if array.ndim not in (1, 2) or array.dtype.kind not in "iu" or prod(original[1:-1]) != 1:
        raise HostError(f"{name}: EmbeddingIndex takes integers [w, n], not {array.dtype} {list(array.shape)}")
    rows = tile_rows(queue)
    indices = array.reshape(-1, array.shape[-1]).astype(np.uint32)
    indices = np.pad(indices, ((0, 0), (0, -indices.shape[1] % TILE)))
    indices[:, original[-1] :] = _NO_INDEX
    count, width = indices.shape
    _require(name, undivided_indices(width, queue))
    groups = indices.reshape(count, rows, -1, TILE)
    groups = np.pad(groups, ((0, 0), (0, 0), (0, -groups.shape[2] % TILE), (0, 0)))
    tiles = groups.reshape(count, rows, -1, TILE, TILE).swapaxes(2, 3)
    return tiles.reshape(count, 1, rows * TILE, -1)
