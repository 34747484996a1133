"""Verifier of IR: the invariants of each level, and those of netlist ops on tiles. Messages name the op that breaks
one.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any, Final

import numpy as np

from buda_emu.compiler.graph.spec import CORE, FRONT, declaration_problems, graph_problems
from buda_emu.compiler.ir.text import PLACED, TILE, Ir
from buda_emu.compiler.lower.picker import PickTable
from buda_emu.compiler.lower.tiles import Shape, TileGraph, TileOp, Tm, Use, after
from buda_emu.compiler.place.placement import ROLES, PlacedOp, Placement, Queue
from buda_emu.netlist.fields import LAYOUTS, LOCATIONS, QUEUE_TYPES
from buda_emu.netlist.rules.ops.shapes import Expected, shape_text
from buda_emu.spec.attributes import ATTRIBUTES, AttributeSpec
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.spec.precision import FIDELITIES
from buda_emu.support.checker.text import plural

OWN: Final[Mapping[str, type]] = {
    "untilize": bool, "gradient": bool, "strips": tuple, "table": PickTable, "rows": int,
    **dict.fromkeys((f"input{number}" for number in range(8)), tuple),
}  # fmt: skip
"""Attributes that only the compiler has: whether the host reads the result, whether it is added to a ram, strips of
each row of cores, the matrix of an identity matmul and the rows of cores that its operands are made for, and turns of a
splice."""
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "int": (int, np.integer), "bool": (bool,), "float": (float, int, np.floating), "ints": (tuple, list),
    "word": (str,), "text": (str,),
}  # fmt: skip
_MANY: Final = 9
"""Number of operands from which on the table means any number."""
TMS: Final = ("transpose", "broadcast", "hslice", "vslice", "hstack", "vstack")


def _netlist_attribute_problems(op: TileOp, name: str, value: Any) -> Iterator[str]:
    """Yield the problem with an attribute that netlists have: the op's type lacks it, or its value has another type."""
    spec = ATTRIBUTES.get(name)
    if spec is None or (spec.types is not None and op.type not in spec.types):
        yield f"attribute {name} is not one of {op.type}"
    elif not _has_type(spec, value):
        yield f"attribute {name} of type {spec.kind} cannot be {value!r}"


def attribute_problems(op: TileOp) -> Iterator[str]:
    """Yield a sentence for each problem with an op's attributes: an unknown op, an attribute that it does not have, a
    value of another type, a negative number of tiles, a step that cannot be one."""
    if op.type not in OP_TYPES:
        yield f"there is no op type {op.type}"
        return
    for name, value in op.attrs.items():
        if name in OWN:
            yield from _own_attribute_problems(name, value)
        else:
            yield from _netlist_attribute_problems(op, name, value)
    if op.inner < 0 or any(min(step.columns, step.across, step.inner) < 0 for step in op.steps):
        yield "a number of tiles is negative"
    yield from _step_problems(op)


def _own_attribute_problems(name: str, value: Any) -> Iterator[str]:
    """Yield problems with the value of an attribute that only the compiler has (`OWN`)."""
    if not isinstance(value, OWN[name]):
        yield f"attribute {name} is no {OWN[name].__name__}"
    elif isinstance(value, PickTable) and not _is_within(value):
        yield f"pairs of its {name} are outside of it"


def _step_problems(op: TileOp) -> Iterator[str]:
    """Yield problems with the steps of a fused op: an op that cannot be one, an attribute with an illegal value."""
    for step in op.steps:
        if step.type not in OP_TYPES or not OP_TYPES[step.type].in_fused:
            yield f"step {step.name}: {step.type} is not an op of a fused op"
        for name, value in step.attrs.items():
            if name not in ATTRIBUTES or not _has_type(ATTRIBUTES[name], value):
                yield f"step {step.name}: attribute {name} cannot be {value!r}"


def _is_within(table: PickTable) -> bool:
    """Return whether all pairs of tiles lie in the result and refer to existing tiles."""
    parts = (table.slice, table.row, table.which, table.inner)
    limits = (table.t, table.rows, len(table.tiles), np.iinfo(np.int32).max)
    return len({part.shape for part in parts}) == 1 and all(
        part.dtype.kind == "i" and bool(((part >= 0) & (part < limit)).all())
        for part, limit in zip(parts, limits, strict=True)
    )


def _has_type(spec: AttributeSpec, value: Any) -> bool:
    """Return whether a value has the declared type of an attribute and is among its words; a bool is no int."""
    if spec.kind == "int" and isinstance(value, bool):
        return False
    return isinstance(value, _TYPES.get(spec.kind, (object,))) and (not spec.words or value in spec.words)


