"""Initializers of an ONNX model as arrays, and its tensors that lie in other files. Such files are read only from the
folder of the model, and only completely."""

import os
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from buda_emu.arithmetic.tensor.mapped import map_bytes, page_releaser
from buda_emu.arithmetic.tensor.referenced import LARGE, Referenced, reference_to
from buda_emu.compiler.graph.builder import printable_name
from buda_emu.compiler.graph.graph import Array
from buda_emu.compiler.importers.from_onnx.standard import TYPES
from buda_emu.compiler.importers.operators import NotSupportedError
from buda_emu.emulator.memory.host import size_text
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.files import change_guard, open_regular

_OF_NUMPY: Final = (
    TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT8,
    TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64,
)  # fmt: skip
MOST_IN_MODEL: Final = (1 << 31) - 1
"""Limit in bytes for a model with its tensors, set by protobuf."""
_FIELDS: Final = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
"""The fields of a tensor for its values one by one; `raw_data` has their bytes."""
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_WHOLE_BYTES: Final = re.compile(r"(float|int|uint|bool|complex|bfloat)(8|16|32|64|128)?")


def read_initializer(tensor: Any) -> Array:
    """Return the array of an onnx.TensorProto whose bytes lie in the model. Raise NotSupportedError for element types
    and forms that are not supported, ValueError for a tensor that contradicts itself."""
    if tensor.data_type not in TensorProto.DataType.values() or not tensor.data_type:
        raise ValueError(f"{tensor.data_type} is the number of no element type")
    if min(tensor.dims, default=0) < 0:
        raise ValueError(f"shape {list(tensor.dims)} has a size below 0")
    name = TensorProto.DataType.Name(tensor.data_type).lower()
    if tensor.data_type == TensorProto.STRING or helper.tensor_dtype_to_np_dtype(tensor.data_type).name not in TYPES:
        raise NotSupportedError(f"initializer of type {name}")
    if tensor.HasField("segment"):
        raise NotSupportedError("initializer in segments")
    _check_values(tensor)
    return numpy_helper.to_array(tensor)


def _check_values(tensor: Any) -> None:
    """Raise ValueError if a tensor has its values in several fields or in that of another type, or not as many as its
    shape says."""
    fields = [name for name in _FIELDS if getattr(tensor, name)]
    if tensor.HasField("raw_data"):
        fields.append("raw_data")
    if len(fields) > 1:
        raise ValueError(f"values in {' and '.join(fields)}, and a tensor has one of them")
    kind: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    own_field = helper.tensor_dtype_to_field(tensor.data_type)
    count = prod(tensor.dims)
    shape = list(tensor.dims)
    if fields == ["raw_data"]:
        if len(tensor.raw_data) != count * kind.itemsize:
            raise ValueError(
                f"{len(tensor.raw_data)} bytes for {kind.name} of shape {shape}, which takes {count * kind.itemsize}"
            )
        return
    if fields not in ([], [own_field]):
        raise ValueError(f"values in {fields[0]}, where {kind.name} has them in {own_field} or raw_data")
    if len(getattr(tensor, own_field)) != count:
        raise ValueError(f"{len(getattr(tensor, own_field))} values for shape {shape}, which takes {count}")


def load_external_tensors(model: Any, folder: Path, *, large: bool = True) -> None:
    """Load the bytes of all external tensors into the model; without `large`, except those that
    `map_large_initializers` maps. Raise HostError naming tensor and file for a file outside of the folder, also through
    links, for a missing file, and for too few or too many bytes, also of all tensors together."""
    if large:
        skipped = set[int]()
    else:
        skipped = {id(tensor) for tensor in model.graph.initializer if _is_large(tensor)}
    tensors = [tensor for tensor in iterate_external_tensors(model) if id(tensor) not in skipped]
    _require_room(tensors, folder)
    for tensor in tensors:
        with _open_tensor(tensor, folder) as (file, start, count):
            file.seek(start)
            tensor.raw_data = file.read(count)
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


def _require_room(tensors: Sequence[Any], folder: Path) -> None:
    """Raise HostError, before any tensor is read, if all tensors together exceed the limit for a model: any number of
    them can name one file."""
    total = 0
    for tensor in tensors:
        with _open_tensor(tensor, folder) as (_, _, count):
            total += count
    if total > MOST_IN_MODEL:
        raise HostError(
            f"compile: {plural(len(tensors), 'tensor')} in other files take {size_text(total)} together, and a model "
            f"has room for {size_text(MOST_IN_MODEL)}: do they all need the file that they name?"
        )


