"""How device.json describes a tensor, in each dump format (NETLIST 8)."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any, Literal, cast

from buda_emu.checker.text import shown
from buda_emu.image.fields import (
    FieldError,
    below,
    json_object,
    listed,
    noted,
    number_format,
    positive,
    read_value,
    text,
    whole,
)
from buda_emu.image.names import TOP, checked_name
from buda_emu.image.rules import ImageError, Place, together
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.host_shape import outermost_first

DumpFormat = Literal["DEFAULT", "BACKEND", "BACKEND_TILIZED"]
_LARGEST = (1 << 62) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorEntry:
    """One constant or parameter. Of a pickled one (DEFAULT) only `name` and `member` are known.

    `shape` is [w, z, r, c], of which the last `dim` numbers are meaningful. `itemsize`, `strides` and `buffer_bytes`
    are in bytes; `buffer_bytes` counts all entries in each of `num_buffers` buffers.
    """

    name: str
    dump_format: DumpFormat
    member: str
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    itemsize: int = 0
    dim: int = 4
    format: str = ""
    num_buffers: int = 0
    buffer_bytes: int = 0

    @property
    def file_bytes(self) -> int:
        """Bytes that its file must have; 0 for a pickle, whose size says nothing."""
        if self.dump_format == "BACKEND_TILIZED":
            return self.num_buffers * self.buffer_bytes
        return prod(self.shape) * self.itemsize if self.shape else 0

    @property
    def pushed_shape(self) -> tuple[int, ...]:
        """[entries, t, rows, cols] that a queue gets: the outermost meaningful dimension is w (NETLIST 7.4)."""
        return outermost_first(self.shape, self.dim) if self.shape else ()


def tensor_entries(value: Any, place: Place) -> Mapping[str, TensorEntry]:
    """`post_const_eval_constants` or `post_const_eval_parameters`. Raises one ImageError for all tensors that are
    wrong."""
    raw = read_value(json_object, value, place)
    wrong: list[ImageError] = []
    found: dict[str, TensorEntry] = {}
    for name, item in raw.items():
        with noted(wrong):
            found[name] = _entry(name, item, place.below(name))
    if wrong:
        raise together(wrong)
    return MappingProxyType(found)


def _entry(name: str, value: Any, place: Place) -> TensorEntry:
    if isinstance(value, str):
        if not value.lower().endswith(".pkl"):
            raise place.error("image-field", f"{shown(repr(value))} is not the name of a .pkl file")
        return TensorEntry(name=name, dump_format="DEFAULT", member=_member(value, place))
    described = read_value(_description, value, place)
    entry = TensorEntry(name=name, member=_member(described.pop("bin"), place.below("bin")), **described)
    problem = _problem(entry)
    if problem:
        raise place.error("image-tensor", f"tensor {shown(name)}: {problem}")
    return entry


def _description(value: Any) -> dict[str, Any]:
    """The keys of the formats that need no pickle."""
    if not isinstance(value, dict) or "bin" not in value:
        raise FieldError("an object with 'bin', or the name of a .pkl file")
    read = {
        "bin": text,
        "itemsize": positive,
        "shape": listed(positive, 4),
        "strides": listed(whole(0, _LARGEST), 4),
        "dim": whole(1, 4),
        "format": number_format,
    }
    lacking = [key for key in read if key not in value]
    if lacking:
        raise FieldError(f"an object with {', '.join(lacking)}")
    given = cast("dict[str, Any]", value)
    found: dict[str, Any] = {key: below(reader, key, given[key]) for key, reader in read.items()}
    if found["bin"].endswith(".tbin"):
        # The writer says buf_size_bytes, another loader wants buffer_size_bytes (NETLIST 8).
        keys = [key for key in ("buf_size_bytes", "buffer_size_bytes") if key in given]
        sizes = {below(whole(1, _LARGEST), key, given[key]) for key in keys}
        if "num_buffers" not in given or len(sizes) != 1:
            raise FieldError("an object with num_buffers and one buf_size_bytes (or buffer_size_bytes)")
        buffers = below(positive, "num_buffers", given["num_buffers"])
        return {**found, "dump_format": "BACKEND_TILIZED", "num_buffers": buffers, "buffer_bytes": sizes.pop()}
    if not found["bin"].endswith(".bin"):
        raise FieldError("the description of a .bin or .tbin file")
    return {**found, "dump_format": "BACKEND"}


def _member(file: str, place: Place) -> str:
    """The member that a path stands for: below the top folder, whose name may be written. Raises ImageError."""
    name = file.removeprefix("./")
    try:
        return checked_name(name if name.startswith(f"{TOP}/") else f"{TOP}/{name}", False, place)
    except ImageError as error:
        raise place.error(error.rule, f"{shown(file)}: {error.problem}") from None


def _problem(entry: TensorEntry) -> str:
    """What is wrong with a description by itself, "" if nothing."""
    shape, dim = entry.shape, entry.dim
    if any(size != 1 for size in shape[: 4 - dim]):
        return f"shape {list(shape)} has more than the {dim} dimensions that it states"
    if prod(shape) * 4 > _LARGEST or entry.file_bytes > _LARGEST:
        return f"shape {list(shape)} has more elements than can be"
    if entry.dump_format == "BACKEND_TILIZED":
        return ""
    size = FORMATS[entry.format].flat_bytes
    if size != entry.itemsize:
        return f"elements of {entry.format} have {size or 'not a whole number of'} bytes, not {entry.itemsize}"
    step = entry.itemsize
    for count, stride in zip(reversed(shape), reversed(entry.strides), strict=True):
        if count > 1 and stride != step:
            return f"strides {list(entry.strides)} are not those of a row-major tensor of shape {list(shape)}"
        step *= count
    return ""
