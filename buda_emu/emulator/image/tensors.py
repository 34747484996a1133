"""Conversion of tensor files to numpy arrays: BACKEND, BACKEND_TILIZED, and pickles where allowed (NETLIST 8)."""

import importlib
import io
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats import host_decode
from buda_emu.arithmetic.tensor.host import prestride, stack_entries
from buda_emu.arithmetic.tensor.layout import EntryLayout, unpack_entry, untilize
from buda_emu.arithmetic.tensor.mapped import packed_tiles, page_releaser, pushed_layout
from buda_emu.arithmetic.tensor.referenced import Referenced, reference_to
from buda_emu.emulator.image.host_checks import (
    concat_problem,
    cut_problem,
    entries_problem,
    extent_of,
    index_problem,
    missing_shape_problem,
    repeat_problem,
    stride_problem,
    tile_padding,
    tile_rows,
)
from buda_emu.emulator.image.metadata import HostTm, TensorEntry, Transform
from buda_emu.emulator.image.rules import Place
from buda_emu.netlist.model import Queue
from buda_emu.spec.blocking import TILE_EDGE
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
    """Return the array of a .bin file as [entries, t, rows, cols] in its own element type; bfloat16 as float32, without
    loss."""
    array = np.frombuffer(data, np.dtype(ELEMENTS[entry.format])).reshape(entry.pushed_shape)
    if entry.format == "Float16_b":
        return host_decode("Float16_b", array)
    return array


def tilized_tensor(data: bytes, queue: Queue, alignment: int, place: Place, *, to_push: bool = False) -> Array:
    """Return the array of a .tbin file as float32 [entries, t, rows, cols], or uint32 for a RawUInt queue (NETLIST 8,
    LAYOUT 3.1).

    With `to_push` they are the values that become the very tiles of the file when they are pushed; they differ for
    Fp8_e4m3 only. Raises ImageError for tiles whose headers do not state their size."""
    as_held = EntryLayout(queue.df, queue.blocking, "tilized", alignment)
    if to_push:
        layout = pushed_layout(queue.df, queue.blocking, alignment)
    else:
        layout = as_held
    buffers = np.frombuffer(data, np.uint8).reshape(queue.blocking.cells, -1, layout.entry_bytes)
    entries: list[NDArray[np.float32]] = []
    for number in range(buffers.shape[1]):
        try:
            with np.errstate(all="ignore"):
                entries.append(unpack_entry(list(buffers[:, number]), layout))
        except HostError as error:
            raise place.error("image-tensor", f"entry {number}: {error}") from None
    values = untilize(np.stack(entries), queue.blocking.tile_dim, layout.megarow)
    if is_raw(queue.df):
        return values.view(np.uint32)
    return values


MAPPED: Final = ("Float32", "Float16_b")
"""Formats of .bin files whose elements are float32 or the upper half of one."""


def map_raw(data: NDArray[np.uint8], entry: TensorEntry, place: Place, check: Callable[[], None]) -> Referenced:
    """Return, by reference to the mapped bytes `data`, the array of a .bin file in one of the formats MAPPED. `check`
    is called around each read, and raises where the image changed."""
    array = data.view(ELEMENTS[entry.format]).reshape(entry.pushed_shape)
    return reference_to(array, str(place.member), page_releaser(data), check, bfloat16=entry.format == "Float16_b")


def map_tiles(
    data: NDArray[np.uint8], queue: Queue, alignment: int, place: Place, check: Callable[[], None]
) -> Referenced:
    """Return, by reference to the mapped bytes `data`, the array of a .tbin file, with the values that become the same
    tiles when they are pushed. The queue's format is not one of raw words. `check` is called around each read, and
    raises where the image changed; reads raise ImageError for broken tiles."""
    return packed_tiles(
        data,
        pushed_layout(queue.df, queue.blocking, alignment),
        str(place.member),
        check,
        lambda problem: place.error("image-tensor", problem),
    )


