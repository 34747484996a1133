"""The content of `device.json` as frozen records (NETLIST 8)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import prod
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from buda_emu.emulator.image.archive import TOP, checked_name
from buda_emu.emulator.image.fields import (
    MISSING,
    FieldError,
    Reader,
    anything,
    below,
    collect_errors,
    empty,
    flag,
    integer_between,
    json_object,
    list_of,
    map_of,
    natural,
    number_format,
    object_of,
    optional,
    optional_field,
    optional_map_field,
    positive,
    read_fields,
    read_value,
    required_field,
    text,
    word,
)
from buda_emu.emulator.image.model_io import KEY, ModelIo
from buda_emu.emulator.image.rules import ImageError, Place, combine_errors
from buda_emu.spec.archs import ARCHS
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.host_shape import outermost_first
from buda_emu.support.checker.text import short_line

DumpFormat = Literal["DEFAULT", "BACKEND", "BACKEND_TILIZED"]
_LARGEST = (1 << 62) - 1  # a sum of two such sizes still fits 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorEntry:
    """The description of one constant or parameter. For a pickled one (DEFAULT) only `name` and `member` are known.

    `shape` is [w, z, r, c], of which the last `dim` numbers are meaningful. `itemsize`, `strides` and `buffer_bytes`
    are in bytes; `buffer_bytes` counts all entries in each of `num_buffers` buffers."""

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
        """Bytes that the tensor's file must have; 0 for a pickle, whose size says nothing."""
        if self.dump_format == "BACKEND_TILIZED":
            return self.num_buffers * self.buffer_bytes
        return prod(self.shape) * self.itemsize if self.shape else 0

    @property
    def pushed_shape(self) -> tuple[int, ...]:
        """The shape [entries, t, rows, cols] in which the tensor is pushed to its queue: the outermost meaningful
        dimension counts the entries (NETLIST 7.4). It is () where the shape is not known, as of a pickle."""
        if self.shape:
            return outermost_first(self.shape, self.dim)
        return ()


def tensor_entries(value: Any, place: Place) -> Mapping[str, TensorEntry]:
    """Read `post_const_eval_constants` or `post_const_eval_parameters`. Raises one ImageError for all tensors that are
    wrong."""
    raw = read_value(json_object, value, place)
    wrong: list[ImageError] = []
    entries: dict[str, TensorEntry] = {}
    for name, description in raw.items():
        with collect_errors(wrong):
            entries[name] = _read_entry(name, description, place.below(name))
    if wrong:
        raise combine_errors(wrong)
    return MappingProxyType(entries)


def _read_entry(name: str, value: Any, place: Place) -> TensorEntry:
    """Read the description of the tensor `name`: the name of a pickle, or an object about a .bin or .tbin file. Raises
    ImageError."""
    if isinstance(value, str):
        if not value.lower().endswith(".pkl"):
            raise place.error("image-field", f"{short_line(repr(value))} is not the name of a .pkl file")
        return TensorEntry(name=name, dump_format="DEFAULT", member=_member_name(value, place))
    described = read_value(_read_description, value, place)
    entry = TensorEntry(name=name, member=_member_name(described.pop("bin"), place.below("bin")), **described)
    problem = _entry_problem(entry)
    if problem:
        raise place.error("image-tensor", f"tensor {short_line(name)}: {problem}")
    return entry


def _read_buffers(description: Mapping[str, Any]) -> dict[str, Any]:
    """Read the number of buffers, and the bytes of each, from the description of a .tbin file. Raises FieldError."""
    # The writer says buf_size_bytes, another loader wants buffer_size_bytes (NETLIST 8).
    keys = [key for key in ("buf_size_bytes", "buffer_size_bytes") if key in description]
    sizes = {below(integer_between(1, _LARGEST), key, description[key]) for key in keys}
    if "num_buffers" not in description or len(sizes) != 1:
        raise FieldError("an object with num_buffers and one buf_size_bytes (or buffer_size_bytes)")
    return {
        "num_buffers": below(positive, "num_buffers", description["num_buffers"]),
        "buffer_bytes": sizes.pop(),
    }


