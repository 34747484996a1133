"""Parameters of a torch module that lie in files, mapped by `torch.load(mmap=True)` or from safetensors, and referred
to without a copy."""

import copy
import json
import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import prod
from pathlib import Path
from typing import IO, Any, Final, cast

import numpy as np
import torch
from torch.export.passes import move_to_device_pass
from torch.utils._pytree import tree_map_only

from buda_emu.arithmetic.tensor.mapped import FileMappings, map_bytes, page_releaser
from buda_emu.arithmetic.tensor.referenced import LARGE, Referenced, reference_to
from buda_emu.compiler.graph.builder import printable_name
from buda_emu.compiler.graph.graph import Array
from buda_emu.compiler.importers.from_torch.trace import array_of
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import list_first, plural
from buda_emu.support.errors import HostError
from buda_emu.support.files import change_guard, read_whole
from buda_emu.support.strict_json import NameTwiceError, each_name_once

INDEX: Final = ".safetensors.index.json"
_MOST_HEADER: Final = 100 << 20
"""Limit in bytes for a header, the format's own."""
SIZES: Final[Mapping[str, int]] = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1,
}  # fmt: skip
"""Bytes of an element by the format's name of its type."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor of a file: its type by the format's name, its shape, and its bytes, uint8[size]."""

    file: Path
    name: str
    type: str
    shape: tuple[int, ...]
    data: Array


def read_checkpoint(path: Path) -> dict[str, Stored]:
    """Return all tensors by name of a file, of the files that an index names, or of a folder with either. Raise
    HostError naming file, tensor, rule and fix."""
    if path.is_dir():
        files = sorted((*path.glob(f"*{INDEX}"), *path.glob("*.safetensors")), key=lambda file: not _is_index(file))
        if not files or (not _is_index(files[0]) and len(files) > 1):
            raise _checkpoint_error(path, f"{plural(len(files), '.safetensors file')} and no index: name the file")
        path = files[0]
    if _is_index(path):
        return _read_shards(path)
    return dict(_iterate_tensors(path))


def _is_index(path: Path) -> bool:
    """Return whether a file is the index of safetensors shards, by its name."""
    return path.name.endswith(INDEX)


def _read_shards(index: Path) -> dict[str, Stored]:
    """Read all shards that an index names, and return their tensors by name. Raises HostError if a shard is missing or
    damaged, lies elsewhere, or its tensors are not those of the index."""
    places = _parse_object(index, _read_bytes(index)).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise _checkpoint_error(
            index, "it has no weight_map, the file of each tensor: is it the index of safetensors files?"
        )
    named = cast("dict[str, Any]", places)
    tensors: dict[str, Stored] = {}
    for shard in sorted({str(file) for file in named.values()}):
        if Path(shard).name != shard or "\\" in shard:
            raise _checkpoint_error(
                index, f"weight_map names {printable_name(shard)}: shards lie in the folder of the index"
            )
        for name, tensor in _iterate_tensors(index.parent / shard):
            if name in tensors:
                raise _checkpoint_error(
                    tensor.file,
                    f"tensor {printable_name(name)} occurs twice, here and in {tensors[name].file.name}"
                    ": remove one of them, or save the checkpoint again",
                )
            tensors[name] = tensor
    for name, shard in named.items():
        if name not in tensors or tensors[name].file.name != shard:
            if name in tensors:
                hint = f", but {tensors[name].file.name}"
            else:
                hint = ""
            raise _checkpoint_error(
                index.parent / str(shard),
                f"tensor {printable_name(name)} is not in this file{hint}, though "
                f"{index.name} says so: is it the index of these files?",
            )
    return tensors


def _read_header(path: Path, stream: IO[bytes], size: int) -> tuple[dict[str, Any], int]:
    """Read the header of a safetensors file of `size` bytes, and return it with its length in bytes. Raises HostError
    for a length that the file cannot have."""
    length = int.from_bytes(stream.read(8), "little")
    if size < 8 or length > min(size - 8, _MOST_HEADER):
        raise _checkpoint_error(
            path, f"{size} bytes cannot hold a header of {length}: it is truncated, or no safetensors"
        )
    return _parse_object(path, stream.read(length)), length


