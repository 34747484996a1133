"""Checks of what device.json says about the host's tensors against the queues, and the rules of shapes between host and
queue."""

from collections.abc import Iterator, Mapping, Sequence, Set
from math import prod
from typing import Final, TypeVar

from buda_emu.emulator.image.archive import DEVICE, STATE
from buda_emu.emulator.image.metadata import NO_HOST_TM, NO_TRANSFORM, CompiledGraphState, Transform
from buda_emu.emulator.image.rules import Mismatch
from buda_emu.netlist.model import Execute, Netlist, Queue
from buda_emu.spec.blocking import TILE_EDGE
from buda_emu.spec.host_shape import expand_shape
from buda_emu.support.checker.text import plural, short_line
from buda_emu.support.errors import HostError

_COLUMNS: Final = (-1, 3)  # the dimension of columns, counted from the end and from the front
_ROWS: Final = (-2, 2)  # likewise of rows


def missing_shape_problem(transform: Transform, field: str) -> str:
    """Return as text that a transform lacks the shape `field`, which its type needs; "" if it has it."""
    if getattr(transform, field):
        return ""
    return f"the image states no {field} for its runtime transform {transform.type}"


def entries_problem(elements: int, shape: Sequence[int]) -> str:
    """Return as text that so many elements do not divide into entries of `shape`, "" if they do. The shape's first
    number, a batch, does not count."""
    if elements % prod(shape[1:]) == 0:
        return ""
    return f"the image states shape {list(shape)} for a tensor of {elements} elements"


def tile_padding(
    shape: Sequence[int], tile_dim: tuple[int, int], broadcast: Sequence[int]
) -> Iterator[tuple[int, int, bool]]:
    """Yield what a shape [w, z, r, c] lacks to whole tiles: (axis, number of elements, whether these repeat the edge
    instead of being zeros). `broadcast` has the dimensions that repeat."""
    height, width = tile_dim
    for axis, count, dims in ((3, -shape[3] % width, _COLUMNS), (2, -shape[2] % height, _ROWS)):
        if count:
            yield axis, count, any(dim in dims for dim in broadcast)


def repeat_problem(shape: Sequence[int], tile_dim: tuple[int, int], broadcast: Sequence[int]) -> str:
    """Return as text that a shape [w, z, r, c] has more than one row or column where `broadcast` wants one repeated
    over a tile, else ""."""
    for axis, _, repeated in tile_padding(shape, tile_dim, broadcast):
        if repeated and shape[axis] != 1:
            return f"{shape[axis]} {'columns' if axis == 3 else 'rows'} cannot be repeated over a tile, only 1 can"
    return ""


def stride_problem(transform: Transform) -> str:
    """Return as text that the strides of a Prestride transform differ or are below 1, else "" (NETLIST 8)."""
    strides = transform.stride_height, transform.stride_width
    if (strides[0] or 0) > 0 and strides[0] == strides[1]:
        return ""
    return f"Prestride with stride {strides[0]}x{strides[1]}: both must be equal, and 1 or more"


def index_problem(width: int, queue: Queue) -> str:
    """Return as text that `width` indices, padded to whole tiles, do not divide into the tile rows of an embedding's
    queue, else ""."""
    rows = tile_rows(queue)
    if width % (rows * TILE_EDGE) == 0:
        return ""
    return f"{width} indices do not divide into the {rows} rows of tiles of queue {queue.name}"


def tile_rows(queue: Queue) -> int:
    """Return the number of rows of tiles of a queue over all of its cores."""
    blocking = queue.blocking
    return blocking.grid_size[0] * blocking.mblock[0] * blocking.ublock[0]


def extent_of(cut: Sequence[int]) -> tuple[int, int, int]:
    """Return (t, rows, columns) of a shape of the host, whose first number, a batch, does not count; missing dimensions
    are 1."""
    if len(cut) > 1:
        rows, columns = (1, 1, *cut[1:])[-2:]
    else:
        rows = 1
        columns = 1
    return prod(cut[1:-2]), rows, columns


def cut_problem(have: Sequence[int], cut: Sequence[int], shape: Sequence[int]) -> str:
    """Return as text that entries [entries, t, rows, columns] cannot be narrowed to the shape `cut` and reshaped to
    `shape`, else ""."""
    t, rows, columns = extent_of(cut)
    if t > have[1] or rows > have[2] or columns > have[3]:
        return f"shape {list(have)} cannot be narrowed to {list(cut)}"
    elements = t * rows * columns
    if elements != prod(shape[1:]):
        return f"the image states shape {list(shape)} for entries of {elements} elements"
    return ""