def _read_description(value: Any) -> dict[str, Any]:
    """Read the description of a .bin or .tbin file, the formats that need no pickle. Raises FieldError."""
    if not isinstance(value, dict) or "bin" not in value:
        raise FieldError("an object with 'bin', or the name of a .pkl file")
    read = {
        "bin": text,
        "itemsize": positive,
        "shape": list_of(positive, 4),
        "strides": list_of(integer_between(0, _LARGEST), 4),
        "dim": integer_between(1, 4),
        "format": number_format,
    }
    lacking = [key for key in read if key not in value]
    if lacking:
        raise FieldError(f"an object with {', '.join(lacking)}")
    description = cast("dict[str, Any]", value)
    fields_read: dict[str, Any] = {key: below(reader, key, description[key]) for key, reader in read.items()}
    if fields_read["bin"].endswith(".tbin"):
        return {**fields_read, "dump_format": "BACKEND_TILIZED", **_read_buffers(description)}
    if not fields_read["bin"].endswith(".bin"):
        raise FieldError("the description of a .bin or .tbin file")
    return {**fields_read, "dump_format": "BACKEND"}


def _member_name(file: str, place: Place) -> str:
    """Return the name of the archive's member that a path means; the path may leave out the top folder. Raises
    ImageError for a name that images do not allow."""
    name = file.removeprefix("./")
    try:
        return checked_name(name if name.startswith(f"{TOP}/") else f"{TOP}/{name}", False, place)
    except ImageError as error:
        raise place.error(error.rule, f"{short_line(file)}: {error.problem}") from None


def _entry_problem(entry: TensorEntry) -> str:
    """Return why a tensor's description contradicts itself, "" if it does not."""
    shape = entry.shape
    dim = entry.dim
    if any(size != 1 for size in shape[: 4 - dim]):
        return f"shape {list(shape)} has more than the {dim} dimensions that it states"
    if prod(shape) * 4 > _LARGEST or entry.file_bytes > _LARGEST:
        return f"shape {list(shape)} has more elements than can be"
    if entry.dump_format == "BACKEND_TILIZED":
        return ""
    size = FORMATS[entry.format].flat_bytes
    if size != entry.itemsize:
        return f"elements of {entry.format} have {size or 'not a whole number of'} bytes, not {entry.itemsize}"
    if not _is_row_major(entry):
        return f"strides {list(entry.strides)} are not those of a row-major tensor of shape {list(shape)}"
    return ""


def _is_row_major(entry: TensorEntry) -> bool:
    """Return whether the strides of a tensor, in bytes, are those of a tensor without gaps whose last dimension is
    innermost."""
    step = entry.itemsize
    for count, stride in zip(reversed(entry.shape), reversed(entry.strides), strict=True):
        if count > 1 and stride != step:
            return False
        step *= count
    return True


VERSION: Final = "1.1.0"
ARCH_WORDS: Final = MappingProxyType({"grayskull": "Grayskull", "wormhole_b0": "Wormhole_B0", "blackhole": "Blackhole"})
"""Architectures that an image can be for, and BackendDevice's word for each (NETLIST 7.1)."""
TRANSFORMS: Final = (
    "NoTransform", "ReinterpretShape", "Prestride", "EmbeddingIndex", "ConstantInput", "Unpad", "Concatenate",
)  # fmt: skip


def _read_arch(value: Any) -> str:
    """Return our word for an architecture, whose name may come in any case. Raises FieldError for one that images
    cannot be for."""
    name = word(value).lower()  # BackendDevice.from_string takes any case
    if name not in ARCH_WORDS:
        raise FieldError(f"one of {', '.join(ARCH_WORDS.values())}")
    return ARCHS[name].name


def _read_transform_type(value: Any) -> str:
    """Return the name of a runtime transform. Raises FieldError for an unknown one."""
    name = word(value)
    if name not in TRANSFORMS:
        raise FieldError(f"one of {', '.join(TRANSFORMS)}")
    return name


