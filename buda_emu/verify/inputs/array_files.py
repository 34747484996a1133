"""Arrays by name in the files that people keep them in: .npy, .npz and .safetensors."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import HostError
from buda_emu.verify.inputs.numpy_files import npz_of

Array = NDArray[Any]

_SAFE_TYPES: Final[Mapping[str, str]] = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8",
    "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


def read_archive(file: str, data: bytes, most: int | None = None) -> Mapping[str, Array]:
    """The arrays of a .npz or .safetensors file by name; bfloat16 as float32. `most`: bytes that what is packed may
    take. Raises HostError."""
    return npz_of(file, data, most) if file.lower().endswith(".npz") else _safetensors(file, data)


def is_archive(file: str) -> bool:
    """Whether the name is that of a file with several arrays."""
    return file.lower().endswith((".npz", ".safetensors"))


def _safetensors(file: str, data: bytes) -> Mapping[str, Array]:
    try:
        from safetensors import SafetensorError, deserialize  # pyright: ignore[reportUnknownVariableType]
    except ImportError:
        raise HostError(f"{file}: reading .safetensors needs a package: pip install safetensors") from None
    try:
        entries: list[tuple[str, Mapping[str, Any]]] = deserialize(data)
        return {name: _safe_array(file, name, entry) for name, entry in entries}
    except SafetensorError as error:
        raise HostError(f"{file} is not a safetensors file: {error}") from None


def _safe_array(file: str, name: str, entry: Mapping[str, Any]) -> Array:
    kind, shape = str(entry["dtype"]), tuple(entry["shape"])
    if kind == "BF16":
        halves = np.frombuffer(entry["data"], "<u2").astype(np.uint32)
        return (halves << 16).view(np.float32).reshape(shape)
    if kind not in _SAFE_TYPES:
        raise HostError(f"{file}: {name} has elements of type {kind}, which is not read")
    return np.frombuffer(entry["data"], _SAFE_TYPES[kind]).reshape(shape)
