"""Writes an image: a netlist and its constants and parameters in one archive (NETLIST 8).

Equal netlists and tensors give equal bytes: members are sorted, times and owners are fixed, nothing is compressed."""

import json
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from pathlib import PurePath
from typing import IO, Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats import host_decode
from buda_emu.arithmetic.formats.packing import pack_datums
from buda_emu.arithmetic.tensor.layout import EntryLayout, pack_entry, pack_strips, tilize
from buda_emu.arithmetic.tensor.referenced import BLOCK, Referenced
from buda_emu.emulator.image.archive import DEVICE, TOP, check_unique, checked_name
from buda_emu.emulator.image.checks import CONFIG, queues_by_name
from buda_emu.emulator.image.host_plan import FOLDER, SOURCE
from buda_emu.emulator.image.metadata import ARCH_WORDS, VERSION, no_transform_json
from buda_emu.emulator.image.model_io import KEY
from buda_emu.emulator.image.rules import ImageError, Place
from buda_emu.emulator.image.tensors import ELEMENTS
from buda_emu.netlist.model import Netlist, Queue
from buda_emu.netlist.test_config import read_test_config
from buda_emu.spec.formats import is_raw
from buda_emu.support.errors import HostError, UnsupportedError
from buda_emu.support.unmasked import refuse_masked_arrays

# What PyBUDA's configuration class begins with (release of 2024), as its JSON has it. Nothing here acts in buda-emu.
_DEFAULTS: Final[dict[str, Any]] = {
    "enable_training": False,
    "enable_recompute": False,
    "match_subgraph_patterns": None,
    "balancer_policy": "default",
    "scheduler_policy": "ModuleInputsBFS",
    "enable_t_streaming": True,
    "manual_t_streaming": False,
    "enable_consteval": True,
    "enable_auto_fusing": True,
    "compile_subgraphs": False,
    "graph_solver_self_cut_type": "FastCut",
    "use_interactive_placer": True,
    "enable_enumerate_u_kt": True,
    "enable_link_past_cache_ios": False,
    "enable_pt2_fx_graph_link": False,
    "compile_depth": "FULL",
    "enable_tvm_cpu_fallback": True,
    "cpu_fallback_ops": ["embedding"],
    "enable_tm_cpu_fallback": False,
    "tm_cpu_fallback_max_depth": 10,
    "enable_tvm_dropout": False,
    "enable_tvm_unsupported_ops": False,
    "enable_op_level_comparision": False,
    "enable_tvm_constant_prop": False,
    "convert_framework_params_to_tvm": True,
    "enable_xla_jax_convert": False,
    "enable_tvm_jax_freeze_large_model": True,
    "framework_model_output_names": [],
    "tvm_constnat_prop_mask": [],
    "compile_tvm_to_python": True,
    "retain_tvm_python_files": False,
    "tvm_graph_store_path": "",
    "tvm_graph_load_path": "",
    "tvm_module_to_num_patterns": {},
    "enable_conv_prestride": True,
    "max_pool_add_sub_surround": False,
    "max_pool_add_sub_surround_value": 1.0,
    "loopback_outputs": {},
    "enable_device_tilize": False,
    "chip_placement_policy": "MMIO_LAST",
    "op_names_to_epoch_break": [],
    "op_names_to_chip_break": [],
    "op_names_dont_fuse": [],
    "op_names_manual_fuse": [],
    "balancer_op_overrides": {},
    "default_dram_parameters": None,
    "placer_op_overrides": [],
    "default_df_override": None,
    "default_accumulate_df": None,
    "enable_broadcast_splitting": False,
    "default_math_fidelity": "HiFi3",
    "performance_trace": "NONE",
    "amp_level": None,
    "harvesting_mask": 0,
    "enable_auto_transposing_placement": False,
    "fracture_groups": [],
    "conv_multi_op_fracture_factor_override": {},
    "enable_stable_softmax": True,
    "enable_single_buffer_fallback": False,
    "device_mode": "CompileAndRun",
    "backend_opt_level": 4,
    "backend_output_dir": "",
    "backend_device_descriptor_path": "",
    "backend_cluster_descriptor_path": "",
    "backend_runtime_params_path": "",
    "backend_runtime_args": "",
    "store_backend_db_to_yaml": False,
    "input_queues_on_host": True,
    "output_queues_on_host": True,
    "manual_dram_queue_placement": {},
    "buffering_nops_to_insert": {},
    "insert_queues": [],
    "amp_properties": [],
    "scheduler_constraints": [],
    "paddings": {},
    "op_intermediates_to_save": [],
    "tti_dump_format": "DEFAULT",
    "dram_placement_algorithm": "ROUND_ROBIN",
}