def concat_problem(shapes: Sequence[Sequence[int]], dim: int) -> str:
    """Return as text that arrays of these shapes [entries, t, rows, columns] cannot be concatenated along `dim`, else
    ""."""
    axis = dim + 4 if dim < 0 else dim
    rest = {tuple(size for place, size in enumerate(shape) if place != axis) for shape in shapes}
    if 0 <= axis < 4 and len(rest) == 1:
        return ""
    return f"{len(shapes)} outputs cannot be concatenated along dimension {dim}"


Queues = Mapping[str, Sequence[Queue]]
T = TypeVar("T")
D = TypeVar("D")

_TRANSFORMS: Final = "ordered_{}_runtime_tensor_transforms"
_PARALLEL: Final[Mapping[str, tuple[str, ...]]] = {
    "input": ("runtime_tensor_transforms", "tile_broadcast_dims", "shapes", "subgraph_indices", "requires_grad"),
    "output": ("runtime_tensor_transforms", "data_formats", "subgraph_indices", "requires_grad"),
    "target": ("tile_broadcast_dims", "shapes", "subgraph_indices"),
}
"""Lists that are parallel to the names of inputs, outputs and targets. Shapes of outputs may be fewer
(`output_groups`)."""
_USED: Final = frozenset(
    {
        _TRANSFORMS.format("input"),
        _TRANSFORMS.format("output"),
        "ordered_input_tile_broadcast_dims",
        "ordered_input_shapes",
    }
)
"""The parallel lists that a run depends on: a wrong length is an error, in the others a warning."""


def host_mismatches(state: CompiledGraphState, netlist: Netlist, queues: Queues) -> Iterator[Mismatch]:
    """Yield errors and warnings about what device.json states for the host: lists of a wrong length, impossible shapes
    and transforms, and a microbatch that does not fit the queues."""
    wrong = [*_length_mismatches(state), *_host_tm_mismatches(state, netlist, queues)]
    yield from wrong
    yield from _microbatch_mismatches(state, netlist, queues)
    if not any(mismatch.severity == "error" for mismatch in wrong):
        yield from _input_mismatches(state, queues)
        yield from _output_mismatches(state, queues)


def _length_mismatches(state: CompiledGraphState) -> Iterator[Mismatch]:
    """Yield lists that are not as long as the list of names that they are parallel to."""
    for role, lists in _PARALLEL.items():
        count = len(getattr(state, f"ordered_{role}_names"))
        for name in (f"ordered_{role}_{suffix}" for suffix in lists):
            length = len(getattr(state, name))
            if length not in (0, count):
                severity = "error" if name in _USED else "warning"
                problem = f"{length} {name} for {count} {role}s"
                yield Mismatch(
                    member=DEVICE, rule="image-field", problem=problem, severity=severity, steps=(STATE, name)
                )


def _microbatch_mismatches(state: CompiledGraphState, netlist: Netlist, queues: Queues) -> Iterator[Mismatch]:
    """Yield an error for an input queue that cannot hold a microbatch (unless each epoch reads it once, into L1), and a
    warning where the microbatch is not the netlist's input_count."""
    steps = (STATE, "microbatch")
    prologue_queues = _prologue_queues(netlist)
    for name in state.ordered_input_names:
        for queue in queues.get(name, ())[:1]:
            if not queue.is_ram and queue.name not in prologue_queues and state.microbatch > queue.entries:
                capacity = plural(queue.entries, "entry")
                problem = f"a microbatch of {state.microbatch}, but queue {short_line(name)} holds {capacity}"
                yield Mismatch(DEVICE, "image-queue", problem, steps=steps)
                return
    counts = {graph.input_count for graph in netlist.graphs.values()}
    if counts and state.microbatch not in counts:  # NETLIST 12
        input_counts = " or ".join(map(str, sorted(counts)))
        problem = f"a microbatch of {state.microbatch}, but the netlist's input_count is {input_counts}"
        yield Mismatch(member=DEVICE, rule="image-queue", problem=problem, severity="warning", steps=steps)


def _prologue_queues(netlist: Netlist) -> Set[str]:
    """Return the names of the queues from which some execute loads an entry once for all its inputs (prologue, NETLIST
    4.4)."""
    queues: set[str] = set()
    for program in netlist.programs.values():
        for step in program.instructions:
            if isinstance(step, Execute):
                prologues = (setting for setting in step.queue_settings if setting.prologue.lower() in ("true", "1"))
                queues.update(setting.queue for setting in prologues)
    return queues