def _read_dims(value: Any) -> tuple[int, ...]:
    """Read a shape: a list, or an object with a list under `dims_` (NETLIST 8). Raises FieldError."""
    if not isinstance(value, dict):
        return list_of(positive)(value)
    dims = json_object(value).get("dims_")
    try:
        return list_of(positive)(dims)
    except FieldError as error:
        raise error.below("dims_", dims) from None


_unset: Reader = integer_between(-(1 << 63), (1 << 63) - 1)  # whatever an unset C integer is


_rounds: Reader = integer_between(
    1, 1 << 16
)  # programs loop over them: far above every real image, and done in seconds


def _read_chip(value: Any) -> int | tuple[int, ...]:
    """Read the number of a chip, or its place [x, y, rack, shelf] (NETLIST 12). Raises FieldError."""
    if isinstance(value, list):
        return list_of(natural, 4)(value)
    return natural(value)


def _read_base_name(value: Any) -> str:
    """Read a path and return its last part, which is all that matters of a netlist's path. Raises FieldError where that
    is no file name."""
    name = re.split(r"[/\\]", text(value))[-1]
    if name in ("", ".", ".."):
        raise FieldError("the name of a file")
    return name


def _read_pair(value: Any) -> tuple[str, str]:
    """Return a list of two texts as a pair. Raises FieldError for any other value."""
    first, second = list_of(text, 2)(value)
    return first, second


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """The conversion of a tensor between host and queue at run time. Fields that a `type` does not use are None, or
    anything that the compiler happened to write."""

    type: str = required_field(_read_transform_type)
    original_shape: tuple[int, ...] | None = optional_field(optional(_read_dims))
    reinterpreted_shape: tuple[int, ...] | None = optional_field(optional(_read_dims))
    unpadded_shape: tuple[int, ...] | None = optional_field(optional(_read_dims))
    stride_height: int | None = optional_field(optional(_unset))
    stride_width: int | None = optional_field(optional(_unset))
    kernel_height: int | None = optional_field(optional(_unset))
    kernel_width: int | None = optional_field(optional(_unset))
    concat_group: int | None = optional_field(optional(_unset))
    concat_index: int | None = optional_field(optional(_unset))
    concat_dim: int | None = optional_field(optional(_unset))


_NO_SHAPE: Final = MappingProxyType({"valid_": False, "type_": "FREE", "dims_": []})


def no_transform_json() -> dict[str, Any]:
    """Return the JSON of a transform that does nothing, with all the keys that readers need (FRONTEND 7)."""
    shapes = ("original_shape", "reinterpreted_shape", "unpadded_shape")
    blank: dict[str, Any] = {
        transform_field.name: dict(_NO_SHAPE) if transform_field.name in shapes else 0
        for transform_field in fields(Transform)
    }
    return {**blank, "type": "NoTransform"}


NO_TRANSFORM: Final = Transform(type="NoTransform")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTm:
    """The folding of an output queue's entries when the host reads them (LAYOUT 3.5)."""

    hstack_factor: int = optional_field(positive, 1)
    vstack_factor: int = optional_field(positive, 1)
    row_major: bool = optional_field(flag, True)


NO_HOST_TM: Final = HostTm()


@dataclass(frozen=True, slots=True)
class ModuleMetadata:
    """A source module that the image was compiled from; "" where the image does not say."""

    module: str
    class_name: str
    module_file_path: str


def _read_module(value: Any) -> ModuleMetadata:
    """Read the record of a source module; texts that are absent or null are "". Raises FieldError."""
    source = json_object(value)
    keys = ("module", "class", "module_file_path")
    texts = {key: "" if source.get(key) is None else text(source[key]) for key in keys}
    return ModuleMetadata(texts["module"], texts["class"], texts["module_file_path"])