def operand_problems(tiles: TileGraph, op: TileOp, queues: Mapping[str, str], arch: str) -> Iterator[str]:
    """Yield problems with an op's operands: a wrong number of them, one that no step reads, a TM that does not divide,
    an operand that may not be transposed, an operand or result of another shape (OPS 2, 7). `queues`: queues that may
    be read, with the ops that write them; `arch`: "" if it is unknown."""
    if len(op.shape) != 3 or min(op.shape) < 1:
        yield f"shape {list(op.shape)} is not slices, rows and columns of tiles"
        return
    least, largest = OP_TYPES[op.type].inputs
    if not least <= len(op.uses) <= largest:
        if least < largest < _MANY:
            range_text = f" to {largest}"
        else:
            range_text = ""
        yield f"{plural(len(op.uses), 'operand')}, it takes {least}{range_text}"
        return
    seen: list[Shape] = []
    for number, use in enumerate(op.uses):
        if op.steps and not any(f"input{number}" in step.inputs for step in op.steps):
            yield f"operand {number}: no step reads it"
            return
        try:
            seen.append(_shape_of_use(tiles, use, queues))
        except (ValueError, TypeError) as error:
            yield f"operand {number}: {error}"
            return
        if ("transpose",) in use.tms and (refusal := OP_TYPES[op.type].transpose_refusal(number, arch)):
            yield f"operand {number}: {refusal}"
            return
    yield from _shape_problems(op, seen)


def _shape_of_use(tiles: TileGraph, use: Use, queues: Mapping[str, str]) -> Shape:
    """Return the shape in tiles that an op sees of an operand, behind its TMs. The source may be a queue of `queues`,
    which maps queues to the ops that write them. Raises ValueError or TypeError for an impossible TM, KeyError for a
    source that does not exist."""
    shape = tiles.shape_of(queues.get(use.source, use.source))
    for tm in use.tms:
        shape = _shape_behind_tm(tm, shape)
    return shape


def _shape_problems(op: TileOp, seen: Sequence[Shape]) -> Iterator[str]:
    """Yield a problem for each operand that has another shape than the op needs, and for a wrong number of operands;
    `seen`: their shapes behind the TMs."""
    expected = list(_operand_shapes(op))
    if expected and len(expected) != len(seen):
        yield f"{plural(len(seen), 'operand')}, it takes {len(expected)}"
        return
    for number, (have, want) in enumerate(zip(seen, expected, strict=False)):
        if any(size not in (None, size_of_operand) for size_of_operand, size in zip(have, want, strict=True)):
            yield f"operand {number} is {list(have)} tiles after its TMs, not {shape_text(want)}"


def _shape_behind_tm(tm: Tm, shape: Shape) -> Shape:
    """Return the shape behind a TM. Raises ValueError for an unknown TM, or one that does not divide."""
    if tm[0] not in TMS or len(tm) != {"transpose": 1, "broadcast": 3}.get(tm[0], 2):
        raise ValueError(f"there is no TM {' '.join(map(str, tm))}")
    if tm[0] == "transpose":
        return after(tm, shape)
    count = tm[-1]
    if type(count) is not int or count < 1 or (tm[0] == "broadcast" and tm[1] not in ("z", "r", "c")):
        raise ValueError(f"there is no TM {' '.join(map(str, tm))}")
    cut = {"hslice": shape[2], "vslice": shape[1], "hstack": shape[0], "vstack": shape[0]}.get(tm[0], 0)
    if cut % count:
        raise ValueError(f"{tm[0]} {count} does not divide {cut}")
    return after(tm, shape)


def _operand_shapes(op: TileOp) -> Iterator[Expected]:
    """Yield the shape that each operand of an op must have, None for a free size; nothing if only the op's own rules
    can tell."""
    t, rows, columns = op.shape
    attrs = op.attrs
    family = OP_TYPES[op.type].family
    if family in ("unary", "sfpu"):
        yield op.shape
    elif family in ("binary", "quantization"):
        yield from (op.shape, op.shape)
    elif op.type == "matmul":
        yield from _factor_shapes(op)
    elif op.type == "depthwise":
        yield from ((t, rows, columns * op.inner), (t, op.inner, columns))
        yield from [op.shape] * _count_further_operands(op)
    elif op.has("reduces"):
        dim = attrs.get("dim")
        along = {
            "z": (t * int(attrs.get("z", 1)), rows, columns),
            "r": (t, op.inner or None, columns),
            "c": (t, rows, op.inner or None),
        }
        yield along.get(str(dim), (None, None, None))
    elif op.steps:
        yield from (op.operand_shape(number) for number in range(len(op.uses)))