def _host_tm_mismatches(state: CompiledGraphState, netlist: Netlist, queues: Queues) -> Iterator[Mismatch]:
    """Yield errors for stacking factors of outputs that do not divide the queue's t, belong to no queue, or do not suit
    a queue that its op untilizes."""
    for name, tm in state.output_host_tms.items():
        steps = (STATE, "output_host_tms", name)
        if name not in queues:
            problem = f"output_host_tms has {short_line(name)}, which is not a queue of the netlist"
            yield Mismatch(DEVICE, "image-queue", problem, steps=steps)
            continue
        queue = queues[name][0]
        factors = f"hstack {tm.hstack_factor} and vstack {tm.vstack_factor}"
        if queue.blocking.t % (tm.hstack_factor * tm.vstack_factor):
            problem = f"output_host_tms of {name}: {factors} do not divide t = {queue.blocking.t}"
            yield Mismatch(DEVICE, "image-queue", problem, steps=steps)
        producer = netlist.ops.get(queue.input)
        by_rows = tm.hstack_factor == 1 and (tm.vstack_factor == 1 or tm.row_major)
        if producer is not None and producer.untilize_output and not by_rows:  # LAYOUT 3.5
            problem = f"output_host_tms of {name}: {factors}: an untilized queue takes vstack alone, and row-major"
            yield Mismatch(DEVICE, "image-queue", problem, steps=steps)


# ------------------------------------------------------------------------------------------------------------ inputs
def _input_mismatches(state: CompiledGraphState, queues: Queues) -> Iterator[Mismatch]:
    """Yield inputs whose stated shape or transform cannot give entries of their queue."""
    for place, name in enumerate(state.ordered_input_names):
        if name not in queues:
            continue
        queue = queues[name][0]
        transform = _value_at(state.ordered_input_runtime_tensor_transforms, place, NO_TRANSFORM)
        broadcast = _value_at(state.ordered_input_tile_broadcast_dims, place, ())
        shape: tuple[int, ...] | None = _value_at(state.ordered_input_shapes, place, None)
        field = _TRANSFORMS.format("input")
        problem = _input_problem(transform, broadcast, queue)
        if transform.type == "ConstantInput" and name not in state.tensors:
            problem = "the image has no tensor for its runtime transform ConstantInput"
        if transform.type == "NoTransform" and shape is not None:
            field = "ordered_input_shapes"
            problem = _padding_problem(shape, broadcast, queue)
        if problem:
            yield Mismatch(DEVICE, "image-queue", f"{short_line(name)}: {problem}", steps=(STATE, field, place))


def _reinterpret_problem(transform: Transform, broadcast: Sequence[int], queue: Queue) -> str:
    """Return why a tensor in another shape cannot become an entry of the queue, "" if it can."""
    original = transform.original_shape or ()
    new = transform.reinterpreted_shape or ()
    return (
        missing_shape_problem(transform, "original_shape")
        or missing_shape_problem(transform, "reinterpreted_shape")
        or entries_problem(prod(original), new)
        or _padding_problem(new, broadcast, queue)
    )


def _prestride_problem(transform: Transform, queue: Queue) -> str:
    """Return why the windows of a strided convolution cannot become an entry of the queue, "" if they can."""
    stride = transform.stride_height or 0
    rows = queue.blocking.element_shape[1]
    if problem := stride_problem(transform):
        return problem
    if stride * stride > rows:
        return f"Prestride with stride {stride}: a window has more elements than the {rows} rows of its queue"
    return ""


def _input_problem(transform: Transform, broadcast: Sequence[int], queue: Queue) -> str:
    """Return why no tensor of the host can become an entry of the queue by this transform, "" where one can. Transforms
    that inputs cannot have are not reported here but when a tensor is converted, as a tensor of the queue's own shape
    needs none."""
    if transform.type == "ReinterpretShape":
        return _reinterpret_problem(transform, broadcast, queue)
    if transform.type == "Prestride":
        return _prestride_problem(transform, queue)
    if transform.type == "EmbeddingIndex":
        return _embedding_problem(transform, queue)
    return ""


def _embedding_problem(transform: Transform, queue: Queue) -> str:
    """Return why indices of the stated shape cannot become an entry of the queue, "" where they can."""
    original = transform.original_shape
    if not original:
        return missing_shape_problem(transform, "original_shape")
    if prod(original[1:-1]) != 1:
        return f"EmbeddingIndex takes indices [w, n], not {list(original)}"
    return _index_placement_problem(original[-1], queue)


def _padding_problem(shape: Sequence[int], broadcast: Sequence[int], queue: Queue) -> str:
    """Return the problem where a tensor of the host, padded to whole tiles, does not become entries of the queue, else
    ""."""
    try:
        four = list(expand_shape(shape))
    except HostError as error:
        return str(error)
    problem = repeat_problem(four, queue.blocking.tile_dim, broadcast)
    for axis, count, _ in tile_padding(four, queue.blocking.tile_dim, broadcast):
        four[axis] += count
    return problem or _entry_problem(shape, four[1:], queue)


