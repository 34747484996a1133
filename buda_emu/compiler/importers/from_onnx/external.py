"""Tensors of an ONNX model that lie in other files: they are read from the folder of the model alone, and whole or not
at all."""

import os
import re
import stat
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, Final

import onnx
from onnx import helper

from buda_emu.arithmetic.tensor.mapped import map_bytes, page_releaser
from buda_emu.arithmetic.tensor.referenced import LARGE, Referenced, reference_to
from buda_emu.compiler.graph.builder import shown_name
from buda_emu.emulator.memory.host import size_text
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.files import change_guard

_OF_NUMPY: Final = (
    onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.INT8,
    onnx.TensorProto.UINT8, onnx.TensorProto.INT32, onnx.TensorProto.INT64,
)  # fmt: skip
MOST_IN_MODEL: Final = (1 << 31) - 1
"""Bytes of a model with all that is in it: protobuf writes no more."""
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_WHOLE_BYTES: Final = re.compile(r"(float|int|uint|bool|complex|bfloat)(8|16|32|64|128)?")


def take_in(model: Any, folder: Path, *, large: bool = True) -> None:
    """Put the bytes of all tensors that lie in other files into the model; not `large`: but those of `by_reference`.
    Raises HostError naming tensor and file for files outside of the folder, by whatever way, for a path to no file, and
    for bytes that are missing or too many, also of all tensors together."""
    left = set[int]() if large else {id(tensor) for tensor in model.graph.initializer if _is_large(tensor)}
    tensors = [tensor for tensor in elsewhere(model) if id(tensor) not in left]
    _require_room(tensors, folder)
    for tensor in tensors:
        with _found(tensor, folder) as (file, start, count):
            file.seek(start)
            tensor.raw_data = file.read(count)
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _require_room(tensors: Sequence[Any], folder: Path) -> None:
    """Raises HostError, before any is read, for tensors that have no room in a model together: any number of them can
    name one file."""
    total = 0
    for tensor in tensors:
        with _found(tensor, folder) as (_, _, count):
            total += count
    if total > MOST_IN_MODEL:
        raise HostError(
            f"compile: {plural(len(tensors), 'tensor')} in other files take {size_text(total)} together, and a model "
            f"has room for {size_text(MOST_IN_MODEL)}: do they all need the file that they name?"
        )


def by_reference(model: Any, folder: Path) -> dict[str, Referenced]:
    """Large initializers of the model by name, as maps of the files that they lie in. Raises as `take_in`."""
    found: dict[str, Referenced] = {}
    for tensor in model.graph.initializer:
        if _is_large(tensor):
            with _found(tensor, folder) as (file, start, count):
                data = map_bytes(file, start, count)
            kind = helper.tensor_dtype_to_np_dtype(tensor.data_type).newbyteorder("<")
            array = data.view(kind).reshape(tuple(tensor.dims))
            path = folder / _said(tensor)["location"]
            origin = f"{shown_name(tensor.name)} in {shown_name(str(path))}"
            found[tensor.name] = reference_to(array, origin, page_releaser(data), change_guard(path))
    return found


def _is_large(tensor: Any) -> bool:
    """Whether it lies in another file, in elements that numpy has, and is so large that it is not read."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL or tensor.data_type not in _OF_NUMPY:
        return False
    return (_size(tensor) or 0) >= LARGE


def elsewhere(model: Any) -> Iterator[Any]:
    """Tensors that lie in other files: held ones, of attributes, of inner graphs and of functions."""
    every = (*_of_graph(model.graph), *(found for body in model.functions for found in _of_nodes(body.node)))
    return (tensor for tensor in every if tensor.data_location == onnx.TensorProto.EXTERNAL)


def _of_graph(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    yield from _of_sparse(graph.sparse_initializer)
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            yield from _of_sparse((attribute.sparse_tensor, *attribute.sparse_tensors))
            if attribute.HasField("g"):
                yield from _of_graph(attribute.g)
            for graph in attribute.graphs:
                yield from _of_graph(graph)


def _of_sparse(tensors: Iterable[Any]) -> Iterator[Any]:
    for tensor in tensors:
        yield from (tensor.values, tensor.indices)


def _said(tensor: Any) -> dict[str, str]:
    """What the model says of where a tensor lies."""
    return {entry.key: entry.value for entry in tensor.external_data}


@contextmanager
def _found(tensor: Any, folder: Path) -> Generator[tuple[IO[bytes], int, int]]:
    """The file of a tensor, where its bytes begin, and how many there are."""
    said = _said(tensor)
    location = said.get("location", "")
    where = f"compile: tensor '{shown_name(tensor.name)}' in file '{shown_name(location)}'"
    numbers = {key: said[key] for key in ("offset", "length") if key in said}
    for key, value in numbers.items():
        if not _NUMBER.fullmatch(value):
            raise HostError(f"{where}: {key} '{shown_name(value)}' is not a number of bytes")
    with os.fdopen(_opened(location, folder, where), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = int(numbers.get("offset", 0))
        count = int(numbers.get("length", max(0, size - start)))
        if start + count > size or start > size:
            raise HostError(f"{where}: bytes {start} to {start + count}, the file has {size}: is it the right one?")
        needed = _size(tensor)
        if needed is not None and needed != count:
            raise HostError(f"{where}: {count} bytes for {list(tensor.dims)}, which takes {needed}")
        yield file, start, count


def _opened(location: str, folder: Path, where: str) -> int:
    """A file descriptor. Links are followed before it is asked whether the file lies in the folder."""
    home = os.path.realpath(folder)
    if not location or "\0" in location:
        raise HostError(f"{where}: that names no file; save the model once more with onnx.save_model")
    path = os.path.realpath(os.path.join(home, location))  # noqa: PTH118 - an absolute one replaces the folder
    if os.path.commonpath([home, path]) != home:
        raise HostError(f"{where}: outside of the model's folder {home}: copy it there, and name it without a path")
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise HostError(f"{where}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise HostError(f"{where}: no regular file")
    return handle


def _size(tensor: Any) -> int | None:
    """The bytes of a tensor; None for types that share bytes, or that there are not: who reads the values says so."""
    try:
        kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except KeyError:
        return None
    if not _WHOLE_BYTES.fullmatch(kind.name) or min(tensor.dims, default=0) < 0:
        return None
    return prod(tensor.dims) * kind.itemsize