def pickled_tensor(data: bytes, place: Place) -> Array:
    """Load a pickled torch tensor or numpy array as [entries, t, rows, cols] (NETLIST 7.4).

    Loading runs whatever code the pickle holds: callers make sure that the user wants that. Raises HostError where a
    module is missing (torch, most likely), ImageError for anything else that goes wrong."""
    try:
        loaded: Any = pickle.load(io.BytesIO(data))
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise HostError(
            f"{place.archive}: {short_line(place.member)}: this pickle needs the Python package "
            f"{short_line(package)}, which is not installed: pip install {short_line(package)}"
        ) from None
    except Exception as error:  # noqa: BLE001 - a pickle may raise anything
        raise place.error("image-tensor", f"it is not a whole pickle ({short_line(error)})") from None
    if type(loaded).__module__.partition(".")[0] == "torch":
        tensor = _from_torch(loaded)
    else:
        tensor = loaded
    if not isinstance(tensor, np.ndarray):
        raise place.error("image-tensor", f"it holds {short_line(type(loaded).__name__)}, not a tensor")
    array = cast("Array", tensor)
    if array.dtype.kind not in "fiub" or array.ndim == 0 or not array.size:
        raise place.error("image-tensor", f"it holds {array.size} elements of type {array.dtype}")
    # NETLIST 7.4: 2-D has dim 3
    if array.ndim > 2:
        shape = array.shape
    else:
        shape = (1, *(1,) * (2 - array.ndim), *array.shape)
    try:
        return array.reshape(expand_shape(shape))
    except HostError as error:
        raise place.error("image-tensor", str(error)) from None


def _from_torch(tensor: Any) -> Any:
    """Return a torch tensor as a numpy array, bfloat16 as float32; any other object of torch as it is."""
    if not hasattr(tensor, "detach"):
        return tensor
    plain = tensor.detach().cpu()
    return (plain.float() if plain.dtype == importlib.import_module("torch").bfloat16 else plain).numpy()


def array_to_push(array: Array, declared: str, queue: Queue) -> Array:
    """Return the array that an image's tensor of format `declared` is pushed as: words for a RawUInt queue, else
    values.

    For a RawUInt queue a signed tensor is reinterpreted as unsigned of the same width (NETLIST 8), a float one gives
    the bits of its float32 (FORMATS 3.9). A tensor declared raw is read as the bits of float32 in any other queue
    (FORMATS 3.10)."""
    if not is_raw(queue.df):
        if declared and is_raw(declared):
            return array.astype(np.uint32).view(np.float32)
        return array
    if array.dtype.kind == "i":
        # NETLIST 7.4: int64 is cast first
        if array.dtype.itemsize == 8:
            array = array.astype(np.int32)
        return array.view(f"u{array.dtype.itemsize}").astype(np.uint32)
    if array.dtype.kind == "f":
        if array.dtype == np.float16:
            single = host_decode("Float16", array)
        else:
            single = array.astype(np.float32)
        return single.view(np.uint32)
    return array.astype(np.uint32)


_NO_INDEX: Final = 0xFFFFFFFF  # what fills up the indices of an embedding: all bits set


@dataclass(frozen=True, slots=True)
class InputState:
    """The image's statements about one input. `shape` is the host's, if stated, a batch first. `broadcast` has the
    dimensions of size 1 that are repeated over their tile instead of padded with zeros."""

    transform: Transform
    shape: tuple[int, ...] | None
    broadcast: tuple[int, ...]


def host_to_queue(name: str, array: Array, state: InputState, queue: Queue, microbatch: int) -> Array:
    """Convert an input in the host's shape to [entries, t, rows, cols]; the caller compares that with the queue.

    Raises HostError where the array has not the shape that the transform states, UnsupportedError for a transform of
    outputs."""
    transform = state.transform
    if transform.type == "NoTransform":
        batched = state.shape is not None and array.shape[1:] == state.shape[1:]
        if batched:
            four = expand_shape(array.shape)
        else:
            four = _expand_batch(array.shape, microbatch)
        return _pad_to_tiles(name, array.reshape(four), queue, microbatch, state.broadcast)
    if transform.type == "ReinterpretShape":
        original, new = _stated_shapes(name, transform)
        _check_batch(name, array, original)
        view = _reshape_entries(name, array, new)
        return _pad_to_tiles(name, view.reshape(expand_shape(view.shape)), queue, microbatch, state.broadcast)
    if transform.type == "Prestride":
        return _apply_prestride(name, array, transform)
    if transform.type == "EmbeddingIndex":
        return _embedding_indices(name, array, _stated_shape(name, transform, "original_shape"), queue)
    raise _transform_error(name, transform, "an input")


def queue_to_host(name: str, array: Array, transform: Transform, original: Sequence[int] | None) -> Array:
    """Return an output of `fold_output` cut to its own rows and columns and reshaped, as its transform says. `original`
    is the shape that the image states for it, None if it states none. Raises HostError, UnsupportedError for a
    transform that only inputs can have."""
    if transform.type in ("NoTransform", "Concatenate"):
        if original:
            return _narrow(name, array, original, original)
        return array
    if transform.type == "Unpad":
        shape = _stated_shape(name, transform, "unpadded_shape")
        return _narrow(name, array, shape, shape)
    if transform.type == "ReinterpretShape":
        stated, cut = _stated_shapes(name, transform)
        return _narrow(name, array, cut, stated)
    raise _transform_error(name, transform, "an output")