_names: Final = list_of(text)
_shapes: Final = list_of(_read_dims)
_sizes: Final = list_of(anything)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledGraphState:
    """The compiler's results: names of queues by role, shapes, transforms, tensors after constant evaluation.

    Lists of inputs, outputs and targets are parallel. `extra` keeps fields that the format does not have."""

    microbatch: int = optional_field(natural, 1)
    graph_name: str = optional_field(text, "")
    ordered_input_names: tuple[str, ...] = optional_field(_names, ())
    ordered_output_names: tuple[str, ...] = optional_field(_names, ())
    ordered_input_gradient_names: tuple[str, ...] = optional_field(_names, ())
    ordered_output_gradient_names: tuple[str, ...] = optional_field(_names, ())
    ordered_target_names: tuple[str, ...] = optional_field(_names, ())
    ordered_constant_node_names: tuple[str, ...] = optional_field(_names, ())
    ordered_parameter_node_names: tuple[str, ...] = optional_field(_names, ())
    ordered_intermediate_activation_names: tuple[tuple[str, str], ...] = optional_field(
        list_of(_read_pair), ()
    )  # op, queue
    ordered_input_subgraph_indices: tuple[int, ...] = optional_field(list_of(natural), ())
    ordered_output_subgraph_indices: tuple[int, ...] = optional_field(list_of(natural), ())
    ordered_target_subgraph_indices: tuple[int, ...] = optional_field(list_of(natural), ())
    ordered_input_tile_broadcast_dims: tuple[tuple[int, ...], ...] = optional_field(
        list_of(list_of(integer_between(-4, 3))), ()
    )
    ordered_target_tile_broadcast_dims: tuple[Any, ...] = optional_field(_sizes, ())
    ordered_bw_input_tile_broadcast_dims: tuple[Any, ...] = optional_field(_sizes, ())
    ordered_input_runtime_tensor_transforms: tuple[Transform, ...] = optional_field(list_of(object_of(Transform)), ())
    ordered_output_runtime_tensor_transforms: tuple[Transform, ...] = optional_field(list_of(object_of(Transform)), ())
    input_to_tile_dims: Mapping[str, Any] = optional_map_field(anything)
    parameter_to_tile_dims: Mapping[str, Any] = optional_map_field(anything)
    constant_to_tile_dims: Mapping[str, Any] = optional_map_field(anything)
    ordered_input_requires_grad: tuple[bool, ...] = optional_field(list_of(flag), ())
    ordered_output_requires_grad: tuple[bool, ...] = optional_field(list_of(flag), ())
    ordered_input_shapes: tuple[tuple[int, ...], ...] = optional_field(_shapes, ())
    ordered_output_shapes: tuple[tuple[int, ...], ...] = optional_field(_shapes, ())
    ordered_target_shapes: tuple[tuple[int, ...], ...] = optional_field(_shapes, ())
    ordered_intermediate_shapes: tuple[tuple[int, ...], ...] = optional_field(_shapes, ())
    ordered_output_data_formats: tuple[str, ...] = optional_field(list_of(number_format), ())
    netlist_filename: str = required_field(_read_base_name)
    output_host_tms: Mapping[str, HostTm] = optional_map_field(object_of(HostTm))
    consteval_trace: Any = optional_field(anything)
    optimizer_param_info: Mapping[str, Any] = optional_map_field(list_of(_read_pair))
    cpueval_outputs: str | None = optional_field(optional(text))
    has_cache_buffers: bool = optional_field(flag, False)
    post_const_eval_constants: Mapping[str, TensorEntry] = field(default_factory=empty)
    post_const_eval_parameters: Mapping[str, TensorEntry] = field(default_factory=empty)
    extra: Mapping[str, Any] = field(default_factory=empty)

    @property
    def tensors(self) -> Mapping[str, TensorEntry]:
        """Constants, then parameters, by name."""
        return {**self.post_const_eval_constants, **self.post_const_eval_parameters}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMetadata:
    """The content of device.json. `arch` is the netlist's word; `fp32_fallback` is the format that the compiler put in
    place of Float32. `missing` names the fields that the format has and this file has not, `extra` keeps those that
    only the file has. `model` is the model's own inputs and outputs, of an image that `buda-emu compile` wrote."""

    version: str = required_field(text)
    device_image_name: str = optional_field(text, "")
    arch: str = required_field(_read_arch)
    devtype: str = optional_field(word, "")
    chip_ids: tuple[int | tuple[int, ...], ...] = optional_field(list_of(_read_chip), ())
    fp32_fallback: str = optional_field(number_format, "")
    optimizer: str | None = optional_field(optional(text))
    training: bool = optional_field(flag, False)
    microbatch_size: int = optional_field(_rounds, 1)
    microbatch_count: int = optional_field(_rounds, 1)
    grid_size: tuple[int, ...] = optional_field(list_of(integer_between(1, 1 << 16), 2), ())
    harvested_rows: Any = optional_field(anything)
    verify_cfg: Mapping[str, Any] | None = optional_field(optional(map_of(anything)))
    compiler_cfg: Mapping[str, Any] | None = optional_field(optional(map_of(anything)))
    loss_module: str | None = optional_field(optional(text))
    module_name_to_metadata: Mapping[str, ModuleMetadata] = optional_map_field(_read_module)
    pybuda_pip_version_id: str = optional_field(text, "")
    pybuda_commit_hash: str | None = optional_field(optional(text), "")  # null: made outside of a git checkout
    budabackend_commit_hash: str | None = optional_field(optional(text), "")
    compiled_graph_state: CompiledGraphState
    model: ModelIo | None = None
    missing: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=empty)