def map_large_initializers(model: Any, folder: Path) -> dict[str, Referenced]:
    """Map the large external initializers of the model from their files, by name, without reading them. Raise HostError
    naming tensor and file for a file outside of the folder, a missing file, and one of another size.

    A file is mapped once, since each mapping keeps a file open and any number of tensors can name one file."""
    references: dict[str, Referenced] = {}
    mapped_files: dict[tuple[int, int], NDArray[np.uint8]] = {}
    for tensor in model.graph.initializer:
        if _is_large(tensor):
            with _open_tensor(tensor, folder) as (file, start, count):
                data = _map_file(file, mapped_files)[start : start + count]
            kind = helper.tensor_dtype_to_np_dtype(tensor.data_type).newbyteorder("<")
            array = data.view(kind).reshape(tuple(tensor.dims))
            path = folder / _external_entries(tensor)["location"]
            origin = f"{printable_name(tensor.name)} in {printable_name(str(path))}"
            references[tensor.name] = reference_to(array, origin, page_releaser(data), change_guard(path))
    return references


def _map_file(file: IO[bytes], mapped_files: dict[tuple[int, int], NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Return all bytes of an open file, mapped; `mapped_files` holds earlier mappings by device and inode."""
    state = os.fstat(file.fileno())
    key = (state.st_dev, state.st_ino)
    if key not in mapped_files or len(mapped_files[key]) != state.st_size:
        mapped_files[key] = map_bytes(file, 0, state.st_size)
    return mapped_files[key]


def _is_large(tensor: Any) -> bool:
    """Return whether a tensor lies in another file, has elements that numpy has, and is large enough to be mapped."""
    if tensor.data_location != TensorProto.EXTERNAL or tensor.data_type not in _OF_NUMPY:
        return False
    return (_byte_size(tensor) or 0) >= LARGE


def iterate_external_tensors(model: Any) -> Iterator[Any]:
    """Iterate over the tensors that lie in other files: initializers, and tensors in attributes, inner graphs and
    functions."""
    tensors = [*_graph_tensors(model.graph)]
    for body in model.functions:
        tensors += _node_tensors(body.node)
    return (tensor for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL)


def _graph_tensors(graph: Any) -> Iterator[Any]:
    """Yield every tensor that a graph contains: initializers, and attributes of its nodes, those of nested graphs
    included."""
    yield from graph.initializer
    yield from _sparse_tensors(graph.sparse_initializer)
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield the tensors in the attributes of nodes, including those of nested graphs."""
    for node in nodes:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            yield from _sparse_tensors((attribute.sparse_tensor, *attribute.sparse_tensors))
            if attribute.HasField("g"):
                yield from _graph_tensors(attribute.g)
            for graph in attribute.graphs:
                yield from _graph_tensors(graph)


def _sparse_tensors(tensors: Iterable[Any]) -> Iterator[Any]:
    """Yield the two tensors of each sparse tensor, its values and their indices."""
    for tensor in tensors:
        yield from (tensor.values, tensor.indices)


def _external_entries(tensor: Any) -> dict[str, str]:
    """Return the model's description of where a tensor lies: location, offset and length."""
    return {entry.key: entry.value for entry in tensor.external_data}


@contextmanager
def _open_tensor(tensor: Any, folder: Path) -> Generator[tuple[IO[bytes], int, int]]:
    """Open the file of a tensor, and give it with the offset and the number of its bytes. Raise HostError if they do
    not fit the tensor."""
    entries = _external_entries(tensor)
    location = entries.get("location", "")
    context = f"compile: tensor '{printable_name(tensor.name)}' in file '{printable_name(location)}'"
    numbers = {key: entries[key] for key in ("offset", "length") if key in entries}
    for key, value in numbers.items():
        if not _NUMBER.fullmatch(value):
            raise HostError(f"{context}: {key} '{printable_name(value)}' is not a number of bytes")
    with os.fdopen(_open_inside(location, folder, context), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = int(numbers.get("offset", 0))
        count = int(numbers.get("length", max(0, size - start)))
        if start + count > size or start > size:
            raise HostError(f"{context}: bytes {start} to {start + count}, the file has {size}: is it the right one?")
        needed = _byte_size(tensor)
        if needed is not None and needed != count:
            raise HostError(f"{context}: {count} bytes for {list(tensor.dims)}, which takes {needed}")
        yield file, start, count


def _open_inside(location: str, folder: Path, context: str) -> int:
    """Open a file of the model's folder and return its descriptor. Links are resolved before the test that it lies
    inside. Raise HostError for other files."""
    home = os.path.realpath(folder)
    if not location or "\0" in location:
        raise HostError(f"{context}: that names no file; save the model once more with onnx.save_model")
    path = os.path.realpath(os.path.join(home, location))  # noqa: PTH118 - an absolute one replaces the folder
    if os.path.commonpath([home, path]) != home:
        raise HostError(f"{context}: outside of the model's folder {home}: copy it there, and name it without a path")
    try:
        return open_regular(path)
    except OSError as error:
        raise HostError(f"{context}: {error.strerror}") from None


def _byte_size(tensor: Any) -> int | None:
    """Return the bytes that a tensor takes; None for types that pack several elements into a byte and for unknown
    types, which are reported when the values are read."""
    try:
        kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except KeyError:
        return None
    if not _WHOLE_BYTES.fullmatch(kind.name) or min(tensor.dims, default=0) < 0:
        return None
    return prod(tensor.dims) * kind.itemsize
