"""Whether the parts of an image belong together: device.json, the netlist, and the tensor files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from buda_emu.checker.diagnostic import Severity
from buda_emu.checker.text import shown
from buda_emu.image.archive import Archive
from buda_emu.image.metadata import ARCH_WORDS, CompiledGraphState, DeviceMetadata
from buda_emu.image.names import TOP
from buda_emu.image.tensor_entry import TensorEntry
from buda_emu.netlist.model import Netlist, Queue
from buda_emu.netlist.sizes import entry_bytes
from buda_emu.spec.archs import ARCHS

DEVICE = f"{TOP}/device.json"
CONFIG = f"{TOP}/compile_and_runtime_config.json"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A finding. Errors refuse the image."""

    member: str
    rule: str
    problem: str
    severity: Severity = "error"


def queues_by_name(netlist: Netlist) -> Mapping[str, Sequence[Queue]]:
    """Every queue by its name, and by its written name the copies of one on several chips (NETLIST 1.7)."""
    copies: dict[str, list[Queue]] = {}
    for queue in netlist.queues.values():
        copies.setdefault(queue.written_name, []).append(queue)
    return {**copies, **{name: [queue] for name, queue in netlist.queues.items()}}


def mismatches(metadata: DeviceMetadata, netlist: Netlist, archive: Archive) -> Iterator[Mismatch]:
    """Everything that does not belong together, errors and warnings."""
    state, queues = metadata.compiled_graph_state, queues_by_name(netlist)
    yield from _device(metadata, netlist)
    yield from _names(state, queues)
    for entry in state.tensors.values():
        yield from _tensor(entry, queues.get(entry.name, ()), netlist, archive)
    yield from _lists(state)
    yield from _host_tms(state, queues)
    yield from _files(metadata, archive)
    for name in metadata.missing:
        yield Mismatch(DEVICE, "image-field", f"field {name} is missing", "warning")


def _device(metadata: DeviceMetadata, netlist: Netlist) -> Iterator[Mismatch]:
    word = ARCH_WORDS[metadata.arch]
    if netlist.arch_name != metadata.arch:
        yield Mismatch(DEVICE, "image-device", f"arch {word}, but the netlist is for {', '.join(netlist.archs)}")
    grid = ARCHS[metadata.arch].grid
    if metadata.grid_size and any(have > most for have, most in zip(metadata.grid_size, grid, strict=True)):
        yield Mismatch(
            DEVICE, "image-device", f"grid_size {list(metadata.grid_size)}, a {word} has {list(grid)} at most"
        )


def _names(state: CompiledGraphState, queues: Mapping[str, Sequence[Queue]]) -> Iterator[Mismatch]:
    """Every name is a queue's, and every constant and parameter has its tensor."""
    roles = (
        "ordered_input_names", "ordered_output_names", "ordered_input_gradient_names", "ordered_output_gradient_names",
        "ordered_target_names", "ordered_constant_node_names", "ordered_parameter_node_names",
    )  # fmt: skip
    for role in roles:
        for name in getattr(state, role):
            if name not in queues:
                yield Mismatch(DEVICE, "image-queue", f"{role} has {shown(name)}, which is no queue of the netlist")
    for _, queue in state.ordered_intermediate_activation_names:
        if queue not in queues:
            problem = f"ordered_intermediate_activation_names has {shown(queue)}, which is no queue of the netlist"
            yield Mismatch(DEVICE, "image-queue", problem)
    for names, tensors, what in (
        (state.ordered_constant_node_names, state.post_const_eval_constants, "constant"),
        (state.ordered_parameter_node_names, state.post_const_eval_parameters, "parameter"),
    ):
        for name in names:
            if name not in tensors:
                yield Mismatch(DEVICE, "image-member", f"{what} {shown(name)} has no tensor in post_const_eval_{what}s")


def _tensor(entry: TensorEntry, queues: Sequence[Queue], netlist: Netlist, archive: Archive) -> Iterator[Mismatch]:
    name = shown(entry.name)
    if not queues:
        yield Mismatch(DEVICE, "image-queue", f"tensor {name} belongs to no queue of the netlist")
    if not archive.has(entry.member):
        yield Mismatch(entry.member, "image-member", f"tensor {name} has no file: it is not in the archive")
    elif entry.dump_format != "DEFAULT" and archive.members[entry.member].size != entry.file_bytes:
        size = archive.members[entry.member].size
        problem = f"tensor {name} takes {entry.file_bytes} bytes, the file has {size}"
        yield Mismatch(entry.member, "image-tensor", problem)
    for queue in queues[:1]:  # copies on several chips are alike
        problem = _unfit(entry, queue, netlist)
        if problem:
            yield Mismatch(DEVICE, "image-queue", f"tensor {name}: {problem}")


