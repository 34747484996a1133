"""Parameters of a torch module that lie in files, as `torch.load(mmap=True)` and safetensors leave them: by
reference."""

import copy
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch.export.passes import move_to_device_pass
from torch.utils._pytree import tree_map_only

from buda_emu.checker.suggest import near
from buda_emu.compiler.graph.graph import Array
from buda_emu.compiler.graph.names import shown_name
from buda_emu.compiler.importers.from_torch.origin import array_of
from buda_emu.compiler.importers.safetensors import Stored, read_checkpoint
from buda_emu.errors import HostError
from buda_emu.files import unchanged
from buda_emu.tensor.mapped import FileMappings, giving_back
from buda_emu.tensor.referenced import LARGE, Referenced, referenced


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
    back = giving_back(array, shared=file.shared)
    return referenced(array, f"{name} in {file.path}", back, unchanged(file.path), bfloat16=halves)


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
    signature, saved = program.graph_signature, program.state_dict
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
