"""Whether what device.json says of the host's tensors fits the queues, and the rules of shapes between host and
queue.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from math import prod
from typing import Final, TypeVar

from buda_emu.emulator.image.metadata import NO_HOST_TM, NO_TRANSFORM, CompiledGraphState, Transform
from buda_emu.emulator.image.mismatch import DEVICE, STATE, Mismatch
from buda_emu.netlist.model import Execute, Netlist, Queue
from buda_emu.spec.host_shape import expand_shape
from buda_emu.support.checker.text import plural, short_line
from buda_emu.support.errors import HostError

TILE: Final = 32
_COLUMNS: Final = (-1, 3)
_ROWS: Final = (-2, 2)


def unstated(transform: Transform, field: str) -> str:
    """Whether a transform lacks a shape that its type needs."""
    if getattr(transform, field):
        return ""
    return f"the image states no {field} for its runtime transform {transform.type}"


def unlike_entries(elements: int, shape: Sequence[int]) -> str:
    """Whether elements do not divide into entries of another shape, whose first number, a batch, does not count."""
    if elements % prod(shape[1:]) == 0:
        return ""
    return f"the image states shape {list(shape)} for a tensor of {elements} elements"


def filling(
    shape: Sequence[int], tile_dim: tuple[int, int], broadcast: Sequence[int]
) -> Iterator[tuple[int, int, bool]]:
    """What [w, z, r, c] lacks to whole tiles: axis, how many, and whether they are repeated instead of zeros."""
    height, width = tile_dim
    for axis, count, dims in ((3, -shape[3] % width, _COLUMNS), (2, -shape[2] % height, _ROWS)):
        if count:
            yield axis, count, any(dim in dims for dim in broadcast)


def unrepeatable(shape: Sequence[int], tile_dim: tuple[int, int], broadcast: Sequence[int]) -> str:
    """Whether rows or columns of [w, z, r, c] are to be repeated and are more than one."""
    for axis, _, repeated in filling(shape, tile_dim, broadcast):
        if repeated and shape[axis] != 1:
            return f"{shape[axis]} {'columns' if axis == 3 else 'rows'} cannot be repeated over a tile, only 1 can"
    return ""


def unequal_strides(transform: Transform) -> str:
    """NETLIST 8: one stride for both directions."""
    strides = transform.stride_height, transform.stride_width
    if (strides[0] or 0) > 0 and strides[0] == strides[1]:
        return ""
    return f"Prestride with stride {strides[0]}x{strides[1]}: both must be equal, and 1 or more"


def undivided_indices(width: int, queue: Queue) -> str:
    """Whether so many indices, filled up to whole tiles, have no place in the queue of an embedding."""
    rows = tile_rows(queue)
    if width % (rows * TILE) == 0:
        return ""
    return f"{width} indices do not divide into the {rows} rows of tiles of queue {queue.name}"


def tile_rows(queue: Queue) -> int:
    """Rows of tiles of a queue, over all of its cores."""
    blocking = queue.blocking
    return blocking.grid_size[0] * blocking.mblock[0] * blocking.ublock[0]


def extent_of(cut: Sequence[int]) -> tuple[int, int, int]:
    """t, rows and columns of a host's shape, whose first number, a batch, does not count."""
    rows, columns = (1, 1, *cut[1:])[-2:] if len(cut) > 1 else (1, 1)
    return prod(cut[1:-2]), rows, columns


def unlike_cut(have: Sequence[int], cut: Sequence[int], shape: Sequence[int]) -> str:
    """Whether [entries, t, rows, columns] cannot be cut to the rows and columns of `cut` and be given a shape."""
    t, rows, columns = extent_of(cut)
    if t > have[1] or rows > have[2] or columns > have[3]:
        return f"shape {list(have)} cannot be narrowed to {list(cut)}"
    elements = t * rows * columns
    if elements != prod(shape[1:]):
        return f"the image states shape {list(shape)} for entries of {elements} elements"
    return ""


def unlike_parts(shapes: Sequence[Sequence[int]], dim: int) -> str:
    """Whether shapes [entries, t, rows, columns] cannot be concatenated along a dimension."""
    axis = dim + 4 if dim < 0 else dim
    rest = {tuple(size for place, size in enumerate(shape) if place != axis) for shape in shapes}
    return (
        ""
        if 0 <= axis < 4 and len(rest) == 1
        else f"{len(shapes)} outputs cannot be concatenated along dimension {dim}"
    )


Queues = Mapping[str, Sequence[Queue]]
T = TypeVar("T")
D = TypeVar("D")