def _unfit(entry: TensorEntry, queue: Queue, netlist: Netlist) -> str:
    """Why a tensor cannot be pushed to its queue, "" if it can."""
    if not queue.host_fed and not queue.is_ram:
        return f"queue {queue.name} is filled by op {queue.input}, not by the host"
    if entry.dump_format == "DEFAULT":
        return ""  # its shape is in the pickle
    t, rows, cols = queue.blocking.element_shape
    entries = entry.pushed_shape[0]
    if entry.dump_format == "BACKEND_TILIZED":
        problem = _unfit_tiles(entry, queue, netlist)
        if problem:
            return problem
        entries = entry.buffer_bytes // entry_bytes(queue, netlist.arch, True)
        if prod(entry.shape) != entries * t * rows * cols:
            return f"shape {list(entry.shape)} has not the elements of {entries} entries [{t}, {rows}, {cols}]"
    elif entry.pushed_shape[1:] != (t, rows, cols):
        return f"shape {list(entry.pushed_shape)}, queue {queue.name} takes [entries, {t}, {rows}, {cols}]"
    if entries > queue.entries:
        return f"{entries} entries, queue {queue.name} holds {queue.entries}"
    return ""


def _unfit_tiles(entry: TensorEntry, queue: Queue, netlist: Netlist) -> str:
    """Tiles go to a queue as they are (NETLIST 7.3 push_input, TilizedTensorDesc)."""
    if queue.layout != "tilized":
        return f"tiles, but queue {queue.name} has layout {queue.layout}"
    if entry.format != queue.df:
        return f"tiles of {entry.format}, queue {queue.name} has {queue.df}"
    if entry.num_buffers != queue.blocking.cells:
        return f"{entry.num_buffers} buffers, queue {queue.name} has {queue.blocking.cells}"
    size = entry_bytes(queue, netlist.arch, True)
    if not size or entry.buffer_bytes % size:
        return f"buffers of {entry.buffer_bytes} bytes, an entry of queue {queue.name} takes {size} in each"
    return ""


def _lists(state: CompiledGraphState) -> Iterator[Mismatch]:
    """Lists of transforms that cannot be told apart by their place."""
    for names, transforms, what in (
        (state.ordered_input_names, state.ordered_input_runtime_tensor_transforms, "input"),
        (state.ordered_output_names, state.ordered_output_runtime_tensor_transforms, "output"),
    ):
        if transforms and len(transforms) != len(names):
            problem = f"{len(transforms)} ordered_{what}_runtime_tensor_transforms for {len(names)} {what}s"
            yield Mismatch(DEVICE, "image-field", problem)
    formats, outputs = state.ordered_output_data_formats, state.ordered_output_names
    if formats and len(formats) != len(outputs):
        problem = f"{len(formats)} ordered_output_data_formats for {len(outputs)} outputs"
        yield Mismatch(DEVICE, "image-field", problem, "warning")


def _host_tms(state: CompiledGraphState, queues: Mapping[str, Sequence[Queue]]) -> Iterator[Mismatch]:
    for name, tm in state.output_host_tms.items():
        if name not in queues:
            problem = f"output_host_tms has {shown(name)}, which is no queue of the netlist"
            yield Mismatch(DEVICE, "image-queue", problem)
        elif queues[name][0].blocking.t % (tm.hstack_factor * tm.vstack_factor):
            factors = f"hstack {tm.hstack_factor} and vstack {tm.vstack_factor}"
            problem = f"output_host_tms of {name}: {factors} do not divide t = {queues[name][0].blocking.t}"
            yield Mismatch(DEVICE, "image-queue", problem)


def _files(metadata: DeviceMetadata, archive: Archive) -> Iterator[Mismatch]:
    """Files that nothing here needs, but that the image promises."""
    optimizer: Sequence[str] = (metadata.optimizer,) if metadata.optimizer else ()
    for name in (CONFIG, *(f"{TOP}/{file}" for file in optimizer)):
        if not archive.has(name):
            yield Mismatch(name, "image-member", "it is not in the archive", "warning")
    pickled = [entry for entry in metadata.compiled_graph_state.tensors.values() if entry.dump_format == "DEFAULT"]
    if pickled:
        problem = f"{len(pickled)} tensors are pickles, which are loaded with --allow-pickle only"
        yield Mismatch(pickled[0].member, "image-pickle", problem, "warning")