def fold_output(array: Array, tm: HostTm, untilized: bool) -> Array:
    """Return an output [entries, t, rows, cols] with slices along t stacked into rows and columns by the factors of
    `tm` (LAYOUT 3.5). `untilized`: the op stored it row by row. Raises HostError."""
    if (tm.hstack_factor, tm.vstack_factor) == (1, 1):
        return array
    return stack_entries(array, tm.hstack_factor, tm.vstack_factor, tm.row_major, untilized)


def concatenate_outputs(
    arrays: Mapping[str, Array], transforms: Mapping[str, Transform], microbatch: int
) -> dict[str, Array]:
    """Return folded outputs by name, those of one `concat_group` joined under the name of the group's first (FRONTEND
    7). Raises HostError where a group does not fit together."""
    groups = _concatenate_groups(arrays, transforms)
    outputs: dict[str, Array] = {}
    for name, array in arrays.items():
        group = next((names for names in groups.values() if name in names), None)
        if group is None:
            outputs[name] = array
        elif name == group[0]:
            outputs[name] = _join_outputs(
                sorted(group, key=lambda member: transforms[member].concat_index or 0),
                arrays,
                transforms[name].concat_dim or 0,
                microbatch,
            )
    return outputs


def check_output_transform(name: str, transform: Transform) -> None:
    """Raise UnsupportedError for a transform that outputs cannot have."""
    if transform.type not in ("NoTransform", "Unpad", "ReinterpretShape", "Concatenate"):
        raise _transform_error(name, transform, "an output")


def _transform_error(name: str, transform: Transform, role: str) -> UnsupportedError:
    """Return the error for a transform that a tensor of this `role` ("an input", "an output") cannot have."""
    return UnsupportedError(
        f"{name}: the runtime transform {transform.type} is not one for {role}; "
        "give and take tensors in the queue's own shape"
    )