def _factor_shapes(op: TileOp) -> Iterator[Expected]:
    """Yield the shape that each operand of a product must have, the picker and encoding of an identity matmul
    excepted, and those of its bias and scale."""
    t, rows, columns = op.shape
    if op.attrs.get("identity"):
        yield from ((None, None, None), (None, op.inner, columns), (None, None, None))
        yield from [op.shape] * (len(op.uses) - 3)
        return
    if op.attrs.get("accumulate"):
        slices = t * int(op.attrs.get("z", 1))
    else:
        slices = t
    yield from ((slices, rows, op.inner or None), (slices, op.inner or None, columns))
    yield from [op.shape] * _count_further_operands(op)


def _count_further_operands(op: TileOp) -> int:
    """Return the number of a product's operands in addition to its two factors."""
    return bool(op.attrs.get("bias")) + bool(op.attrs.get("dequant"))


MOST: Final = 20
"""Largest number of problems that are reported for one IR: one wrong pass may break every node in the same way."""


def problems(form: Ir, arch: str = "") -> list[str]:
    """Return the first problems of an IR at its level, none if it is valid. Without `arch` the rules for single
    architectures are left out."""
    messages: list[str] = []
    for problem in _form_problems(form, arch):
        messages.append(problem)
        if len(messages) == MOST:
            break
    return messages


def _form_problems(form: Ir, arch: str) -> Iterator[str]:
    """Yield the problems of a form: of its graph, then of its tile graph and of its placement, as far as its level has
    them. Declarations are checked only if the graph is sound."""
    if form.level == FRONT:
        stage = FRONT
    else:
        stage = CORE
    broken = False
    for problem in graph_problems(form.graph, stage):
        broken = True
        yield problem
    if not broken:
        yield from declaration_problems(form.graph)
    if form.tiles is not None and form.level in (TILE, PLACED):
        yield from tile_problems(form.tiles, _queues_written_by_ops(form), arch)
    if form.placement is not None:
        yield from placed_problems(form.placement)


def _queues_written_by_ops(form: Ir) -> dict[str, str]:
    """Return the queues of a placement that ops write, in which a short branch waits for a longer one, each with the op
    that writes it; {} before there is a placement."""
    if form.placement is None:
        return {}
    return {name: queue.input for name, queue in form.placement.queues.items() if queue.input in form.placement.ops}


def _is_of_whole_tiles(shape: Sequence[int]) -> bool:
    """Return whether an array of that shape is slices of at least one tile, with no tile cut."""
    return len(shape) == 3 and all(size and size % 32 == 0 for size in shape[1:])


def tile_problems(tiles: TileGraph, queues: Mapping[str, str], arch: str) -> Iterator[str]:
    """Yield problems of a graph of netlist ops: names, operands, attributes, shapes, formats. `queues` may also be
    operands; each holds what an op writes."""
    defined = {*tiles.inputs, *tiles.constants, *tiles.states, *queues}
    for name, constant in tiles.constants.items():
        if not _is_of_whole_tiles(constant.values.shape):
            yield f"constant {name}: {list(constant.values.shape)} are not slices of whole tiles"
            return
    for op in tiles.ops.values():
        missing = [use.source for use in op.uses if use.source not in defined]
        if missing:
            yield f"{op.name}: {missing[0]} is not defined before it"
            return
        if op.name in defined:
            yield f"{op.name}: there is another tensor of that name"
        defined.add(op.name)
        problem = next(attribute_problems(op), None) or next(operand_problems(tiles, op, queues, arch), None)
        if problem is not None:
            yield f"{op.name} = {op.type}: {problem}"
        yield from _format_problems(
            op.name, (op.precision.df, op.precision.acc_df, *op.precision.reads), op.precision.fidelity
        )
    yield from _output_problems(tiles)


def _output_problems(tiles: TileGraph) -> Iterator[str]:
    """Yield a problem for each output and store of a missing op, and for each store to a missing state."""
    for output in (*tiles.outputs.values(), *tiles.stores.values()):
        if output.op not in tiles.ops:
            yield f"{output.op}: an output or state is to be written by it, and there is no such op"
    for store in tiles.stores.values():
        if store.queue not in tiles.states:
            yield f"store {store.queue}: there is no such state"


def _format_problems(name: str, formats: tuple[str, ...], fidelity: str = "") -> Iterator[str]:
    """Yield a problem for each unknown number format, and for an unknown fidelity; "" is left to the device."""
    for df in formats:
        if df and df not in FORMATS:
            yield f"{name}: there is no format {df}"
    if fidelity and fidelity not in FIDELITIES:
        yield f"{name}: there is no fidelity {fidelity}"