def compiler_config(output_dir: str, dump_format: str, *, training: bool) -> dict[str, Any]:
    """Return `compiler_cfg` of device.json. `output_dir` is the folder of the compiler's output, inside of the
    image."""
    overrides = {"backend_output_dir": output_dir, "tti_dump_format": dump_format, "enable_training": training}
    return {**_DEFAULTS, **overrides}


Array = NDArray[Any]
Form = Literal["BACKEND", "BACKEND_TILIZED"]
Container = Literal["tar", "zip"]

_FORMATS: Final[Mapping[str, str]] = {
    "float32": "Float32", "float16": "Float16", "int32": "Int32", "int8": "Int8", "uint8": "UInt8", "uint16": "UInt16",
}  # fmt: skip
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the first that a zip can hold
_BUILD: Final = f"{TOP}/backend_build_binaries"


@dataclass(frozen=True, slots=True)
class _Member:
    """A file of the archive: its size in bytes, and a function that yields its content part by part."""

    size: int
    parts: Callable[[], Iterable[bytes | memoryview]]

    @staticmethod
    def of(data: bytes) -> "_Member":
        """Return a member that has these bytes."""
        return _Member(len(data), lambda: (data,))


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of an image to write. `tensors` are by queue: [entries, t, rows, cols] as `Emulator.push` takes them.
    `netlist_text` is the netlist's file. `name` is the image's own, `version` that of the front end for which it is
    written: a front end reads only images of its own version. `model` is the JSON of `ModelIo` for the model that the
    netlist was compiled from; `host` has the files that its host plan names, `source` those of the model itself, from
    which it can be compiled for another board."""

    netlist: Netlist
    netlist_text: bytes
    tensors: Mapping[str, Array]
    name: str
    version: str
    form: Form = "BACKEND"
    model: Mapping[str, Any] | None = None
    host: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    source: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


def write_image(stream: IO[bytes], contents: Contents, container: Container = "tar") -> None:
    """Write an image to a stream. Raises HostError for tensors that do not fit their queues and names that images
    cannot have, UnsupportedError for what an image cannot hold; then nothing has been written."""
    members = _collect_members(contents)
    if container == "zip":
        _write_zip(stream, members)
    else:
        _write_tar(stream, members)


def _collect_members(contents: Contents) -> dict[str, _Member | None]:
    """Return every member of the image by name in sorted order, None for a folder, after all checks. Raises HostError,
    UnsupportedError."""
    netlist = contents.netlist
    place = Place(contents.name)
    if netlist.arch_name not in ARCH_WORDS:
        raise UnsupportedError(f"pack: there are no images for {netlist.arch_name}, only for {', '.join(ARCH_WORDS)}")
    entries: dict[str, dict[str, Any]] = {}
    members: dict[str, _Member | None] = {TOP: None, f"{TOP}/tensors": None, _BUILD: None}
    for name, array in sorted(contents.tensors.items()):
        entries[name], member = _describe_tensor(netlist, name, array, contents.form)
        _add_member(members, f"{TOP}/{entries[name]['bin']}", member, place)
    _add_member(members, f"{TOP}/{PurePath(netlist.path).name}", _Member.of(contents.netlist_text), place)
    _add_member(members, DEVICE, _json_member(_device_json(contents, entries)), place)
    _add_member(members, CONFIG, _json_member({}), place)
    for name, data in contents.host.items():
        _add_member(members, f"{TOP}/{FOLDER}/{name}", _Member.of(data), place)
    for name, data in contents.source.items():
        _add_member(members, f"{TOP}/{SOURCE}/{name}", _Member.of(data), place)
    try:
        check_unique(((name, member is None) for name, member in members.items()), place)
    except ImageError as error:
        raise HostError(f"pack: {error.member}: {error.problem}: an image cannot tell these names apart") from None
    return dict(sorted(members.items()))


def _add_member(members: dict[str, _Member | None], name: str, member: _Member, place: Place) -> None:
    """Add a file to the members. Raises HostError for a name that images cannot have, or that is there already."""
    try:
        checked_name(name, False, place)
    except ImageError as error:
        raise HostError(f"pack: {error.member}: {error.problem}") from None
    if name in members:
        raise HostError(f"pack: two members would be {name}: '/' in a queue's name becomes '_'")
    members[name] = member


def _describe_tensor(netlist: Netlist, name: str, array: Array, form: Form) -> tuple[dict[str, Any], _Member]:
    """Return the entry in device.json and the file of a tensor for the queue `name`. `form`: elements row by row, or
    tiles. Raises HostError for an array that does not fit, UnsupportedError for a queue that takes no tiles."""
    queue = _queue_for(netlist, name, array)
    file = f"tensors/torch.Tensor.{name.replace('/', '_')}"
    if is_raw(queue.df):
        df = "RawUInt32"
    else:
        df = _FORMATS.get(array.dtype.name, "Float32")
    flat = form == "BACKEND_TILIZED" and queue.layout == "flat" and not is_raw(queue.df) and queue.df in ELEMENTS
    if flat:
        df = queue.df  # there are no tiles, but elements of the queue's format
    size = np.dtype(ELEMENTS[df]).itemsize
    strides = [size * prod(array.shape[place:]) for place in range(1, 5)]
    entry = {
        "bin": f"{file}.bin",
        "itemsize": size,
        "shape": list(array.shape),
        "strides": strides,
        "dim": 4,
        "format": df,
    }
    if flat:
        return entry, _Member(array.size * size, lambda: _encoded_element_parts(array, df))
    if form == "BACKEND":
        # In its own type, or in the one that a push would convert it to.
        return entry, _Member(array.size * size, lambda: _element_parts(array, ELEMENTS[df]))
    if queue.layout != "tilized":
        raise UnsupportedError(
            f"pack: queue {name} has layout {queue.layout}, which takes no tiles: leave out --tilized"
        )
    layout = EntryLayout(queue.df, queue.blocking, "tilized", netlist.arch.alignment)
    buffer = layout.entry_bytes * array.shape[0]
    tiled = {"bin": f"{file}.tbin", "format": queue.df, "num_buffers": queue.blocking.cells, "buf_size_bytes": buffer}
    return {**entry, **tiled}, _Member(buffer * queue.blocking.cells, lambda: _tile_parts(array, layout))


def _element_parts(array: Array, dtype: str) -> Iterator[memoryview]:
    """Yield the bytes of an array's elements, row by row, in the type `dtype`; of an array by reference, block by
    block."""
    for part in array.blocks() if isinstance(array, Referenced) else (array,):
        yield np.ascontiguousarray(part).astype(dtype, copy=False).reshape(-1).view(np.uint8).data


def _encoded_element_parts(array: Array, df: str) -> Iterator[memoryview]:
    """Yield the bytes of an array's elements, row by row, encoded in the format `df`, which has whole bytes."""
    with np.errstate(all="ignore"):
        for part in array.blocks() if isinstance(array, Referenced) else (array,):
            yield pack_datums(df, _as_float32(part).reshape(-1)).data


