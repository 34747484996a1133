"""Parameters of a torch module that lie in files, as `torch.load(mmap=True)` and safetensors leave them: by
reference."""

import copy
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from buda_emu.checker.suggest import near
from buda_emu.compiler.graph.graph import Array
from buda_emu.compiler.graph.names import shown_name
from buda_emu.compiler.importers.from_torch.origin import array_of
from buda_emu.compiler.importers.safetensors import Stored, read_checkpoint
from buda_emu.errors import HostError
from buda_emu.tensor.mapped import FileMappings, giving_back
from buda_emu.tensor.referenced import LARGE, Referenced, referenced


def held_as(tensor: Any, name: str, mappings: FileMappings) -> Array | Referenced:
    """A parameter as a constant: a large one whose memory is a file's by reference, any other one as an array."""
    size = tensor.untyped_storage().nbytes() if tensor.layout == torch.strided else 0
    own = tensor.numel() * tensor.element_size()
    file = mappings.of(tensor.untyped_storage().data_ptr(), size) if own >= LARGE and tensor.is_cpu else None
    if file is None:
        return array_of(tensor)
    halves = tensor.dtype == torch.bfloat16
    array = (tensor.view(torch.int16) if halves else tensor).numpy()
    array = array.view(np.uint16) if halves else array
    return referenced(array, f"{name} in {file.path}", giving_back(array, shared=file.shared), bfloat16=halves)


def with_parameters(module: Any, path: Path) -> Any:
    """A copy of a module, made on the device "meta" or anywhere, whose parameters and buffers are those of a file: maps
    of safetensors, or of what `torch.save` wrote. Raises HostError naming file, tensor, rule and fix for names, types
    and shapes that are not the module's."""
    held = _of_torch(path) if path.suffix in _OF_TORCH else {
        name: _tensor(stored) for name, stored in read_checkpoint(path).items()
    }  # fmt: skip
    own = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    saved = module.state_dict(keep_vars=True)
    by_tensor = {
        id(own[name]): tensor for name, tensor in held.items() if name in own
    }  # tied ones stand in a file once
    missing = [name for name, tensor in saved.items() if name not in held and id(tensor) not in by_tensor]
    unknown = [name for name in held if name not in own]
    if missing or unknown:
        raise HostError(f"compile: parameters: {path}: {_names(missing, unknown)}")
    for name, tensor in held.items():
        _check(path, name, tensor, own[name])
    bare = [name for name, tensor in own.items() if tensor.is_meta and name not in saved]
    if bare:
        raise HostError(
            f"compile: parameters: {type(module).__name__}: buffer {_some(bare)} has no data: it is on the device meta "
            "and, not being persistent, in no file: make the part of the module that has it outside of "
            "torch.device('meta')"
        )
    found = copy.deepcopy(module)
    found.load_state_dict({name: held.get(name, by_tensor.get(id(own[name]))) for name in saved}, assign=True)
    for parameter in found.parameters():
        parameter.requires_grad_(False)
    return found


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
        fix = f"module.to(torch.{have}) costs nothing on the device meta" if tensor.is_floating_point() else (
            "is it the checkpoint of this module?"
        )  # fmt: skip
        raise HostError(f"{where} is {have}, the module takes {want}: {fix}")