_TRANSFORMS: Final = "ordered_{}_runtime_tensor_transforms"
_PARALLEL: Final[Mapping[str, tuple[str, ...]]] = {
    "input": ("runtime_tensor_transforms", "tile_broadcast_dims", "shapes", "subgraph_indices", "requires_grad"),
    "output": ("runtime_tensor_transforms", "data_formats", "subgraph_indices", "requires_grad"),
    "target": ("tile_broadcast_dims", "shapes", "subgraph_indices"),
}
"""Lists that go with the names of inputs, outputs and targets. Shapes of outputs may be fewer (`output_groups`)."""
_USED: Final = frozenset(
    {
        _TRANSFORMS.format("input"),
        _TRANSFORMS.format("output"),
        "ordered_input_tile_broadcast_dims",
        "ordered_input_shapes",
    }
)
"""Those of them that a run depends on: another length is an error."""


def host_mismatches(state: CompiledGraphState, netlist: Netlist, queues: Queues) -> Iterator[Mismatch]:
    """Lists of another length, shapes and transforms that cannot be, a microbatch that no queue holds."""
    wrong = [*_lists(state), *_host_tms(state, netlist, queues)]
    yield from wrong
    yield from _microbatch(state, netlist, queues)
    if not any(item.severity == "error" for item in wrong):
        yield from _inputs(state, queues)
        yield from _outputs(state, queues)


def _lists(state: CompiledGraphState) -> Iterator[Mismatch]:
    """Items that cannot be told apart by their place."""
    for what, lists in _PARALLEL.items():
        count = len(getattr(state, f"ordered_{what}_names"))
        for name in (f"ordered_{what}_{item}" for item in lists):
            found = len(getattr(state, name))
            if found not in (0, count):
                severity = "error" if name in _USED else "warning"
                problem = f"{found} {name} for {count} {what}s"
                yield Mismatch(
                    member=DEVICE, rule="image-field", problem=problem, severity=severity, steps=(STATE, name)
                )


def _microbatch(state: CompiledGraphState, netlist: Netlist, queues: Queues) -> Iterator[Mismatch]:
    """One entry of the host may serve a microbatch, which its queue has to hold; not one that all inputs read in L1."""
    steps = (STATE, "microbatch")
    kept = _kept_in_l1(netlist)
    for name in state.ordered_input_names:
        for queue in queues.get(name, ())[:1]:
            if not queue.is_ram and queue.name not in kept and state.microbatch > queue.entries:
                held = plural(queue.entries, "entry")
                problem = f"a microbatch of {state.microbatch}, but queue {short_line(name)} holds {held}"
                yield Mismatch(DEVICE, "image-queue", problem, steps=steps)
                return
    counts = {graph.input_count for graph in netlist.graphs.values()}
    if counts and state.microbatch not in counts:  # NETLIST 12
        known = " or ".join(map(str, sorted(counts)))
        problem = f"a microbatch of {state.microbatch}, but the netlist's input_count is {known}"
        yield Mismatch(member=DEVICE, rule="image-queue", problem=problem, severity="warning", steps=steps)


def _kept_in_l1(netlist: Netlist) -> Set[str]:
    """Queues whose entry an epoch loads once for all its inputs (prologue, NETLIST 4.4)."""
    steps = (step for program in netlist.programs.values() for step in program.instructions)
    settings = (one for step in steps if isinstance(step, Execute) for one in step.queue_settings)
    return {one.queue for one in settings if one.prologue.lower() in ("true", "1")}


def _host_tms(state: CompiledGraphState, netlist: Netlist, queues: Queues) -> Iterator[Mismatch]:
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
def _inputs(state: CompiledGraphState, queues: Queues) -> Iterator[Mismatch]:
    for place, name in enumerate(state.ordered_input_names):
        if name not in queues:
            continue
        queue = queues[name][0]
        transform = _at(state.ordered_input_runtime_tensor_transforms, place, NO_TRANSFORM)
        broadcast = _at(state.ordered_input_tile_broadcast_dims, place, ())
        shape: tuple[int, ...] | None = _at(state.ordered_input_shapes, place, None)
        where = _TRANSFORMS.format("input")
        problem = _input_problem(transform, broadcast, queue)
        if transform.type == "ConstantInput" and name not in state.tensors:
            problem = "the image has no tensor for its runtime transform ConstantInput"
        if transform.type == "NoTransform" and shape is not None:
            where = "ordered_input_shapes"
            problem = _unfilled(shape, broadcast, queue)
        if problem:
            yield Mismatch(DEVICE, "image-queue", f"{short_line(name)}: {problem}", steps=(STATE, where, place))


