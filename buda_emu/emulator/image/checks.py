"""Checks that the parts of an image belong together: device.json, the netlist, the model's inputs and outputs, and the
plan of the host."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from math import prod
from typing import Any, Final

from buda_emu.emulator.image.archive import DEVICE, STATE, TOP, Archive
from buda_emu.emulator.image.fields import MISSING
from buda_emu.emulator.image.host_checks import host_mismatches
from buda_emu.emulator.image.host_plan import FOLDER, DeviceStep, HostPlan, HostStep
from buda_emu.emulator.image.metadata import ARCH_WORDS, CompiledGraphState, DeviceMetadata, TensorEntry
from buda_emu.emulator.image.model_io import KEY, ModelInput, ModelIo, ModelOutput
from buda_emu.emulator.image.model_programs import ModelState
from buda_emu.emulator.image.rules import Mismatch, Steps
from buda_emu.netlist.model import Execute, Netlist, Queue
from buda_emu.netlist.sizes import entry_bytes
from buda_emu.spec.archs import ARCHS
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural, short_line

_RULE: Final = "image-queue"
_FieldProblems = Iterator[tuple[str, str]]  # the field of an input or output, and what is wrong with it


def model_mismatches(model: ModelIo, netlist: Netlist, tensors: Collection[str]) -> Iterator[Mismatch]:
    """Yield every statement of the model's record that contradicts the netlist or itself. `tensors` are the names of
    the image's constants and parameters."""
    for place, label in enumerate(model.labels):
        if label in model.labels[:place]:
            yield Mismatch(DEVICE, _RULE, f"{short_line(label)} occurs twice", steps=(KEY, "labels", place))
    if model.chip is not None:
        yield from _chip_mismatches(model.chip, netlist)
    for part, items in (("inputs", model.inputs), ("outputs", model.outputs)):
        seen: set[str] = set()
        for place, tensor_io in enumerate(items):
            for field, problem in (
                *_queue_problems(tensor_io, model, netlist, seen),
                *_own_problems(tensor_io, model, netlist, tensors),
            ):
                yield Mismatch(DEVICE, _RULE, problem, steps=(KEY, part, place, field))
            seen.add(tensor_io.queue)
    for place, rule in enumerate(model.rules):
        for field, problem in rule.problems(model.labels):
            yield Mismatch(DEVICE, _RULE, problem, steps=(KEY, "rules", place, field))
    yield from _element_mismatches(model, netlist)
    yield from _program_mismatches(model, netlist)
    yield from _state_mismatches(model, netlist, tensors)


def _element_mismatches(model: ModelIo, netlist: Netlist) -> Iterator[Mismatch]:
    """Yield places of elements in the results of ops that the netlist does not have, and in results of another
    extent."""
    for name, places in model.elements.items():
        op = netlist.ops.get(name)
        if op is None:
            hint = near(name, netlist.ops)
            problem = f"{short_line(name)} is not an op of the netlist{f' ({hint})' if hint else ''}"
            yield Mismatch(DEVICE, _RULE, problem, steps=(KEY, "elements", name))
        elif places.extent != op.blocking.element_shape:
            problem = f"op {name} has a result of {list(op.blocking.element_shape)} elements"
            yield Mismatch(DEVICE, _RULE, problem, steps=(KEY, "elements", name, "extent"))


def _program_mismatches(model: ModelIo, netlist: Netlist) -> Iterator[Mismatch]:
    """Yield repeated names of the model's programs, and names in them that the netlist or the model does not have."""
    labels = {
        "inputs": set(model.descriptions),
        "outputs": {tensor_io.label for tensor_io in model.outputs},
    }
    names: set[str] = set()
    for place, program in enumerate(model.programs):
        steps = (KEY, "programs", place)
        if program.name in names:
            yield Mismatch(DEVICE, _RULE, f"{short_line(program.name)} occurs twice", steps=(*steps, "name"))
        names.add(program.name)
        if program.program not in netlist.programs:
            hint = near(program.program, netlist.programs)
            problem = f"{short_line(program.program)} is not a program of the netlist{f' ({hint})' if hint else ''}"
            yield Mismatch(DEVICE, _RULE, problem, steps=(*steps, "program"))
        for part, known_labels in labels.items():
            for number, label in enumerate(getattr(program, part)):
                if label not in known_labels:
                    problem = f"{short_line(label)} is not one of {KEY}.{part}"
                    yield Mismatch(DEVICE, _RULE, problem, steps=(*steps, part, number))


