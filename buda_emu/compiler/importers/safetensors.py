"""Parameters in safetensors files, single or sharded with an index, as maps of the files: no byte of them is read.

A file is a length in eight bytes, a header in JSON that has type, shape and bytes of each tensor, and the tensors. All
that can be said of the files without their numbers is said here, before anything is computed.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final, cast

from buda_emu.checker.text import plural
from buda_emu.compiler.graph.graph import Array
from buda_emu.compiler.graph.names import shown_name
from buda_emu.errors import HostError
from buda_emu.files import read_whole
from buda_emu.strict_json import NameTwiceError, each_name_once
from buda_emu.tensor.mapped import map_bytes

INDEX: Final = ".safetensors.index.json"
_MOST_HEADER: Final = 100 << 20
"""Bytes, as the format's own limit."""
SIZES: Final[Mapping[str, int]] = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1,
}  # fmt: skip
"""Bytes of an element."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor of a file: its type in the format's words, its shape, and its bytes, uint8[size]."""

    file: Path
    name: str
    type: str
    shape: tuple[int, ...]
    data: Array


def read_checkpoint(path: Path) -> dict[str, Stored]:
    """All tensors by name: of a file, of all files that an index names, or of a folder that has one of both. Raises
    HostError naming file, tensor, rule and fix."""
    if path.is_dir():
        found = sorted((*path.glob(f"*{INDEX}"), *path.glob("*.safetensors")), key=lambda item: not _is_index(item))
        if not found or (not _is_index(found[0]) and len(found) > 1):
            raise _wrong(path, f"{plural(len(found), '.safetensors file')} and no index: name the file")
        path = found[0]
    return _sharded(path) if _is_index(path) else dict(_tensors(path))


def _is_index(path: Path) -> bool:
    return path.name.endswith(INDEX)


def _sharded(index: Path) -> dict[str, Stored]:
    places = _object(index, _read(index)).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise _wrong(index, "it has no weight_map, the file of each tensor: is it the index of safetensors files?")
    named = cast("dict[str, Any]", places)
    found: dict[str, Stored] = {}
    for shard in sorted({str(file) for file in named.values()}):
        if Path(shard).name != shard or "\\" in shard:
            raise _wrong(index, f"weight_map names {shown_name(shard)}: shards lie in the folder of the index")
        for name, tensor in _tensors(index.parent / shard):
            if name in found:
                raise _wrong(
                    tensor.file,
                    f"tensor {shown_name(name)} occurs twice, here and in {found[name].file.name}"
                    ": remove one of them, or save the checkpoint again",
                )
            found[name] = tensor
    for name, shard in named.items():
        if name not in found or found[name].file.name != shard:
            there = f", but {found[name].file.name}" if name in found else ""
            raise _wrong(
                index.parent / str(shard),
                f"tensor {shown_name(name)} is not in this file{there}, though "
                f"{index.name} says so: is it the index of these files?",
            )
    return found


def _tensors(path: Path) -> Iterator[tuple[str, Stored]]:
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            length = int.from_bytes(stream.read(8), "little")
            if size < 8 or length > min(size - 8, _MOST_HEADER):
                raise _wrong(path, f"{size} bytes cannot hold a header of {length}: it is truncated, or no safetensors")
            header = _object(path, stream.read(length))
            data = map_bytes(stream, 8 + length, size - 8 - length) if size > 8 + length else None
    except OSError as error:
        raise _wrong(path, f"{error.strerror}: is the download complete?") from None
    header.pop("__metadata__", None)
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: _first(item[1])):
        kind, shape, (first, last) = _entry(path, name, entry)
        if first != end or last - first != prod(shape) * SIZES[kind]:
            raise _wrong(
                path,
                f"tensor {shown_name(name)}: bytes {first} to {last} for {kind} {list(shape)} after "
                f"byte {end}: the header is damaged, save the file once more",
            )
        end = last
        if end > size - 8 - length:
            raise _wrong(
                path,
                f"tensor {shown_name(name)} ends at byte {8 + length + end}, the file has {size}: it is "
                "truncated, copy it once more",
            )
        if data is not None and last > first:
            yield name, Stored(path, name, kind, shape, data[first:last])
    if end != size - 8 - length:
        raise _wrong(path, f"{size - 8 - length - end} bytes after the last tensor: it is damaged")


def _entry(path: Path, name: str, entry: Any) -> tuple[str, tuple[int, ...], tuple[int, int]]:
    try:
        kind, shape, (first, last) = str(entry["dtype"]), tuple(entry["shape"]), tuple(entry["data_offsets"])
        numbers = (*shape, first, last)
    except (KeyError, TypeError, ValueError):
        raise _wrong(path, f"tensor {shown_name(name)} has no dtype, shape and data_offsets: it is damaged") from None
    if any(type(number) is not int or number < 0 for number in numbers):
        raise _wrong(path, f"tensor {shown_name(name)}: sizes are integers, not {list(numbers)}: it is damaged")
    if kind not in SIZES:
        raise _wrong(
            path,
            f"tensor {shown_name(name)} has elements of type {shown_name(kind)}, which is not "
            f"supported; supported are: {', '.join(SIZES)}",
        )
    return kind, shape, (first, last)


def _first(entry: Any) -> int:
    """Where a tensor begins, for an order; `_entry` says what is wrong with it."""
    places = cast("dict[str, Any]", entry).get("data_offsets") if isinstance(entry, dict) else None
    return places[0] if isinstance(places, list) and places and type(places[0]) is int else 0


def _read(path: Path) -> bytes:
    try:
        return read_whole(path, 100)
    except OSError as error:
        raise _wrong(path, str(error.strerror)) from None


def _object(path: Path, data: bytes) -> dict[str, Any]:
    """A JSON object in which no name occurs twice."""
    try:
        held: Any = json.loads(data, object_pairs_hook=each_name_once)
    except NameTwiceError as error:
        twice = shown_name(error.name)
        raise _wrong(path, f"{twice} occurs twice: remove one of them, or save the file again") from None
    except (ValueError, RecursionError):
        raise _wrong(path, "no JSON where its header should be: it is damaged, or not a safetensors file") from None
    if not isinstance(held, dict):
        raise _wrong(path, "its header is not a JSON object: it is damaged, or not a safetensors file")
    return cast("dict[str, Any]", held)


def _wrong(path: Path, what: str) -> HostError:
    return HostError(f"compile: parameters: {path}: {what}")
