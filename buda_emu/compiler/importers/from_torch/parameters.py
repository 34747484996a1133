"""Parameters of a torch module that lie in files, as `torch.load(mmap=True)` and safetensors leave them: by
reference.
"""

import copy
import json
import os
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import torch
from torch.export.passes import move_to_device_pass
from torch.utils._pytree import tree_map_only

from buda_emu.arithmetic.tensor.mapped import FileMappings, map_bytes, page_releaser
from buda_emu.arithmetic.tensor.referenced import LARGE, Referenced, reference_to
from buda_emu.compiler.graph.builder import shown_name
from buda_emu.compiler.graph.graph import Array
from buda_emu.compiler.importers.from_torch.trace import array_of
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.files import change_guard, read_whole
from buda_emu.support.strict_json import NameTwiceError, each_name_once

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
            yield name, Stored(file=path, name=name, type=kind, shape=shape, data=data[first:last])
    if end != size - 8 - length:
        raise _wrong(path, f"{size - 8 - length - end} bytes after the last tensor: it is damaged")


def _entry(path: Path, name: str, entry: Any) -> tuple[str, tuple[int, ...], tuple[int, int]]:
    try:
        kind = str(entry["dtype"])
        shape = tuple(entry["shape"])
        (first, last) = tuple(entry["data_offsets"])
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


def held_as(tensor: Any, name: str, mappings: FileMappings) -> Array | Referenced:
    """A parameter as a constant: a large one whose memory is a file's by reference, any other one as an array."""
    size = tensor.untyped_storage().nbytes() if tensor.layout == torch.strided else 0
    own = tensor.numel() * tensor.element_size()
    file = mappings.of(tensor.untyped_storage().data_ptr(), size) if tensor.is_cpu else None
    if file is None:
        return array_of(tensor)
    if own < LARGE or not Path(file.path).exists():
        return np.array(array_of(tensor))  # a copy: the file may change
    halves = tensor.dtype == torch.bfloat16
    array = (tensor.view(torch.int16) if halves else tensor).numpy()
    array = array.view(np.uint16) if halves else array
    back = page_releaser(array, shared=file.shared)
    return reference_to(array, f"{name} in {file.path}", back, change_guard(file.path), bfloat16=halves)


def with_parameters(module: Any, path: Path) -> Any:
    """A copy of a module, made on the device "meta" or anywhere, whose parameters and buffers are those of a file: maps
    of safetensors, or of what `torch.save` wrote. Raises HostError naming file, tensor, rule and fix for names, types
    and shapes that are not the module's."""
    saved = module.state_dict(keep_vars=True)
    named = (module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False))
    fixed = {name: tensor for pairs in named for name, tensor in pairs if name not in saved}
    found = copy.deepcopy(module)
    found.load_state_dict(_of_file(path, saved, fixed, saved, type(module).__name__), assign=True)
    for parameter in found.parameters():
        parameter.requires_grad_(False)
    return found


def program_with_parameters(program: Any, path: Path) -> Any:
    """The same of an ExportedProgram, on the processor wherever it was exported. Raises as `with_parameters`."""
    signature = program.graph_signature
    saved = program.state_dict
    read = {*signature.inputs_to_parameters.values(), *signature.inputs_to_buffers.values()}
    for name, tensor in _of_file(path, saved, program.constants, saved.keys() & read, "the program").items():
        is_parameter = isinstance(saved[name], torch.nn.Parameter)
        saved[name] = torch.nn.Parameter(tensor, requires_grad=False) if is_parameter else tensor
    for name in saved.keys() - read:
        del saved[name]
    if program.example_inputs is not None:
        program.example_inputs = tree_map_only(torch.Tensor, _with_data, program.example_inputs)
    return move_to_device_pass(program, "cpu")


def _with_data(tensor: Any) -> Any:
    return torch.zeros_like(tensor, device="cpu") if tensor.is_meta else tensor


def _of_file(
    path: Path, saved: Mapping[str, Any], fixed: Mapping[str, Any], wanted: Collection[str], what: str
) -> dict[str, Any]:
    """The tensors `wanted`, of those `saved` with a model; `fixed`: what is not saved with it, and needs its data."""
    held = (
        _of_torch(path)
        if path.suffix in _OF_TORCH
        else {name: _tensor(stored) for name, stored in read_checkpoint(path).items()}
    )
    own = {**fixed, **saved}
    by_tensor = {
        id(own[name]): tensor for name, tensor in held.items() if name in own
    }  # tied ones stand in a file once
    missing = [name for name in saved if name in wanted and name not in held and id(saved[name]) not in by_tensor]
    unknown = [name for name in held if name not in own]
    if missing or unknown:
        raise HostError(f"compile: parameters: {path}: {_names(missing, unknown)}")
    for name, tensor in held.items():
        _check(path, name, tensor, own[name])
    bare = [name for name, tensor in fixed.items() if tensor.is_meta]
    if bare:
        raise HostError(
            f"compile: parameters: {what}: buffer {_some(bare)} has no data: it is on the device meta and, not being "
            "persistent, in no file: make the part of the module that has it outside of torch.device('meta')"
        )
    return {name: held[name] if name in held else by_tensor[id(saved[name])] for name in saved if name in wanted}


_OF_TORCH: Final = (".pt", ".pth", ".bin")
_NAMED: Final = 3
_TYPES: Final = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip


def _tensor(stored: Stored) -> Any:
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # that it cannot be written to
        return torch.from_numpy(stored.data).view(_TYPES[stored.type]).reshape(stored.shape)


def _of_torch(path: Path) -> dict[str, Any]:
    try:
        found = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except Exception as error:  # noqa: BLE001 - torch raises many kinds for damaged files
        reason = str(error).strip().splitlines()
        raise HostError(
            f"compile: parameters: {path}: torch.load does not read it: {reason[0] if reason else error!r}: it takes a "
            "dictionary of tensors, as torch.save(module.state_dict(), file) writes"
        ) from None
    if not isinstance(found, dict) or not all(isinstance(item, torch.Tensor) for item in found.values()):
        raise HostError(f"compile: parameters: {path}: no dictionary of tensors: save module.state_dict()")
    return dict(found)


def _names(missing: list[str], unknown: list[str]) -> str:
    both = ("it has no tensor", missing), ("the module has no", unknown)
    said = [f"{what} {_some(names)}" for what, names in both if names]
    near_one = near(missing[0], unknown) if missing and unknown else ""
    return f"{'; '.join(said)}: {f'{near_one} ' if near_one else ''}is it the checkpoint of this module?"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(shown_name, names[:_NAMED])) + more


def _check(path: Path, name: str, tensor: Any, own: Any) -> None:
    where = f"compile: parameters: {path}: tensor {shown_name(name)}"
    if tensor.shape != own.shape:
        raise HostError(
            f"{where} has shape {list(tensor.shape)}, the module takes {list(own.shape)}: is the module made with the "
            "configuration of this checkpoint?"
        )
    if tensor.dtype != own.dtype:
        want, have = (str(item.dtype).removeprefix("torch.") for item in (own, tensor))
        fix = (
            f"module.to(torch.{have}) costs nothing on the device meta"
            if tensor.is_floating_point()
            else ("is it the checkpoint of this module?")
        )
        raise HostError(f"{where} is {have}, the module takes {want}: {fix}")