def _state_mismatches(model: ModelIo, netlist: Netlist, tensors: Collection[str]) -> Iterator[Mismatch]:
    """Yield every statement about a cache that its ram or the image contradicts."""
    labels: set[str] = set()
    for place, state in enumerate(model.states):
        queue = netlist.queues.get(state.queue)
        problems: list[tuple[str, str]] = []
        if state.label in labels:
            problems.append(("label", f"{short_line(state.label)} occurs twice"))
        labels.add(state.label)
        if queue is None or not queue.is_ram:
            problems.append(("queue", f"{short_line(state.queue)} is not a ram of the netlist"))
        elif not {queue.name, queue.written_name} & set(tensors):
            problems.append(("queue", f"the image holds nothing for ram {queue.name}"))
        else:
            problems += _extent_problems(state, queue)
        for field, problem in problems:
            yield Mismatch(DEVICE, _RULE, problem, steps=(KEY, "states", place, field))


def _extent_problems(state: ModelState, queue: Queue) -> _FieldProblems:
    """Yield (field, problem) where the elements of a cache do not lie within the entries of its ram."""
    if state.slots > queue.entries:
        yield "slots", f"{state.slots}, but ram {queue.name} has {plural(queue.entries, 'entry')}"
    room = state.slots * prod(queue.blocking.element_shape)
    if state.last_place >= room or prod(state.shape) > room:
        yield "pieces", f"they reach beyond the {room} elements of {state.slots} slots of ram {queue.name}"
    if prod(size for size, _ in state.pieces) != prod(state.shape):
        yield "pieces", f"they have not the {prod(state.shape)} elements of shape {list(state.shape)}"


def _queue_problems(
    tensor_io: ModelInput | ModelOutput, model: ModelIo, netlist: Netlist, seen: Collection[str]
) -> _FieldProblems:
    """Yield (field, problem) where the queue of an input or output does not exist, occurs twice, is filled from the
    wrong side, or is on another chip. `seen`: the queues of the inputs, or outputs, that were checked before."""
    queue = netlist.queues.get(tensor_io.queue)
    if queue is None:
        hint = near(tensor_io.queue, netlist.queues)
        yield "queue", f"{short_line(tensor_io.queue)} is not a queue of the netlist{f' ({hint})' if hint else ''}"
        return
    if tensor_io.queue in seen:
        yield "queue", f"queue {short_line(tensor_io.queue)} occurs twice"
    if queue.host_fed != isinstance(tensor_io, ModelInput):
        yield (
            "queue",
            f"queue {short_line(tensor_io.queue)} is filled by {'the host' if queue.host_fed else f'op {queue.input}'}",
        )
    if model.chip is not None and queue.target_device != model.chip:
        yield (
            "queue",
            f"queue {short_line(tensor_io.queue)} is on chip {queue.target_device}, the model on chip {model.chip}",
        )


def _own_problems(
    tensor_io: ModelInput | ModelOutput, model: ModelIo, netlist: Netlist, tensors: Collection[str]
) -> _FieldProblems:
    """Yield (field, problem) for everything wrong with an input or output except for its queue's name and side.
    `tensors` are the names of the image's constants and parameters."""
    queue = netlist.queues.get(tensor_io.queue)
    if isinstance(tensor_io, ModelInput):
        yield from _input_problems(tensor_io, model)
        if tensor_io.queue in tensors:
            yield "queue", f"queue {short_line(tensor_io.queue)} holds a constant or parameter of the image"
        if queue is not None and tensor_io.extent != queue.blocking.element_shape:
            yield (
                "extent",
                f"{list(tensor_io.extent)}, but queue {queue.name} takes {list(queue.blocking.element_shape)}",
            )
    elif prod(tensor_io.view) != prod(tensor_io.shape):
        yield (
            "view",
            f"{list(tensor_io.view)} has not the {prod(tensor_io.shape)} elements of shape {list(tensor_io.shape)}",
        )
    if queue is not None:
        yield from _view_problems(tensor_io, queue)