def _tile_parts(array: Array, layout: EntryLayout) -> Iterator[memoryview]:
    """Yield the bytes of an array's tiles in the order of the file: all entries of the queue's first buffer, then all
    of the second, ... (NETLIST 8)."""
    if layout.megarow or len(array) > 1:
        words = np.asarray(array)
        if is_raw(layout.format):
            values = words.astype(np.uint32).view(np.float32)
        else:
            values = _as_float32(words)
        with np.errstate(all="ignore"):
            entries = [pack_entry(tiles, layout) for tiles in tilize(values, layout.blocking.tile_dim, layout.megarow)]
        for cell in range(layout.blocking.cells):
            yield from (entry[cell].data for entry in entries)
        return

    def read(t: int, rows: slice, columns: slice) -> NDArray[np.float32]:
        """Return a rectangle of one t slice of the only entry as float32."""
        box = (slice(0, 1), slice(t, t + 1), rows, columns)
        return _as_float32(array.read(box) if isinstance(array, Referenced) else array[box])[0, 0]

    try:
        with np.errstate(all="ignore"):
            for strip in pack_strips(read, layout, BLOCK):
                yield strip.reshape(-1).data
    finally:  # who has as many bytes as there are asks for no more
        if isinstance(array, Referenced):
            array.give_back()