def placed_problems(placement: Placement) -> Iterator[str]:
    """Yield a sentence for each problem of a placement: blocks that are not the result, cores that overlap or are not
    on the chip, a source in a later epoch, a queue with wrong fields or that does not exist."""
    if placement.ops.keys() != placement.tiles.ops.keys():
        yield "other ops are placed than there are"
        return
    for name, placed in placement.ops.items():
        yield from _division_problems(placement, placed)
        for use in placed.op.uses:
            source = placement.ops.get(use.source)
            if source is not None and source.epoch > placed.epoch:
                yield f"{name}: {use.source}, which it reads, runs in a later epoch"
    yield from _overlap_problems(placement)
    for name, queue in placement.queues.items():
        problem = next(_queue_problems(placement, queue), None)
        if problem is not None:
            yield f"queue {name}: {problem}"
    yield from _unheld_constant_problems(placement)
    queues: Mapping[Any, str] = {**placement.between, **placement.held_as}
    for name in queues.values():
        if name not in placement.queues:
            yield f"there is no queue {name}"


def _unheld_constant_problems(placement: Placement) -> Iterator[str]:
    """Yield a problem for each constant that an op reads and no queue holds for it."""
    for name, placed in placement.ops.items():
        for use in placed.op.uses:
            held = (name, use.source) in placement.held_as or use.source in placement.between
            if use.source in placement.tiles.constants and not held:
                yield f"{name}: no line `held {use.source} of {name} = QUEUE` says from which queue it reads"


def _kind_problems(queue: Queue) -> Iterator[str]:
    """Yield problems with what kind of queue it is: its place, type, layout and role."""
    if queue.loc not in LOCATIONS or queue.type not in QUEUE_TYPES or queue.layout not in LAYOUTS:
        yield f"there is no {queue.type} of layout {queue.layout} in {queue.loc}"
    if queue.role not in ROLES:
        yield f"there is no role {queue.role}: {', '.join(ROLES)}"


def _queue_problems(placement: Placement, queue: Queue) -> Iterator[str]:
    """Yield problems with a queue's format, buffers, type, role, entries and source."""
    if queue.df not in FORMATS:
        yield f"there is no format {queue.df}"
    yield from _address_problems(placement, queue)
    yield from _kind_problems(queue)
    if queue.entries < 1:
        yield f"{queue.entries} entries"
    if queue.input != "HOST" and queue.input not in placement.ops:
        yield f"there is no op {queue.input}"
    if queue.alias and queue.alias not in placement.queues:
        yield f"there is no queue {queue.alias}"


def _address_problems(placement: Placement, queue: Queue) -> Iterator[str]:
    """Yield problems with the number of a queue's buffers, and with their channels and addresses."""
    if len(queue.addresses) != prod(queue.blocks.grid):
        yield f"{plural(len(queue.addresses), 'address')} for a grid of {list(queue.blocks.grid)}"
    if queue.loc == "dram":
        channels = placement.target.arch.dram_channels
    else:
        channels = placement.target.arch.host_channels
    if any(not 0 <= channel < channels or address < 0 for channel, address in queue.addresses):
        yield f"an address that is not in {plural(channels, 'channel')} of {queue.loc}"


def _division_problems(placement: Placement, placed: PlacedOp) -> Iterator[str]:
    """Yield problems with an op's blocks and cores: blocks that are not its result, cores that are not on the chip."""
    blocks = placed.blocks
    (t, rows, columns) = placed.op.shape
    have = (blocks.t, *(a * b * c for a, b, c in zip(blocks.grid, blocks.mblock, blocks.ublock, strict=True)))
    if have != (t, rows, columns):
        yield f"{placed.op.name}: its blocks are {list(have)} tiles, its result {[t, rows, columns]}"
    top, left, bottom, right = _covered_cores(placed)
    height, width = placement.target.arch.grid
    if top < 0 or left < 0 or bottom > height or right > width or placed.chip < 0 or placed.epoch < 0:
        yield f"{placed.op.name}: cores {[top, left]} to {[bottom - 1, right - 1]}, the chip has {height}x{width}"


def _covered_cores(placed: PlacedOp) -> tuple[int, int, int, int]:
    """Return the cores of an op as top, left, bottom and right, the last two excluded."""
    rows, columns = reversed(placed.blocks.grid) if placed.grid_transpose else placed.blocks.grid
    return (*placed.at, placed.at[0] + rows, placed.at[1] + columns)


def _overlap_problems(placement: Placement) -> Iterator[str]:
    """Yield a problem for each pair of ops that run at the same time on the same cores."""
    for ops in placement.ops_by_graph().values():
        rectangles = [(placed.op.name, _covered_cores(placed)) for placed in ops]
        for (name, first), (other, second) in combinations(rectangles, 2):
            if first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]:
                yield f"{name} and {other} share cores"