def _view_problems(tensor_io: ModelInput | ModelOutput, queue: Queue) -> _FieldProblems:
    """Yield (field, problem) where the part of an entry that the tensor fills (its view) does not fit into an entry of
    the queue. Index words lie in order, so only their number counts."""
    extent = queue.blocking.element_shape
    if isinstance(tensor_io, ModelOutput):
        if extent[0] % tensor_io.slices:
            yield "slices", f"{extent[0]} along t of queue {queue.name} are not made of {tensor_io.slices} slices each"
            return
        extent = tensor_io.side_by_side(extent)
    if isinstance(tensor_io, ModelInput) and tensor_io.indices:
        fits = prod(tensor_io.view) <= prod(extent)
    else:
        fits = all(size <= limit for size, limit in zip(tensor_io.view, extent, strict=True))
    if not fits:
        yield "view", f"{list(tensor_io.view)} does not fit into an entry {list(extent)} of queue {queue.name}"


def _input_problems(model_input: ModelInput, model: ModelIo) -> _FieldProblems:
    """Yield (field, problem) for an input's label, for a shape or type that differs from that of another queue of the
    same label, and for its layout."""
    if model.host is None:
        labels = model.labels
    else:
        labels = list(chain.from_iterable(step.inputs for step in model.host.programs))
    if model_input.label not in labels:
        hint = near(model_input.label, labels)
        yield "label", f"{short_line(model_input.label)} is not one of the model's labels{f' ({hint})' if hint else ''}"
    first = next(other for other in model.inputs if other.label == model_input.label)
    for field in ("shape", "dtype"):
        declared = getattr(model_input, field)
        first_declared = getattr(first, field)
        if declared != first_declared:
            label = short_line(model_input.label)
            yield field, f"{short_line(declared)}, but another queue of input {label} has {short_line(first_declared)}"
    yield from _layout_problems(model_input)


def _layout_problems(model_input: ModelInput) -> _FieldProblems:
    """Yield (field, problem) for the layout of an input: its windows, its gathered elements and its view."""
    if model_input.windows is not None and len(model_input.windows.perm) != len(model_input.shape):
        yield (
            "windows",
            f"an order of {plural(len(model_input.windows.perm), 'dimension')} for shape {list(model_input.shape)}",
        )
        return
    if model_input.windows is not None and model_input.indices:
        yield "windows", "indices have no windows"
    if model_input.from_end and not model_input.rows:
        yield "from_end", "indices are counted from the end of a table without rows"
    laid_out = model_input.laid_out
    beyond = [index for index in model_input.gather if index >= laid_out]
    if beyond:
        yield "gather", f"element {beyond[0]} of {laid_out}"
    yield from _range_problems(model_input)
    if prod(model_input.view) != model_input.elements:
        yield "view", f"{list(model_input.view)} has not the {model_input.elements} elements that the host pushes"


def _range_problems(model_input: ModelInput) -> _FieldProblems:
    """Yield (field, problem) for the index ranges that an input states."""
    count = prod(model_input.shape)
    for index_range in model_input.ranges:
        if index_range.from_end and not index_range.rows:
            yield "ranges", "indices are counted from the end of a dimension of unknown size"
        beyond = [number for number in index_range.elements if number >= count]
        if beyond:
            yield "ranges", f"element {beyond[0]} of {count}"


def _chip_mismatches(chip: int, netlist: Netlist) -> Iterator[Mismatch]:
    """Yield every operand on another chip that the graphs of `chip` need, and one mismatch if the chip has no graph: a
    copy of the model must be complete on its chip (NETLIST 1.7)."""
    steps = (KEY, "chip")
    graphs = {graph.name for graph in netlist.graphs.values() if graph.target_device == chip}
    if not graphs:
        chips = ", ".join(map(str, sorted({graph.target_device for graph in netlist.graphs.values()})))
        yield Mismatch(DEVICE, _RULE, f"no graph of the netlist is on chip {chip}: they are on {chips}", steps=steps)
        return
    chip_queues = {name: queue for name, queue in netlist.queues.items() if queue.target_device == chip}
    ops = {op.name: op for op in chain.from_iterable(netlist.graphs[name].ops for name in graphs)}
    needed = set(chain.from_iterable(op.inputs for op in ops.values()))
    needed |= {queue.input for queue in chip_queues.values() if not queue.host_fed}
    needed |= _queues_of_executes(netlist, graphs)
    for name in sorted(needed - chip_queues.keys() - ops.keys()):
        yield Mismatch(
            DEVICE, _RULE, f"chip {chip} is not a copy by itself: {short_line(name)} is on another", steps=steps
        )