def _as_float32(array: Array) -> NDArray[np.float32]:
    """Return the values as float32, as a push converts them."""
    if array.dtype == np.float16:
        return host_decode("Float16", array)
    return array.astype(np.float32)


def _queue_for(netlist: Netlist, name: str, array: Array) -> Queue:
    """Return the queue of that name, or the first of its copies on several chips. Raises HostError where there is none,
    an op fills it, or the tensor does not fit."""
    queues = netlist.queues
    queue = queues.get(name) or next(
        (candidate for candidate in queues.values() if candidate.written_name == name), None
    )
    if queue is None:
        raise HostError(f"pack: {name} is not a queue of {netlist.path}")
    if not queue.host_fed and not queue.is_ram:
        raise HostError(f"pack: queue {name} is filled by op {queue.input}, not by the host")
    _require_fit(queue, name, array)
    return queue


def _require_fit(queue: Queue, name: str, array: Array) -> None:
    """Raise HostError unless a tensor has the shape and element type of entries of the queue; `name` is that of the
    tensor."""
    shape = queue.blocking.element_shape
    refuse_masked_arrays(array, f"pack: {name}")
    if array.ndim != 4 or array.shape[1:] != shape or not 1 <= array.shape[0] <= queue.entries:
        raise HostError(
            f"pack: {name} has shape {list(array.shape)}, its queue takes [1..{queue.entries}, "
            f"{', '.join(map(str, shape))}]"
        )
    if array.dtype.kind not in "fiub" or (is_raw(queue.df) and array.dtype.kind == "f"):
        raise HostError(f"pack: {name} has elements of type {array.dtype}, which a {queue.df} queue does not take")