def _index_placement_problem(count: int, queue: Queue) -> str:
    """Return why `count` indices of an embedding do not fill an entry of the queue, "" if they do."""
    rows = tile_rows(queue)
    width = -(-count // TILE_EDGE) * TILE_EDGE
    columns = -(-width // (rows * TILE_EDGE * TILE_EDGE)) * TILE_EDGE
    return index_problem(width, queue) or _entry_problem((1, count), (1, rows * TILE_EDGE, columns), queue)


def _entry_problem(shape: Sequence[int], entry: Sequence[int], queue: Queue) -> str:
    """Return the problem where a host's `shape` gives an `entry` [t, rows, columns] that the queue does not take, else
    ""."""
    takes = queue.blocking.element_shape
    if tuple(entry) == takes:
        return ""
    return f"shape {list(shape)} gives {list(entry)} for an entry, queue {queue.name} takes {list(takes)}"


# ----------------------------------------------------------------------------------------------------------- outputs
def output_groups(names: Sequence[str], transforms: Sequence[Transform]) -> list[list[int]]:
    """Return the positions in `names` of the outputs that the host gets as one tensor: those of one `concat_group`
    together, every other output alone (FRONTEND 7). `transforms` are parallel to the names, or empty."""
    groups: dict[tuple[str, int], list[int]] = {}
    for place in range(len(names)):
        transform = _value_at(transforms, place, NO_TRANSFORM)
        joined = transform.type == "Concatenate"
        groups.setdefault(("joined", transform.concat_group or 0) if joined else ("alone", place), []).append(place)
    return list(groups.values())


def _output_mismatches(state: CompiledGraphState, queues: Queues) -> Iterator[Mismatch]:
    """Yield outputs, or groups of outputs, that cannot be joined, transformed, or cut to the shape that the image
    states."""
    names = state.ordered_output_names
    transforms = state.ordered_output_runtime_tensor_transforms
    groups = output_groups(names, transforms)
    shapes = state.ordered_output_shapes
    if len(shapes) not in (0, len(groups)):
        problem = f"{len(shapes)} ordered_output_shapes for {plural(len(groups), 'output')}"
        yield Mismatch(DEVICE, "image-field", problem, steps=(STATE, "ordered_output_shapes"))
        return
    for number, places in enumerate(groups):
        if any(names[place] not in queues for place in places):
            continue
        parts = [_folded_extent(queues[names[place]][0], state) for place in places]
        transform = _value_at(transforms, places[0], NO_TRANSFORM)
        field = _TRANSFORMS.format("output")
        place = places[0]
        problem = concat_problem(parts, transform.concat_dim or 0) or _output_problem(transform, parts[0])
        if not problem and transform.type in ("NoTransform", "Concatenate") and len(shapes) == len(groups):
            have = _joined_extent(parts, transform.concat_dim or 0)
            shape = shapes[number]
            field = "ordered_output_shapes"
            place = number
            problem = cut_problem(have, shape, shape)
        if problem:
            yield Mismatch(
                DEVICE, "image-queue", f"{short_line(names[places[0]])}: {problem}", steps=(STATE, field, place)
            )


def _output_problem(transform: Transform, have: Sequence[int]) -> str:
    """Return why a transform cannot be applied to an output [entries, t, rows, columns], "" where it can. Transforms
    that outputs cannot have are not reported here but when an output is converted, as raw entries need none."""
    if transform.type == "Unpad":
        shape = transform.unpadded_shape or ()
        return missing_shape_problem(transform, "unpadded_shape") or cut_problem(have, shape, shape)
    if transform.type == "ReinterpretShape":
        stated = transform.original_shape or ()
        cut = transform.reinterpreted_shape or ()
        return (
            missing_shape_problem(transform, "original_shape")
            or missing_shape_problem(transform, "reinterpreted_shape")
            or cut_problem(have, cut, stated)
        )
    return ""


def _folded_extent(queue: Queue, state: CompiledGraphState) -> list[int]:
    """Return [1, t, rows, columns] of one entry of an output after its stacking on the host (LAYOUT 3.5)."""
    tms = state.output_host_tms
    tm = tms.get(queue.name, tms.get(queue.written_name, NO_HOST_TM))
    t, rows, columns = queue.blocking.element_shape
    return [1, t // (tm.hstack_factor * tm.vstack_factor), rows * tm.vstack_factor, columns * tm.hstack_factor]


def _joined_extent(parts: Sequence[Sequence[int]], dim: int) -> list[int]:
    """Return the extent of these parts [entries, t, rows, columns] concatenated along `dim`, without a check that they
    fit; that of a single part is unchanged."""
    extent = list(parts[0])
    if len(parts) > 1:
        extent[dim] = sum(part[dim] for part in parts)
    return extent


def _value_at(items: Sequence[T], place: int, default: D) -> T | D:
    """Return the value at a place of a list, or the default if the list is empty."""
    return items[place] if items else default