def _iterate_tensors(path: Path) -> Iterator[tuple[str, Stored]]:
    """Yield the name and the mapped data of each tensor of a safetensors file that has elements, in the order of the
    file. Raises HostError for a file that is damaged or truncated."""
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            header, length = _read_header(path, stream, size)
            if size > 8 + length:
                data = map_bytes(stream, 8 + length, size - 8 - length)
            else:
                data = None
    except OSError as error:
        raise _checkpoint_error(path, f"{error.strerror}: is the download complete?") from None
    header.pop("__metadata__", None)
    end = 0
    for name, entry in sorted(header.items(), key=lambda entry_pair: _first_byte(entry_pair[1])):
        kind, shape, (first, last) = _parse_entry(path, name, entry)
        if first != end or last - first != prod(shape) * SIZES[kind]:
            raise _checkpoint_error(
                path,
                f"tensor {printable_name(name)}: bytes {first} to {last} for {kind} {list(shape)} after "
                f"byte {end}: the header is damaged, save the file once more",
            )
        end = last
        if end > size - 8 - length:
            raise _checkpoint_error(
                path,
                f"tensor {printable_name(name)} ends at byte {8 + length + end}, the file has {size}: it is "
                "truncated, copy it once more",
            )
        if data is not None and last > first:
            yield name, Stored(file=path, name=name, type=kind, shape=shape, data=data[first:last])
    if end != size - 8 - length:
        raise _checkpoint_error(path, f"{size - 8 - length - end} bytes after the last tensor: it is damaged")


def _parse_entry(path: Path, name: str, entry: Any) -> tuple[str, tuple[int, ...], tuple[int, int]]:
    """Return the element type, the shape, and where the bytes of a tensor begin and end (one past the last), from its
    entry in a safetensors header. Raises HostError for an entry that is damaged or of a type that is not supported."""
    try:
        kind = str(entry["dtype"])
        shape = tuple(entry["shape"])
        (first, last) = tuple(entry["data_offsets"])
        numbers = (*shape, first, last)
    except (KeyError, TypeError, ValueError):
        raise _checkpoint_error(
            path, f"tensor {printable_name(name)} has no dtype, shape and data_offsets: it is damaged"
        ) from None
    if any(type(number) is not int or number < 0 for number in numbers):
        raise _checkpoint_error(
            path, f"tensor {printable_name(name)}: sizes are integers, not {list(numbers)}: it is damaged"
        )
    if kind not in SIZES:
        raise _checkpoint_error(
            path,
            f"tensor {printable_name(name)} has elements of type {printable_name(kind)}, which is not "
            f"supported; supported are: {', '.join(SIZES)}",
        )
    return kind, shape, (first, last)


def _first_byte(entry: Any) -> int:
    """Return where a tensor begins, to sort entries by; 0 for a malformed entry, which `_parse_entry` reports."""
    if isinstance(entry, dict):
        places = cast("dict[str, Any]", entry).get("data_offsets")
    else:
        places = None
    if isinstance(places, list) and places and type(places[0]) is int:
        return places[0]
    return 0


def _read_bytes(path: Path) -> bytes:
    """Return the content of a file. Raises HostError if it cannot be read."""
    try:
        return read_whole(path, 100)
    except OSError as error:
        raise _checkpoint_error(path, str(error.strerror)) from None


def _parse_object(path: Path, data: bytes) -> dict[str, Any]:
    """Parse a JSON object of the file `path`. Raise HostError for data that is no JSON object, and for a name that
    occurs twice."""
    try:
        document: Any = json.loads(data, object_pairs_hook=each_name_once)
    except NameTwiceError as error:
        name = printable_name(error.name)
        raise _checkpoint_error(path, f"{name} occurs twice: remove one of them, or save the file again") from None
    except (ValueError, RecursionError):
        raise _checkpoint_error(
            path, "no JSON where its header should be: it is damaged, or not a safetensors file"
        ) from None
    if not isinstance(document, dict):
        raise _checkpoint_error(path, "its header is not a JSON object: it is damaged, or not a safetensors file")
    return cast("dict[str, Any]", document)