def _stated_shapes(name: str, transform: Transform) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes before and after a ReinterpretShape. Raises HostError where the image does not state one."""
    return _stated_shape(name, transform, "original_shape"), _stated_shape(name, transform, "reinterpreted_shape")


def _stated_shape(name: str, transform: Transform, field: str) -> tuple[int, ...]:
    """Return the shape in this field of a transform. Raises HostError where it is missing."""
    _raise_problem(name, missing_shape_problem(transform, field))
    return getattr(transform, field)


def _raise_problem(name: str, problem: str) -> None:
    """Raise HostError for `problem` unless it is ""; `name` is that of the tensor."""
    if problem:
        raise HostError(f"{name}: {problem}")


def _check_batch(name: str, array: Array, shape: tuple[int, ...]) -> None:
    """Raise HostError unless an array has the shape that the image states; its outermost dimension may be a multiple of
    the stated one."""
    if array.ndim != len(shape) or array.shape[1:] != shape[1:] or array.shape[0] % shape[0] or not array.size:
        raise HostError(f"{name}: shape {list(array.shape)}, the image states {list(shape)} for the host's tensor")


def _reshape_entries(name: str, array: Array, shape: Sequence[int]) -> Array:
    """Return the same elements as entries of another shape, whose first number, a batch, does not count. Raises
    HostError where they do not divide."""
    _raise_problem(name, entries_problem(array.size, shape))
    return array.reshape(-1, *shape[1:])


def _pad_to_tiles(name: str, array: Array, queue: Queue, microbatch: int, broadcast: Sequence[int]) -> Array:
    """Return [w, z, r, c] padded to whole tiles: with zeros, or along a dimension in `broadcast` by repeating the edge
    (FRONTEND 7). A single entry is repeated for the microbatch. Raises HostError where more than one row or column
    would be repeated."""
    if array.shape[0] == 1 < microbatch:
        four = np.repeat(array, microbatch, axis=0)
    else:
        four = array
    tile_dim = queue.blocking.tile_dim
    _raise_problem(name, repeat_problem(four.shape, tile_dim, broadcast))
    for axis, count, repeated in tile_padding(four.shape, tile_dim, broadcast):
        widths = [(0, count if place == axis else 0) for place in range(4)]
        four = np.pad(four, widths, mode="edge" if repeated else "constant")
    return four


def _expand_batch(shape: tuple[int, ...], microbatch: int) -> tuple[int, int, int, int]:
    """Return [w, z, r, c] for a shape of fewer dimensions where the image does not state one. The outermost dimension
    is the batch; in one or two dimensions only where it has the microbatch's size, else they are one row, or one
    matrix."""
    if len(shape) == 2 and shape[0] != microbatch:
        return 1, 1, *shape
    if len(shape) == 1:
        if shape[0] == microbatch:
            return (shape[0], 1, 1, 1)
        return (1, 1, 1, shape[0])
    return expand_shape(shape)


def _narrow(name: str, array: Array, cut: Sequence[int], shape: Sequence[int]) -> Array:
    """Return each entry of [entries, t, rows, cols] cut to the rows and columns of `cut` and reshaped to `shape`; the
    first number of both, a batch, does not count. Raises HostError where that is not possible."""
    _raise_problem(name, cut_problem(array.shape, cut, shape))
    t, rows, columns = extent_of(cut)
    return array[:, :t, :rows, :columns].reshape(len(array), *shape[1:])


def _concatenate_groups(names: Iterable[str], transforms: Mapping[str, Transform]) -> dict[int, list[str]]:
    """Return the names of the outputs that are concatenated, by the number of their `concat_group`."""
    groups: dict[int, list[str]] = {}
    for name in names:
        transform = transforms.get(name)
        if transform is not None and transform.type == "Concatenate":
            groups.setdefault(transform.concat_group or 0, []).append(name)
    return groups


def _join_outputs(names: Sequence[str], arrays: Mapping[str, Array], dim: int, microbatch: int) -> Array:
    """Return these outputs, a group in order, concatenated along `dim`; along the batch microbatch by microbatch.
    Raises HostError where they do not fit together."""
    parts = [arrays[name] for name in names]
    axis = dim + 4 if dim < 0 else dim
    problem = concat_problem([part.shape for part in parts], dim)
    if problem or (axis == 0 and any(part.shape[0] % microbatch for part in parts)):
        shapes = ", ".join(f"{name} {list(arrays[name].shape)}" for name in names)
        raise HostError(f"outputs {shapes} cannot be concatenated along dimension {dim}")
    if axis:
        return np.concatenate(parts, axis)
    return _join_batches(names, parts, microbatch)


def _join_batches(names: Sequence[str], parts: Sequence[Array], microbatch: int) -> Array:
    """Return the parts of a group concatenated along the batch: microbatch by microbatch, as a front end reads them.
    Raises HostError for parts with different numbers of microbatches; `names` are their names in the message."""
    split = [part.reshape(-1, microbatch, *part.shape[1:]) for part in parts]
    if len({part.shape[0] for part in split}) > 1:
        raise HostError(f"outputs {', '.join(names)} have not equally many microbatches")
    return np.concatenate(split, 1).reshape(-1, *parts[0].shape[1:])


def _apply_prestride(name: str, array: Array, transform: Transform) -> Array:
    """Return an input [w, z, r, c] with the places of each stride x stride window moved to channels (NETLIST 8, LAYOUT
    5). Raises HostError for integers, and strides that differ."""
    _raise_problem(name, stride_problem(transform))
    stride = transform.stride_height or 0
    if array.dtype.name not in ("float16", "float32", "float64", "bfloat16"):
        raise HostError(f"{name}: Prestride takes floats, not {array.dtype}")
    offsets = [(x, y) for y, x in product(range(stride), repeat=2)]
    return prestride(array.reshape(expand_shape(array.shape)).astype(np.float32), stride, offsets)


def _embedding_indices(name: str, array: Array, original: Sequence[int], queue: Queue) -> Array:
    """Return indices [w, n] or [n] as entries of an embedding's queue: padded with the index of no row, and reordered
    so that an index lies where the device looks for it (FRONTEND 7). Raises HostError for other tensors."""
    if array.ndim not in (1, 2) or array.dtype.kind not in "iu" or prod(original[1:-1]) != 1:
        raise HostError(f"{name}: EmbeddingIndex takes integers [w, n], not {array.dtype} {list(array.shape)}")
    rows = tile_rows(queue)
    indices = array.reshape(-1, array.shape[-1]).astype(np.uint32)
    indices = np.pad(indices, ((0, 0), (0, -indices.shape[1] % TILE_EDGE)))
    indices[:, original[-1] :] = _NO_INDEX
    count, width = indices.shape
    _raise_problem(name, index_problem(width, queue))
    groups = indices.reshape(count, rows, -1, TILE_EDGE)
    groups = np.pad(groups, ((0, 0), (0, 0), (0, -groups.shape[2] % TILE_EDGE), (0, 0)))
    tiles = groups.reshape(count, rows, -1, TILE_EDGE, TILE_EDGE).swapaxes(2, 3)
    return tiles.reshape(count, 1, rows * TILE_EDGE, -1)