def _input_problem(transform: Transform, broadcast: Sequence[int], queue: Queue) -> str:
    """Why nothing of the host can become an entry of the queue by a transform, "" where something can. A transform that
    is none for inputs is said where it is asked for: the queue's own shape needs none."""
    if transform.type == "ReinterpretShape":
        original = transform.original_shape or ()
        new = transform.reinterpreted_shape or ()
        return (
            unstated(transform, "original_shape")
            or unstated(transform, "reinterpreted_shape")
            or unlike_entries(prod(original), new)
            or _unfilled(new, broadcast, queue)
        )
    if transform.type == "Prestride":
        stride = transform.stride_height or 0
        rows = queue.blocking.element_shape[1]
        crowded = f"Prestride with stride {stride}: a window has more elements than the {rows} rows of its queue"
        return unequal_strides(transform) or (crowded if stride * stride > rows else "")
    if transform.type == "EmbeddingIndex":
        original = transform.original_shape
        if not original:
            return unstated(transform, "original_shape")
        if prod(original[1:-1]) != 1:
            return f"EmbeddingIndex takes indices [w, n], not {list(original)}"
        return _unplaced(original[-1], queue)
    return ""


def _unfilled(shape: Sequence[int], broadcast: Sequence[int], queue: Queue) -> str:
    """Whether a tensor of the host does not become entries of the queue when it is filled up to whole tiles."""
    try:
        four = list(expand_shape(shape))
    except HostError as error:
        return str(error)
    problem = unrepeatable(four, queue.blocking.tile_dim, broadcast)
    for axis, count, _ in filling(four, queue.blocking.tile_dim, broadcast):
        four[axis] += count
    return problem or _unlike_queue(shape, four[1:], queue)


def _unplaced(count: int, queue: Queue) -> str:
    """Whether so many indices do not become an entry of the queue."""
    rows = tile_rows(queue)
    width = -(-count // TILE) * TILE
    columns = -(-width // (rows * TILE * TILE)) * TILE
    return undivided_indices(width, queue) or _unlike_queue((1, count), (1, rows * TILE, columns), queue)


def _unlike_queue(shape: Sequence[int], given: Sequence[int], queue: Queue) -> str:
    takes = queue.blocking.element_shape
    if tuple(given) == takes:
        return ""
    return f"shape {list(shape)} gives {list(given)} for an entry, queue {queue.name} takes {list(takes)}"


# ----------------------------------------------------------------------------------------------------------- outputs
def output_groups(names: Sequence[str], transforms: Sequence[Transform]) -> list[list[int]]:
    """Places of outputs that the host gets as one, which have one shape: those of a `concat_group` by their index, all
    others by themselves (FRONTEND 7)."""
    groups: dict[tuple[str, int], list[int]] = {}
    for place in range(len(names)):
        transform = _at(transforms, place, NO_TRANSFORM)
        joined = transform.type == "Concatenate"
        groups.setdefault(("joined", transform.concat_group or 0) if joined else ("alone", place), []).append(place)
    return list(groups.values())


def _outputs(state: CompiledGraphState, queues: Queues) -> Iterator[Mismatch]:
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
        parts = [_folded(queues[names[place]][0], state) for place in places]
        transform = _at(transforms, places[0], NO_TRANSFORM)
        where = _TRANSFORMS.format("output")
        place = places[0]
        problem = unlike_parts(parts, transform.concat_dim or 0) or _output_problem(transform, parts[0])
        if not problem and transform.type in ("NoTransform", "Concatenate") and len(shapes) == len(groups):
            have = _joined(parts, transform.concat_dim or 0)
            shape = shapes[number]
            where = "ordered_output_shapes"
            place = number
            problem = unlike_cut(have, shape, shape)
        if problem:
            yield Mismatch(
                DEVICE, "image-queue", f"{short_line(names[places[0]])}: {problem}", steps=(STATE, where, place)
            )


def _output_problem(transform: Transform, have: Sequence[int]) -> str:
    """Why an output [entries, t, rows, columns] cannot be what a transform makes of it, "" where it can. A transform
    that outputs cannot have is refused where it is asked for: raw entries need none."""
    if transform.type == "Unpad":
        shape = transform.unpadded_shape or ()
        return unstated(transform, "unpadded_shape") or unlike_cut(have, shape, shape)
    if transform.type == "ReinterpretShape":
        stated = transform.original_shape or ()
        cut = transform.reinterpreted_shape or ()
        return (
            unstated(transform, "original_shape")
            or unstated(transform, "reinterpreted_shape")
            or unlike_cut(have, cut, stated)
        )
    return ""


def _folded(queue: Queue, state: CompiledGraphState) -> list[int]:
    """[entries, t, rows, columns] that the host reads (LAYOUT 3.5)."""
    tms = state.output_host_tms
    tm = tms.get(queue.name, tms.get(queue.written_name, NO_HOST_TM))
    t, rows, columns = queue.blocking.element_shape
    return [1, t // (tm.hstack_factor * tm.vstack_factor), rows * tm.vstack_factor, columns * tm.hstack_factor]


def _joined(parts: Sequence[Sequence[int]], dim: int) -> list[int]:
    found = list(parts[0])
    if len(parts) > 1:
        found[dim] = sum(part[dim] for part in parts)
    return found


def _at(items: Sequence[T], place: int, default: D) -> T | D:
    """The item at a place of a list that may be empty."""
    return items[place] if items else default