def _checkpoint_error(path: Path, fault: str) -> HostError:
    """Return the error for a fault in a file of parameters."""
    return HostError(f"compile: parameters: {path}: {fault}")


def parameter_constant(tensor: Any, name: str, mappings: FileMappings) -> Array | Referenced:
    """Return a parameter as a constant: a large one that lies in a mapped file as a reference, any other one as an
    array."""
    if tensor.layout == torch.strided:
        size = tensor.untyped_storage().nbytes()
    else:
        size = 0
    byte_size = tensor.numel() * tensor.element_size()
    if tensor.is_cpu:
        file = mappings.of(tensor.untyped_storage().data_ptr(), size)
    else:
        file = None
    if file is None:
        return array_of(tensor)
    if byte_size < LARGE or not Path(file.path).exists():
        return np.array(array_of(tensor))  # a copy: the file may change
    halves = tensor.dtype == torch.bfloat16
    array = (tensor.view(torch.int16) if halves else tensor).numpy()
    if halves:
        array = array.view(np.uint16)
    back = page_releaser(array, shared=file.shared)
    return reference_to(array, f"{name} in {file.path}", back, change_guard(file.path), bfloat16=halves)


def with_parameters(module: Any, path: Path) -> Any:
    """Return a copy of a module, made on any device or on "meta", with the parameters and buffers of a file of
    safetensors or of `torch.save`. Raise HostError naming file, tensor, rule and fix for names, types and shapes that
    are not the module's."""
    saved = module.state_dict(keep_vars=True)
    named = (module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False))
    fixed = {name: tensor for name, tensor in chain.from_iterable(named) if name not in saved}
    copied = copy.deepcopy(module)
    copied.load_state_dict(_read_parameters(path, saved, fixed, saved, type(module).__name__), assign=True)
    for parameter in copied.parameters():
        parameter.requires_grad_(False)
    return copied


def program_with_parameters(program: Any, path: Path) -> Any:
    """Return an ExportedProgram on the processor with the parameters and buffers of a file of safetensors or of
    `torch.save`; its own are replaced. Raise HostError naming file, tensor, rule and fix for names, types and shapes
    that are not the program's."""
    signature = program.graph_signature
    saved = program.state_dict
    read = {*signature.inputs_to_parameters.values(), *signature.inputs_to_buffers.values()}
    for name, tensor in _read_parameters(path, saved, program.constants, saved.keys() & read, "the program").items():
        is_parameter = isinstance(saved[name], torch.nn.Parameter)
        if is_parameter:
            saved[name] = torch.nn.Parameter(tensor, requires_grad=False)
        else:
            saved[name] = tensor
    for name in saved.keys() - read:
        del saved[name]
    if program.example_inputs is not None:
        program.example_inputs = tree_map_only(torch.Tensor, _with_data, program.example_inputs)
    return move_to_device_pass(program, "cpu")


def refuse_missing_data(tensors: Iterable[tuple[str, Any]], owner: str, fix: str) -> None:
    """Raise HostError if parameters or buffers of a model lie on the device meta, which keeps shapes alone; `fix` says
    how to give them data."""
    names = [name for name, tensor in tensors if isinstance(tensor, torch.Tensor) and tensor.is_meta]
    if names:
        raise HostError(f"compile: {owner}: no data for {_list_names(names)}, on torch's device meta: {fix}")