def _device_json(contents: Contents, entries: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the content of device.json; `entries` are those of the tensors in it, by name."""
    netlist = contents.netlist
    args = read_test_config(netlist.path, netlist.sections).args
    training = any(op.gradient_op for op in netlist.ops.values())
    microbatch = _microbatch(netlist)
    return {
        "version": VERSION,
        "device_image_name": contents.name,
        "arch": ARCH_WORDS[netlist.arch_name],
        "devtype": "Golden",
        "chip_ids": sorted({queue.target_device for queue in netlist.queues.values()}),
        "fp32_fallback": "Float32",  # nothing was replaced
        "optimizer": None,
        "training": training,
        "microbatch_size": microbatch,
        "microbatch_count": _microbatch_count(args),
        "grid_size": list(netlist.arch.grid),
        "harvested_rows": [],
        "compiled_graph_state": _graph_state_json(netlist, entries, microbatch),
        "verify_cfg": None,
        "compiler_cfg": compiler_config(_BUILD, contents.form, training=training),
        "loss_module": None,
        "module_name_to_metadata": {},
        "pybuda_pip_version_id": contents.version,
        "pybuda_commit_hash": None,  # no compiler made it
        "budabackend_commit_hash": None,
        **({KEY: dict(contents.model)} if contents.model is not None else {}),
    }


def _graph_state_json(netlist: Netlist, entries: Mapping[str, dict[str, Any]], microbatch: int) -> dict[str, Any]:
    """Return `compiled_graph_state` of device.json: the queues by their role, and the tensors' `entries`. Rams are
    parameters, queues are constants (NETLIST 7.5). Queues between two graphs have no role, as the host would read them
    as intermediates (NETLIST 12)."""
    # One of the copies on several chips stands for all of them (NETLIST 1.7).
    queues = {name: copies[0] for name, copies in queues_by_name(netlist).items()}
    held = {queue.name for queue in netlist.queues.values() if {queue.name, queue.written_name} & entries.keys()}
    read = set(chain.from_iterable(op.inputs for op in netlist.ops.values()))
    inputs = [queue for queue in netlist.queues.values() if queue.host_fed and queue.name not in held]
    outputs = [queue for queue in netlist.queues.values() if not queue.host_fed and queue.name not in read | held]
    constants = [name for name in entries if not queues[name].is_ram]
    parameters = [name for name in entries if queues[name].is_ram]
    return {
        "microbatch": microbatch,
        "graph_name": next(iter(netlist.graphs), ""),
        "ordered_input_names": [queue.name for queue in inputs],
        "ordered_output_names": [queue.name for queue in outputs],
        "ordered_input_gradient_names": [],
        "ordered_output_gradient_names": [],
        "ordered_target_names": [],
        "ordered_constant_node_names": constants,
        "ordered_parameter_node_names": parameters,
        "ordered_intermediate_activation_names": [],
        "ordered_input_subgraph_indices": [0] * len(inputs),
        "ordered_output_subgraph_indices": [0] * len(outputs),
        "ordered_target_subgraph_indices": [],
        "ordered_input_tile_broadcast_dims": [[] for _ in inputs],
        "ordered_target_tile_broadcast_dims": [],
        "ordered_bw_input_tile_broadcast_dims": [],
        "ordered_input_runtime_tensor_transforms": [no_transform_json() for _ in inputs],
        "ordered_output_runtime_tensor_transforms": [no_transform_json() for _ in outputs],
        "input_to_tile_dims": {queue.name: list(queue.blocking.tile_dim) for queue in inputs},
        "parameter_to_tile_dims": {name: list(queues[name].blocking.tile_dim) for name in parameters},
        "constant_to_tile_dims": {name: list(queues[name].blocking.tile_dim) for name in constants},
        "ordered_input_requires_grad": [False] * len(inputs),
        "ordered_output_requires_grad": [False] * len(outputs),
        "ordered_input_shapes": [[microbatch, *queue.blocking.element_shape] for queue in inputs],
        "ordered_output_shapes": [[microbatch, *queue.blocking.element_shape] for queue in outputs],
        "ordered_target_shapes": [],
        "ordered_intermediate_shapes": [],
        "ordered_output_data_formats": [queue.df for queue in outputs],
        "netlist_filename": PurePath(netlist.path).name,
        "output_host_tms": {},
        "consteval_trace": {},
        "post_const_eval_constants": {name: entries[name] for name in constants},
        "post_const_eval_parameters": {name: entries[name] for name in parameters},
        "optimizer_param_info": {},
        "cpueval_outputs": None,
        "has_cache_buffers": False,
    }


def _microbatch(netlist: Netlist) -> int:
    """Return the largest input_count of a graph, which a front end calls the microbatch (NETLIST 12); 1 without
    graphs."""
    return max((graph.input_count for graph in netlist.graphs.values()), default=1)


def _microbatch_count(args: Mapping[str, str]) -> int:
    """Return the microbatch count among the test-args, 1 where it is absent or no number."""
    text = args.get("microbatch_count", "")
    if text.isascii() and text.isdecimal() and len(text) < 9:
        return max(1, int(text))
    return 1


def _json_member(content: Any) -> _Member:
    """Return a member with this content as JSON."""
    return _Member.of((json.dumps(content, indent=4, allow_nan=False) + "\n").encode())


class _Stream:
    """The file from which `tarfile` copies a member."""

    def __init__(self, parts: Iterable[bytes | memoryview]) -> None:
        self._parts = iter(parts)
        self._part = memoryview(b"")

    def read(self, size: int) -> bytes | memoryview:
        """Return the next `size` bytes of the parts, fewer only at the end."""
        chunks: list[memoryview] = []
        while size and (self._part or self._go_to_next_part()):
            chunks.append(self._part[:size])
            self._part = self._part[len(chunks[-1]) :]
            size -= len(chunks[-1])
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _go_to_next_part(self) -> bool:
        """Make the next part the current one. Returns False after the last part, and for an empty one."""
        self._part = memoryview(next(self._parts, b""))
        return bool(self._part)


def _write_tar(stream: IO[bytes], members: Mapping[str, _Member | None]) -> None:
    """Write the members as a tar, without times and owners, so that equal members give equal bytes."""
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, member in members.items():
            info = tarfile.TarInfo(name)  # time 0, no owner
            if member is None:
                info.type = tarfile.DIRTYPE
                info.mode = 0o755
                archive.addfile(info)
                continue
            info.type = tarfile.REGTYPE
            info.mode = 0o644
            info.size = member.size
            archive.addfile(info, cast("IO[bytes]", _Stream(member.parts())))


def _write_zip(stream: IO[bytes], members: Mapping[str, _Member | None]) -> None:
    """Write the members as a zip, uncompressed and with one time, so that equal members give equal bytes."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, member in members.items():
            info = zipfile.ZipInfo(name if member else f"{name}/", _EPOCH)
            info.create_system = 3  # whatever system this runs on
            info.external_attr = (0o100644 if member else 0o40755) << 16
            if member is None:
                archive.writestr(info, b"")
                continue
            info.file_size = member.size
            with archive.open(info, "w") as file:
                for part in member.parts():
                    file.write(part)
