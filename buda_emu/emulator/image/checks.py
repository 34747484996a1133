"""Whether the parts of an image belong together: device.json, the netlist, the model's inputs and outputs, what the
host does.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final

from buda_emu.emulator.image.archive import TOP, Archive
from buda_emu.emulator.image.fields import MISSING
from buda_emu.emulator.image.host_checks import host_mismatches
from buda_emu.emulator.image.host_plan import FOLDER, DeviceStep, HostPlan
from buda_emu.emulator.image.metadata import ARCH_WORDS, CompiledGraphState, DeviceMetadata, TensorEntry
from buda_emu.emulator.image.mismatch import DEVICE, STATE, Mismatch
from buda_emu.emulator.image.model_io import KEY, ModelInput, ModelIo, ModelOutput
from buda_emu.emulator.image.rules import Steps
from buda_emu.netlist.model import Execute, Netlist, Queue
from buda_emu.netlist.sizes import entry_bytes
from buda_emu.spec.archs import ARCHS
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural, short_line

_RULE: Final = "image-queue"
_Found = Iterator[tuple[str, str]]  # the field of an input or output, and what is wrong with it


def model_mismatches(model: ModelIo, netlist: Netlist, tensors: Collection[str]) -> Iterator[Mismatch]:
    """Everything about `model` that the netlist does not have so. `tensors`: names of constants and parameters."""
    for place, label in enumerate(model.labels):
        if label in model.labels[:place]:
            yield Mismatch(DEVICE, _RULE, f"{short_line(label)} occurs twice", steps=(KEY, "labels", place))
    if model.chip is not None:
        yield from _chip(model.chip, netlist)
    for part, items in (("inputs", model.inputs), ("outputs", model.outputs)):
        seen: set[str] = set()
        for place, item in enumerate(items):
            for field, problem in (*_queue(item, model, netlist, seen), *_own(item, model, netlist, tensors)):
                yield Mismatch(DEVICE, _RULE, problem, steps=(KEY, part, place, field))
            seen.add(item.queue)


def _queue(item: ModelInput | ModelOutput, model: ModelIo, netlist: Netlist, seen: Collection[str]) -> _Found:
    """What is asked of the queue of an input or output."""
    queue = netlist.queues.get(item.queue)
    if queue is None:
        hint = near(item.queue, netlist.queues)
        yield "queue", f"{short_line(item.queue)} is not a queue of the netlist{f' ({hint})' if hint else ''}"
        return
    if item.queue in seen:
        yield "queue", f"queue {short_line(item.queue)} occurs twice"
    if queue.host_fed != isinstance(item, ModelInput):
        yield (
            "queue",
            f"queue {short_line(item.queue)} is filled by {'the host' if queue.host_fed else f'op {queue.input}'}",
        )
    if model.chip is not None and queue.target_device != model.chip:
        yield (
            "queue",
            f"queue {short_line(item.queue)} is on chip {queue.target_device}, the model on chip {model.chip}",
        )


def _own(item: ModelInput | ModelOutput, model: ModelIo, netlist: Netlist, tensors: Collection[str]) -> _Found:
    """What is asked of an input or an output alone."""
    queue = netlist.queues.get(item.queue)
    if isinstance(item, ModelInput):
        yield from _input(item, model)
        if item.queue in tensors:
            yield "queue", f"queue {short_line(item.queue)} holds a constant or parameter of the image"
        if queue is not None and item.extent != queue.blocking.element_shape:
            yield "extent", f"{list(item.extent)}, but queue {queue.name} takes {list(queue.blocking.element_shape)}"
    elif prod(item.view) != prod(item.shape):
        yield "view", f"{list(item.view)} has not the {prod(item.shape)} elements of shape {list(item.shape)}"
    if queue is not None:
        yield from _view(item, queue)


def _view(item: ModelInput | ModelOutput, queue: Queue) -> _Found:
    """The view is the leading part of an entry; words of indices lie in order instead."""
    extent = queue.blocking.element_shape
    if isinstance(item, ModelOutput):
        if extent[0] % item.slices:
            yield "slices", f"{extent[0]} along t of queue {queue.name} are not made of {item.slices} slices each"
            return
        extent = item.side_by_side(extent)
    words = isinstance(item, ModelInput) and item.indices
    if (
        prod(item.view) > prod(extent)
        if words
        else any(have > most for have, most in zip(item.view, extent, strict=True))
    ):
        yield "view", f"{list(item.view)} does not fit into an entry {list(extent)} of queue {queue.name}"


def _input(item: ModelInput, model: ModelIo) -> _Found:
    """What is asked of an input by itself and beside those of the same label."""
    known = model.labels if model.host is None else [name for step in model.host.programs for name in step.inputs]
    if item.label not in known:
        hint = near(item.label, known)
        yield "label", f"{short_line(item.label)} is not one of the model's labels{f' ({hint})' if hint else ''}"
    first = next(other for other in model.inputs if other.label == item.label)
    for field in ("shape", "dtype"):
        mine = getattr(item, field)
        others = getattr(first, field)
        if mine != others:
            yield (
                field,
                f"{short_line(mine)}, but another queue of input {short_line(item.label)} has {short_line(others)}",
            )
    if item.windows is not None and len(item.windows.perm) != len(item.shape):
        yield "windows", f"an order of {plural(len(item.windows.perm), 'dimension')} for shape {list(item.shape)}"
        return
    if item.windows is not None and item.indices:
        yield "windows", "indices have no windows"
    if item.from_end and not item.rows:
        yield "from_end", "indices are counted from the end of a table without rows"
    laid_out = item.laid_out
    beyond = [index for index in item.gather if index >= laid_out]
    if beyond:
        yield "gather", f"element {beyond[0]} of {laid_out}"
    if prod(item.view) != item.elements:
        yield "view", f"{list(item.view)} has not the {item.elements} elements that the host pushes"


def _chip(chip: int, netlist: Netlist) -> Iterator[Mismatch]:
    """A copy of the model stands on a chip by itself (NETLIST 1.7)."""
    steps = (KEY, "chip")
    graphs = {graph.name for graph in netlist.graphs.values() if graph.target_device == chip}
    if not graphs:
        known = ", ".join(map(str, sorted({graph.target_device for graph in netlist.graphs.values()})))
        yield Mismatch(DEVICE, _RULE, f"no graph of the netlist is on chip {chip}: they are on {known}", steps=steps)
        return
    there = {name for name, queue in netlist.queues.items() if queue.target_device == chip}
    ops = {op.name for name in graphs for op in netlist.graphs[name].ops}
    read = {source for name in graphs for op in netlist.graphs[name].ops for source in op.inputs}
    read |= {netlist.queues[name].input for name in there if not netlist.queues[name].host_fed}
    read |= {
        setting.queue
        for program in netlist.programs.values()
        for step in program.instructions
        if isinstance(step, Execute) and step.graph in graphs
        for setting in step.queue_settings
    }
    for name in sorted(read - there - ops):
        yield Mismatch(
            DEVICE, _RULE, f"chip {chip} is not a copy by itself: {short_line(name)} is on another", steps=steps
        )


def plan_mismatches(plan: HostPlan, model: ModelIo, netlist: Netlist, archive: Archive) -> Iterator[Mismatch]:
    """Everything that a plan names and that is not there."""

    def wrong(rule: str, problem: str, *steps: str | int) -> Mismatch:
        return Mismatch(DEVICE, rule, problem, steps=(KEY, "host", *steps))

    for steps, problem in plan.problems():
        yield wrong("image-field", problem, *steps)
    if tuple(item.label for item in plan.given) != model.labels:
        yield wrong("image-field", "its inputs are not those of labels", "given")
    for value, file in plan.constants.items():
        if not archive.has(f"{TOP}/{FOLDER}/{file}"):
            yield wrong(
                "image-member", f"{short_line(file)} is not in the archive's folder {FOLDER}", "constants", value
            )
    labels = {"inputs": {item.label for item in model.inputs}, "outputs": {item.label for item in model.outputs}}
    for place, step in enumerate(plan.steps):
        if not isinstance(step, DeviceStep):
            if not archive.has(f"{TOP}/{FOLDER}/{step.file}"):
                problem = f"{short_line(step.file)} is not in the archive's folder {FOLDER}"
                yield wrong("image-member", problem, "steps", place, "file")
            continue
        if step.program not in netlist.programs:
            hint = near(step.program, netlist.programs)
            problem = f"{short_line(step.program)} is not a program of the netlist{f' ({hint})' if hint else ''}"
            yield wrong("image-queue", problem, "steps", place, "program")
        for part, known in labels.items():
            for label in getattr(step, part):
                if label not in known:
                    yield wrong(
                        "image-queue", f"{short_line(label)} is not one of {KEY}.{part}", "steps", place, part, label
                    )


CONFIG: Final = f"{TOP}/compile_and_runtime_config.json"
_ROLES: Final = (
    "ordered_input_names", "ordered_output_names", "ordered_input_gradient_names", "ordered_output_gradient_names",
    "ordered_target_names", "ordered_constant_node_names", "ordered_parameter_node_names",
)  # fmt: skip


def queues_by_name(netlist: Netlist) -> Mapping[str, Sequence[Queue]]:
    """Every queue by its name, and by its written name the copies of one on several chips (NETLIST 1.7)."""
    copies: dict[str, list[Queue]] = {}
    for queue in netlist.queues.values():
        copies.setdefault(queue.written_name, []).append(queue)
    return {**copies, **{name: [queue] for name, queue in netlist.queues.items()}}


def mismatches(metadata: DeviceMetadata, netlist: Netlist, archive: Archive) -> Iterator[Mismatch]:
    """Everything that does not belong together, errors and warnings."""
    state = metadata.compiled_graph_state
    queues = queues_by_name(netlist)
    yield from _device(metadata, netlist)
    yield from _names(state, queues)
    yield from _roles(state, queues)
    for entry in state.tensors.values():
        yield from _tensor(entry, _steps_of(entry, state), queues.get(entry.name, ()), netlist, archive)
    yield from host_mismatches(state, netlist, queues)
    if metadata.model is not None:
        yield from model_mismatches(metadata.model, netlist, state.tensors)
        if metadata.model.host is not None:
            yield from plan_mismatches(metadata.model.host, metadata.model, netlist, archive)
    yield from _files(metadata, archive)
    for name in metadata.missing:
        yield Mismatch(
            member=DEVICE, rule="image-field", problem=MISSING, severity="warning", steps=tuple(name.split("."))
        )


def _device(metadata: DeviceMetadata, netlist: Netlist) -> Iterator[Mismatch]:
    word = ARCH_WORDS[metadata.arch]
    if netlist.arch_name != metadata.arch:
        problem = f"arch {word}, but the netlist is for {', '.join(netlist.archs)}"
        yield Mismatch(DEVICE, "image-device", problem, steps=("arch",))
    grid = ARCHS[metadata.arch].grid
    if metadata.grid_size and any(have > most for have, most in zip(metadata.grid_size, grid, strict=True)):
        problem = f"grid_size {list(metadata.grid_size)}, a {word} has {list(grid)} at most"
        yield Mismatch(DEVICE, "image-device", problem, steps=("grid_size",))
    for place, chip in _twice(metadata.chip_ids):
        yield Mismatch(DEVICE, "image-device", f"chip {chip} occurs twice", steps=("chip_ids", place))


def _names(state: CompiledGraphState, queues: Mapping[str, Sequence[Queue]]) -> Iterator[Mismatch]:
    """Every name is a queue's, and stands once; every constant and parameter has its tensor."""
    for role in _ROLES:
        names = getattr(state, role)
        for place, name in enumerate(names):
            if name not in queues:
                problem = f"{role} has {short_line(name)}, which is not a queue of the netlist"
                yield Mismatch(DEVICE, "image-queue", problem, steps=(STATE, role, place))
        for place, name in _twice(names):
            yield Mismatch(DEVICE, "image-queue", f"{short_line(name)} occurs twice", steps=(STATE, role, place))
    role = "ordered_intermediate_activation_names"
    for place, (_, queue) in enumerate(state.ordered_intermediate_activation_names):
        if queue not in queues:
            problem = f"{role} has {short_line(queue)}, which is not a queue of the netlist"
            yield Mismatch(DEVICE, "image-queue", problem, steps=(STATE, role, place, 1))
    for what in ("constant", "parameter"):
        role = f"ordered_{what}_node_names"
        group = f"post_const_eval_{what}s"
        for place, name in enumerate(getattr(state, role)):
            if name not in getattr(state, group):
                problem = f"{what} {short_line(name)} has no tensor in {group}"
                yield Mismatch(DEVICE, "image-member", problem, steps=(STATE, role, place))