def _queues_of_executes(netlist: Netlist, graphs: Collection[str]) -> set[str]:
    """Return the queues that executes of these graphs have settings for."""
    queues: set[str] = set()
    for program in netlist.programs.values():
        for step in program.instructions:
            if isinstance(step, Execute) and step.graph in graphs:
                queues.update(setting.queue for setting in step.queue_settings)
    return queues


def plan_mismatches(plan: HostPlan, model: ModelIo, netlist: Netlist, archive: Archive) -> Iterator[Mismatch]:
    """Yield every name of a host plan that the image or the netlist does not have, and every contradiction in the plan
    itself."""

    def wrong(rule: str, problem: str, *steps: str | int) -> Mismatch:
        """Return the mismatch of `rule` at these steps below the plan."""
        return Mismatch(DEVICE, rule, problem, steps=(KEY, "host", *steps))

    for steps, problem in plan.problems():
        yield wrong("image-field", problem, *steps)
    if tuple(tensor_io.label for tensor_io in plan.given) != model.labels:
        yield wrong("image-field", "its inputs are not those of labels", "given")
    for value, file in plan.constants.items():
        if not archive.has(f"{TOP}/{FOLDER}/{file}"):
            yield wrong(
                "image-member", f"{short_line(file)} is not in the archive's folder {FOLDER}", "constants", value
            )
    for place, step in enumerate(plan.steps):
        if isinstance(step, DeviceStep):
            problems = _device_step_problems(step, model, netlist)
        else:
            problems = _host_step_problems(step, archive)
        for rule, problem, steps in problems:
            yield wrong(rule, problem, "steps", place, *steps)


def _host_step_problems(step: HostStep, archive: Archive) -> Iterator[tuple[str, str, Steps]]:
    """Yield (rule, problem, place below the step) where the archive does not have the file of a step that the host
    computes."""
    if not archive.has(f"{TOP}/{FOLDER}/{step.file}"):
        yield "image-member", f"{short_line(step.file)} is not in the archive's folder {FOLDER}", ("file",)


def _device_step_problems(step: DeviceStep, model: ModelIo, netlist: Netlist) -> Iterator[tuple[str, str, Steps]]:
    """Yield (rule, problem, place below the step) for each name of a step that runs a program which netlist and model
    do not have."""
    if step.program not in netlist.programs:
        hint = near(step.program, netlist.programs)
        problem = f"{short_line(step.program)} is not a program of the netlist{f' ({hint})' if hint else ''}"
        yield "image-queue", problem, ("program",)
    labels = {
        "inputs": {tensor_io.label for tensor_io in model.inputs},
        "outputs": {tensor_io.label for tensor_io in model.outputs},
    }
    for part, labels_of_part in labels.items():
        for label in getattr(step, part):
            if label not in labels_of_part:
                yield "image-queue", f"{short_line(label)} is not one of {KEY}.{part}", (part, label)


CONFIG: Final = f"{TOP}/compile_and_runtime_config.json"
_ROLES: Final = (
    "ordered_input_names", "ordered_output_names", "ordered_input_gradient_names", "ordered_output_gradient_names",
    "ordered_target_names", "ordered_constant_node_names", "ordered_parameter_node_names",
)  # fmt: skip


def queues_by_name(netlist: Netlist) -> Mapping[str, Sequence[Queue]]:
    """Return every queue by its own name, and by the name written in the netlist's text all copies of one queue on
    several chips (NETLIST 1.7)."""
    copies: dict[str, list[Queue]] = {}
    for queue in netlist.queues.values():
        copies.setdefault(queue.written_name, []).append(queue)
    return {**copies, **{name: [queue] for name, queue in netlist.queues.items()}}