def named_tensors(module: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over the parameters and buffers of a module with their names."""
    return chain(module.named_parameters(), module.named_buffers())


def _with_data(tensor: Any) -> Any:
    """Return a tensor of zeros on the CPU for one of the device meta; any other unchanged."""
    if tensor.is_meta:
        return torch.zeros_like(tensor, device="cpu")
    return tensor


def _read_parameters(
    path: Path, saved: Mapping[str, Any], fixed: Mapping[str, Any], names: Collection[str], owner: str
) -> dict[str, Any]:
    """Read the tensors `names` of a file for a model. `saved` are the tensors of its state dictionary; `fixed` are
    those outside of it, which must have data themselves. Raise HostError for mismatches."""
    if path.suffix in _OF_TORCH:
        file_tensors = _load_torch_file(path)
    else:
        file_tensors = {name: _to_torch(stored) for name, stored in read_checkpoint(path).items()}
    model_tensors = {**fixed, **saved}
    by_tensor = {
        id(model_tensors[name]): tensor for name, tensor in file_tensors.items() if name in model_tensors
    }  # tied ones stand in a file once
    missing = [
        name for name in saved if name in names and name not in file_tensors and id(saved[name]) not in by_tensor
    ]
    unknown = [name for name in file_tensors if name not in model_tensors]
    if missing or unknown:
        raise HostError(f"compile: parameters: {path}: {_mismatch_text(missing, unknown)}")
    for name, tensor in file_tensors.items():
        _check_tensor(path, name, tensor, model_tensors[name])
    without_data = [name for name, tensor in fixed.items() if tensor.is_meta]
    if without_data:
        raise HostError(
            f"compile: parameters: {owner}: buffer {_list_names(without_data)} has no data: it is on the device "
            "meta and, not being persistent, in no file: make the part of the module that has it "
            "outside of torch.device('meta')"
        )
    return {
        name: file_tensors[name] if name in file_tensors else by_tensor[id(saved[name])]
        for name in saved
        if name in names
    }


_OF_TORCH: Final = (".pt", ".pth", ".bin")
_NAMED: Final = 3  # names in a message: more would hide what is wrong
_TYPES: Final = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip


def _to_torch(stored: Stored) -> Any:
    """Return a tensor of a safetensors file as a torch tensor on the same memory."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # that it cannot be written to
        return torch.from_numpy(stored.data).view(_TYPES[stored.type]).reshape(stored.shape)


def _load_torch_file(path: Path) -> dict[str, Any]:
    """Return the tensors by name of a file that `torch.save` wrote, mapped from the file and read without running code.
    Raises HostError for a damaged file and for one that holds anything else."""
    try:
        tensors = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except Exception as error:  # noqa: BLE001 - torch raises many kinds for damaged files
        reason = str(error).strip().splitlines()
        raise HostError(
            f"compile: parameters: {path}: torch.load does not read it: {reason[0] if reason else error!r}: it takes a "
            "dictionary of tensors, as torch.save(module.state_dict(), file) writes"
        ) from None
    if not isinstance(tensors, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in tensors.values()):
        raise HostError(f"compile: parameters: {path}: no dictionary of tensors: save module.state_dict()")
    return dict(tensors)


def _mismatch_text(missing: list[str], unknown: list[str]) -> str:
    """Say which tensors of the module the checkpoint lacks (`missing`) and which the module does not have (`unknown`),
    with a similar name as a hint."""
    groups = ("it has no tensor", missing), ("the module has no", unknown)
    parts = [f"{intro} {_list_names(names)}" for intro, names in groups if names]
    if missing and unknown:
        suggestion = near(missing[0], unknown)
    else:
        suggestion = ""
    return f"{'; '.join(parts)}: {f'{suggestion} ' if suggestion else ''}is it the checkpoint of this module?"


def _list_names(names: list[str]) -> str:
    """Return the first names of a list, printable, and how many more there are."""
    return list_first([printable_name(name) for name in names], _NAMED)


def _check_tensor(path: Path, name: str, tensor: Any, expected: Any) -> None:
    """Raise HostError if a tensor of a checkpoint differs from the module's (`expected`) in shape or element type."""
    context = f"compile: parameters: {path}: tensor {printable_name(name)}"
    if tensor.shape != expected.shape:
        raise HostError(
            f"{context} has shape {list(tensor.shape)}, the module takes {list(expected.shape)}: is the module made "
            "with the configuration of this checkpoint?"
        )
    if tensor.dtype != expected.dtype:
        expected_type, actual_type = (str(candidate.dtype).removeprefix("torch.") for candidate in (expected, tensor))
        if tensor.is_floating_point():
            fix = f"module.to(torch.{actual_type}) costs nothing on the device meta"
        else:
            fix = "is it the checkpoint of this module?"
        raise HostError(f"{context} is {actual_type}, the module takes {expected_type}: {fix}")