def _twice(items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Those that stood there before, with their places."""
    seen: set[Any] = set()
    for place, item in enumerate(items):
        if item in seen:
            yield place, item
        seen.add(item)


def _roles(state: CompiledGraphState, queues: Mapping[str, Sequence[Queue]]) -> Iterator[Mismatch]:
    """The host fills inputs, ops fill outputs, and a queue holds what its place in the lists says."""
    for role, host_fed in (("ordered_input_names", True), ("ordered_output_names", False)):
        for place, name in enumerate(getattr(state, role)):
            queue = next(iter(queues.get(name, ())), None)
            if queue is not None and queue.host_fed != host_fed:
                by = "the host" if queue.host_fed else f"op {queue.input}"
                problem = f"queue {short_line(name)} is filled by {by}"
                yield Mismatch(DEVICE, "image-queue", problem, steps=(STATE, role, place))
    for place, (name, df) in enumerate(zip(state.ordered_output_names, state.ordered_output_data_formats)):  # noqa: B905 - lengths are held against each other elsewhere
        if name in queues and queues[name][0].df != df:
            problem = f"queue {short_line(name)} has format {queues[name][0].df}"
            yield Mismatch(
                member=DEVICE,
                rule="image-queue",
                problem=problem,
                severity="warning",
                steps=(STATE, "ordered_output_data_formats", place),
            )
    for group in ("input_to_tile_dims", "parameter_to_tile_dims", "constant_to_tile_dims"):
        for name, dims in getattr(state, group).items():
            queue = next(iter(queues.get(name, ())), None)
            if queue is not None and isinstance(dims, tuple) and dims != queue.blocking.tile_dim:
                problem = f"queue {short_line(name)} has tiles of {list(queue.blocking.tile_dim)}"
                yield Mismatch(
                    member=DEVICE, rule="image-queue", problem=problem, severity="warning", steps=(STATE, group, name)
                )


def _steps_of(entry: TensorEntry, state: CompiledGraphState) -> Steps:
    """Where a tensor is described."""
    group = "constants" if entry.name in state.post_const_eval_constants else "parameters"
    return (STATE, f"post_const_eval_{group}", entry.name)


def _tensor(
    entry: TensorEntry, steps: Steps, queues: Sequence[Queue], netlist: Netlist, archive: Archive
) -> Iterator[Mismatch]:
    name = short_line(entry.name)
    if not queues:
        yield Mismatch(DEVICE, "image-queue", f"tensor {name} belongs to no queue of the netlist", steps=steps)
    if not archive.has(entry.member):
        yield Mismatch(entry.member, "image-member", f"tensor {name} has no file: it is not in the archive")
    elif entry.dump_format != "DEFAULT" and archive.members[entry.member].size != entry.file_bytes:
        size = archive.members[entry.member].size
        problem = f"tensor {name} takes {entry.file_bytes} bytes, the file has {size}"
        yield Mismatch(entry.member, "image-tensor", problem)
    for queue in queues[:1]:  # copies on several chips are alike
        problem = _unfit(entry, queue, netlist)
        if problem:
            yield Mismatch(DEVICE, "image-queue", f"tensor {name}: {problem}", steps=steps)


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


def _files(metadata: DeviceMetadata, archive: Archive) -> Iterator[Mismatch]:
    """Files that nothing here needs, but that the image promises."""
    optimizer: Sequence[str] = (metadata.optimizer,) if metadata.optimizer else ()
    for name in (CONFIG, *(f"{TOP}/{file}" for file in optimizer)):
        if not archive.has(name):
            yield Mismatch(name, "image-member", "it is not in the archive", "warning")
    pickled = [entry for entry in metadata.compiled_graph_state.tensors.values() if entry.dump_format == "DEFAULT"]
    if pickled:
        problem = f"{plural(len(pickled), 'pickled tensor')}: loaded with --allow-pickle only"
        yield Mismatch(pickled[0].member, "image-pickle", problem, "warning")