def read_metadata(content: Mapping[str, Any], place: Place) -> DeviceMetadata:
    """Read the content of device.json. Raises ImageError for another version, and one ImageError for all fields that
    are missing or wrong."""
    version = content.get("version")
    if version != VERSION:
        raise place.below("version").error("image-version", f"its version is {short_line(repr(version))}")
    wrong: list[ImageError] = []
    missing: list[Place] = []
    parts: dict[str, Any] = {"compiled_graph_state": None, KEY: None}
    at = place.below("compiled_graph_state")
    with collect_errors(wrong):
        if "compiled_graph_state" not in content:
            raise at.error("image-field", MISSING)
        parts["compiled_graph_state"] = _read_state(
            read_value(json_object, content["compiled_graph_state"], at), at, missing
        )
    with collect_errors(wrong):
        if content.get(KEY) is not None:
            parts[KEY] = ModelIo.from_json(content[KEY], place.below(KEY))
    with collect_errors(wrong):
        other_fields = {key: value for key, value in content.items() if key != KEY}
        metadata = read_fields(
            DeviceMetadata, other_fields, place, missing, compiled_graph_state=parts["compiled_graph_state"]
        )
        if not wrong:
            absent = tuple(".".join(map(str, place_of_field.steps)) for place_of_field in missing)
            return replace(metadata, missing=absent, model=parts[KEY])
    raise combine_errors(wrong)


def _read_state(source: Mapping[str, Any], place: Place, missing: list[Place]) -> CompiledGraphState:
    """Read the compiler's results, with the descriptions of their tensors. Optional fields that are absent are appended
    to `missing`. Raises one ImageError for all that is wrong."""
    wrong: list[ImageError] = []
    tensors: dict[str, Any] = {}
    for group in ("post_const_eval_constants", "post_const_eval_parameters"):
        at = place.below(group)
        if group not in source:
            missing.append(at)
        tensors[group] = {}
        with collect_errors(wrong):
            tensors[group] = tensor_entries(source.get(group, {}), at)
        for name in tensors[group] if group == "post_const_eval_parameters" else ():
            if name in tensors["post_const_eval_constants"]:
                wrong.append(
                    at.below(name).error("image-field", f"tensor {short_line(name)} is a constant and a parameter")
                )
    with collect_errors(wrong):
        state = read_fields(CompiledGraphState, source, place, missing, **tensors)
        if not wrong:
            return state
    raise combine_errors(wrong)