def mismatches(metadata: DeviceMetadata, netlist: Netlist, archive: Archive) -> Iterator[Mismatch]:
    """Yield every contradiction between the parts of an image, errors and warnings: device.json, netlist, tensors,
    files, and what host and model need."""
    state = metadata.compiled_graph_state
    queues = queues_by_name(netlist)
    yield from _device_mismatches(metadata, netlist)
    yield from _name_mismatches(state, queues)
    yield from _role_mismatches(state, queues)
    for entry in state.tensors.values():
        yield from _tensor_mismatches(entry, _steps_of(entry, state), queues.get(entry.name, ()), netlist, archive)
    yield from host_mismatches(state, netlist, queues)
    if metadata.model is not None:
        yield from model_mismatches(metadata.model, netlist, state.tensors)
        if metadata.model.host is not None:
            yield from plan_mismatches(metadata.model.host, metadata.model, netlist, archive)
    yield from _file_mismatches(metadata, archive)
    for name in metadata.missing:
        yield Mismatch(
            member=DEVICE, rule="image-field", problem=MISSING, severity="warning", steps=tuple(name.split("."))
        )


def _device_mismatches(metadata: DeviceMetadata, netlist: Netlist) -> Iterator[Mismatch]:
    """Yield what device.json says of architecture, grid and chips that cannot be, or that the netlist contradicts."""
    word = ARCH_WORDS[metadata.arch]
    if netlist.arch_name != metadata.arch:
        problem = f"arch {word}, but the netlist is for {', '.join(netlist.archs)}"
        yield Mismatch(DEVICE, "image-device", problem, steps=("arch",))
    grid = ARCHS[metadata.arch].grid
    if metadata.grid_size and any(size > limit for size, limit in zip(metadata.grid_size, grid, strict=True)):
        problem = f"grid_size {list(metadata.grid_size)}, a {word} has {list(grid)} at most"
        yield Mismatch(DEVICE, "image-device", problem, steps=("grid_size",))
    for place, chip in _duplicates(metadata.chip_ids):
        yield Mismatch(DEVICE, "image-device", f"chip {chip} occurs twice", steps=("chip_ids", place))


def _name_mismatches(state: CompiledGraphState, queues: Mapping[str, Sequence[Queue]]) -> Iterator[Mismatch]:
    """Yield listed names that are no queue or occur twice, and constants and parameters without a tensor."""
    for role in _ROLES:
        names = getattr(state, role)
        for place, name in enumerate(names):
            if name not in queues:
                problem = f"{role} has {short_line(name)}, which is not a queue of the netlist"
                yield Mismatch(DEVICE, "image-queue", problem, steps=(STATE, role, place))
        for place, name in _duplicates(names):
            yield Mismatch(DEVICE, "image-queue", f"{short_line(name)} occurs twice", steps=(STATE, role, place))
    role = "ordered_intermediate_activation_names"
    for place, (_, queue) in enumerate(state.ordered_intermediate_activation_names):
        if queue not in queues:
            problem = f"{role} has {short_line(queue)}, which is not a queue of the netlist"
            yield Mismatch(DEVICE, "image-queue", problem, steps=(STATE, role, place, 1))
    for kind in ("constant", "parameter"):
        role = f"ordered_{kind}_node_names"
        group = f"post_const_eval_{kind}s"
        for place, name in enumerate(getattr(state, role)):
            if name not in getattr(state, group):
                problem = f"{kind} {short_line(name)} has no tensor in {group}"
                yield Mismatch(DEVICE, "image-member", problem, steps=(STATE, role, place))


def _duplicates(values: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Yield position and value of each entry that occurred earlier in the sequence."""
    seen: set[Any] = set()
    for place, value in enumerate(values):
        if value in seen:
            yield place, value
        seen.add(value)


def _role_mismatches(state: CompiledGraphState, queues: Mapping[str, Sequence[Queue]]) -> Iterator[Mismatch]:
    """Yield queues that the host should fill and an op does, or the reverse, and formats and tile dims that are not
    those of the queues."""
    yield from _source_mismatches(state, queues)
    yield from _format_mismatches(state, queues)
    yield from _tile_mismatches(state, queues)


def _source_mismatches(state: CompiledGraphState, queues: Mapping[str, Sequence[Queue]]) -> Iterator[Mismatch]:
    """Yield inputs that the host does not fill, and outputs that it does."""
    for role, host_fed in (("ordered_input_names", True), ("ordered_output_names", False)):
        for place, name in enumerate(getattr(state, role)):
            queue = next(iter(queues.get(name, ())), None)
            if queue is not None and queue.host_fed != host_fed:
                by = "the host" if queue.host_fed else f"op {queue.input}"
                problem = f"queue {short_line(name)} is filled by {by}"
                yield Mismatch(DEVICE, "image-queue", problem, steps=(STATE, role, place))


def _format_mismatches(state: CompiledGraphState, queues: Mapping[str, Sequence[Queue]]) -> Iterator[Mismatch]:
    """Yield outputs whose queues have another format than the image states, as warnings."""
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


def _tile_mismatches(state: CompiledGraphState, queues: Mapping[str, Sequence[Queue]]) -> Iterator[Mismatch]:
    """Yield queues with tiles of another size than the image states, as warnings."""
    for group in ("input_to_tile_dims", "parameter_to_tile_dims", "constant_to_tile_dims"):
        for name, dims in getattr(state, group).items():
            queue = next(iter(queues.get(name, ())), None)
            if queue is not None and isinstance(dims, tuple) and dims != queue.blocking.tile_dim:
                problem = f"queue {short_line(name)} has tiles of {list(queue.blocking.tile_dim)}"
                yield Mismatch(
                    member=DEVICE, rule="image-queue", problem=problem, severity="warning", steps=(STATE, group, name)
                )


def _steps_of(entry: TensorEntry, state: CompiledGraphState) -> Steps:
    """Return the place in device.json at which a tensor is described."""
    group = "parameters"
    if entry.name in state.post_const_eval_constants:
        group = "constants"
    return (STATE, f"post_const_eval_{group}", entry.name)


def _tensor_mismatches(
    entry: TensorEntry, steps: Steps, queues: Sequence[Queue], netlist: Netlist, archive: Archive
) -> Iterator[Mismatch]:
    """Yield errors where a constant or parameter has no queue, no file of its size, or does not fit its queue. `steps`:
    its place in device.json; `queues`: the queue and its copies on other chips, empty if there is none."""
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
        problem = _push_problem(entry, queue, netlist)
        if problem:
            yield Mismatch(DEVICE, "image-queue", f"tensor {name}: {problem}", steps=steps)


def _push_problem(entry: TensorEntry, queue: Queue, netlist: Netlist) -> str:
    """Return why a tensor cannot be pushed to its queue, "" if it can, and for a pickle, whose shape is not known."""
    if not queue.host_fed and not queue.is_ram:
        return f"queue {queue.name} is filled by op {queue.input}, not by the host"
    if entry.dump_format == "DEFAULT":
        return ""  # its shape is in the pickle
    t, rows, cols = queue.blocking.element_shape
    entries = entry.pushed_shape[0]
    if entry.dump_format == "BACKEND_TILIZED":
        problem = _tile_push_problem(entry, queue, netlist)
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


def _tile_push_problem(entry: TensorEntry, queue: Queue, netlist: Netlist) -> str:
    """Return why the tiles in a tensor's file cannot go to a queue unchanged, "" if they can (NETLIST 7.3 push_input,
    TilizedTensorDesc)."""
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


def _file_mismatches(metadata: DeviceMetadata, archive: Archive) -> Iterator[Mismatch]:
    """Yield warnings for missing files that a run does not need, and one if tensors are pickled."""
    if metadata.optimizer:
        optimizer: Sequence[str] = (metadata.optimizer,)
    else:
        optimizer = ()
    for name in (CONFIG, *(f"{TOP}/{file}" for file in optimizer)):
        if not archive.has(name):
            yield Mismatch(name, "image-member", "it is not in the archive", "warning")
    pickled = [entry for entry in metadata.compiled_graph_state.tensors.values() if entry.dump_format == "DEFAULT"]
    if pickled:
        problem = f"{plural(len(pickled), 'pickled tensor')}: loaded with --allow-pickle only"
        yield Mismatch(pickled[0].member, "image-pickle", problem, "warning")
