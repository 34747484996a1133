"""The invariants of an IR at each level, with those of netlist ops on tiles. A verifier names the op that breaks
one.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import prod
from typing import Any, Final

import numpy as np

from buda_emu.compiler.graph.spec import CORE, FRONT, declaration_problems, graph_problems
from buda_emu.compiler.ir.text import PLACED, TILE, Ir
from buda_emu.compiler.lower.picker import PickTable
from buda_emu.compiler.lower.tiles import Shape, TileGraph, TileOp, Tm, after
from buda_emu.compiler.place.placement import ROLES, Placed, Placement, Queue
from buda_emu.compiler.target import FIDELITIES
from buda_emu.netlist.fields import LAYOUTS, LOCATIONS, QUEUE_TYPES
from buda_emu.netlist.rules.ops.shapes import Expected, shape_text
from buda_emu.spec.attributes import ATTRIBUTES, AttributeSpec
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker.text import plural

OWN: Final[Mapping[str, type]] = {
    "untilize": bool, "gradient": bool, "strips": tuple, "table": PickTable, "rows": int,
    **dict.fromkeys((f"input{number}" for number in range(8)), tuple),
}  # fmt: skip
"""Attributes of the compiler: the host reads the result, it is added to a ram, strips of each row of cores, the matrix
of an identity matmul and the rows of cores that its operands are made for, turns of a splice."""
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "int": (int, np.integer), "bool": (bool,), "float": (float, int, np.floating), "ints": (tuple, list),
    "word": (str,), "text": (str,),
}  # fmt: skip
_MANY: Final = 9
"""Operands from which on the table means any number."""
TMS: Final = ("transpose", "broadcast", "hslice", "vslice", "hstack", "vstack")


def attribute_problems(op: TileOp) -> Iterator[str]:
    """An unknown op, an attribute that it does not have, a value of another type."""
    if op.type not in OP_TYPES:
        yield f"there is no op type {op.type}"
        return
    for name, value in op.attrs.items():
        spec = ATTRIBUTES.get(name)
        if name in OWN:
            if not isinstance(value, OWN[name]):
                yield f"attribute {name} is no {OWN[name].__name__}"
            elif isinstance(value, PickTable) and not _is_within(value):
                yield f"pairs of its {name} are outside of it"
        elif spec is None or (spec.types is not None and op.type not in spec.types):
            yield f"attribute {name} is not one of {op.type}"
        elif not _has_type(spec, value):
            yield f"attribute {name} of type {spec.kind} cannot be {value!r}"
    if op.inner < 0 or any(min(step.columns, step.across, step.inner) < 0 for step in op.steps):
        yield "a number of tiles is negative"
    for step in op.steps:
        if step.type not in OP_TYPES or not OP_TYPES[step.type].in_fused:
            yield f"step {step.name}: {step.type} is not an op of a fused op"
        for name, value in step.attrs.items():
            if name not in ATTRIBUTES or not _has_type(ATTRIBUTES[name], value):
                yield f"step {step.name}: attribute {name} cannot be {value!r}"


def _is_within(table: PickTable) -> bool:
    """Whether all pairs of tiles are in the result, and of tiles that there are."""
    parts = (table.slice, table.row, table.which, table.inner)
    most = (table.t, table.rows, len(table.tiles), np.iinfo(np.int32).max)
    return len({part.shape for part in parts}) == 1 and all(
        part.dtype.kind == "i" and bool(((part >= 0) & (part < limit)).all())
        for part, limit in zip(parts, most, strict=True)
    )


def _has_type(spec: AttributeSpec, value: Any) -> bool:
    if spec.kind == "int" and isinstance(value, bool):
        return False
    return isinstance(value, _TYPES.get(spec.kind, (object,))) and (not spec.words or value in spec.words)


def operand_problems(tiles: TileGraph, op: TileOp, queues: Mapping[str, str], arch: str) -> Iterator[str]:
    """A wrong number of operands, one that no step reads, a TM that does not divide, an operand that may not be
    transposed, an operand or result of another shape (OPS 2, 7). `queues`: those that may be read, with the ops that
    write them; `arch`: "" where it is not known."""
    if len(op.shape) != 3 or min(op.shape) < 1:
        yield f"shape {list(op.shape)} is not slices, rows and columns of tiles"
        return
    least, most = OP_TYPES[op.type].inputs
    if not least <= len(op.uses) <= most:
        most_said = f" to {most}" if least < most < _MANY else ""
        yield f"{plural(len(op.uses), 'operand')}, it takes {least}{most_said}"
        return
    seen: list[Shape] = []
    read = {name for step in op.steps for name in step.inputs}
    for number, use in enumerate(op.uses):
        if op.steps and f"input{number}" not in read:
            yield f"operand {number}: no step reads it"
            return
        try:
            shape = tiles.shape_of(queues.get(use.source, use.source))
            for tm in use.tms:
                shape = _behind(tm, shape)
        except (ValueError, TypeError) as error:
            yield f"operand {number}: {error}"
            return
        seen.append(shape)
        if ("transpose",) in use.tms and (refusal := OP_TYPES[op.type].transpose_refusal(number, arch)):
            yield f"operand {number}: {refusal}"
            return
    expected = list(_expected(op))
    if expected and len(expected) != len(seen):
        yield f"{plural(len(seen), 'operand')}, it takes {len(expected)}"
        return
    for number, (have, want) in enumerate(zip(seen, expected, strict=False)):
        if any(size not in (None, own) for own, size in zip(have, want, strict=True)):
            yield f"operand {number} is {list(have)} tiles after its TMs, not {shape_text(want)}"


def _behind(tm: Tm, shape: Shape) -> Shape:
    """As `after`. Raises ValueError for a TM that there is not, or that does not divide."""
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


def _expected(op: TileOp) -> Iterator[Expected]:
    """What each operand has to be; none where all is for the op's own rules to say."""
    t, rows, columns = op.shape
    attrs = op.attrs
    family = OP_TYPES[op.type].family
    if family in ("unary", "sfpu"):
        yield op.shape
    elif family in ("binary", "quantization"):
        yield from (op.shape, op.shape)
    elif op.type == "matmul" and attrs.get("identity"):
        yield from ((None, None, None), (None, op.inner, columns), (None, None, None))
        yield from [op.shape] * (len(op.uses) - 3)
    elif op.type == "matmul":
        slices = t * int(attrs.get("z", 1)) if attrs.get("accumulate") else t
        yield from ((slices, rows, op.inner or None), (slices, op.inner or None, columns))
        yield from [op.shape] * _more(op)
    elif op.type == "depthwise":
        yield from ((t, rows, columns * op.inner), (t, op.inner, columns))
        yield from [op.shape] * _more(op)
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


def _more(op: TileOp) -> int:
    """Operands of a product beside its two factors."""
    return bool(op.attrs.get("bias")) + bool(op.attrs.get("dequant"))


MOST: Final = 20
"""Problems that are told of one IR."""


def problems(form: Ir, arch: str = "") -> list[str]:
    """What breaks a rule of its level, the first of them; none where all is well. Without `arch` no rule is asked that
    holds for one architecture alone."""
    found: list[str] = []
    for problem in _problems(form, arch):
        found.append(problem)
        if len(found) == MOST:
            break
    return found


def _problems(form: Ir, arch: str) -> Iterator[str]:
    stage = FRONT if form.level == FRONT else CORE
    broken = False
    for problem in graph_problems(form.graph, stage):
        broken = True
        yield problem
    if not broken:
        yield from declaration_problems(form.graph)
    if form.tiles is not None and form.level in (TILE, PLACED):
        yield from tile_problems(form.tiles, _detours(form), arch)
    if form.placement is not None:
        yield from placed_problems(form.placement)


def _detours(form: Ir) -> dict[str, str]:
    """Queues of a placement in which a branch waits for a longer one, with the ops that write them."""
    if form.placement is None:
        return {}
    return {name: queue.input for name, queue in form.placement.queues.items() if queue.input in form.placement.ops}


def tile_problems(tiles: TileGraph, queues: Mapping[str, str], arch: str) -> Iterator[str]:
    """Of a graph of netlist ops: names, operands, attributes, shapes, formats. `queues` may be operands, too; each
    holds what an op writes."""
    known = {*tiles.inputs, *tiles.constants, *tiles.states, *queues}
    for name, constant in tiles.constants.items():
        if constant.values.ndim != 3 or any(size % 32 or not size for size in constant.values.shape[1:]):
            yield f"constant {name}: {list(constant.values.shape)} are not slices of whole tiles"
            return
    for op in tiles.ops.values():
        missing = [use.source for use in op.uses if use.source not in known]
        if missing:
            yield f"{op.name}: {missing[0]} is not defined before it"
            return
        if op.name in known:
            yield f"{op.name}: there is another tensor of that name"
        known.add(op.name)
        problem = next(attribute_problems(op), None) or next(operand_problems(tiles, op, queues, arch), None)
        if problem is not None:
            yield f"{op.name} = {op.type}: {problem}"
        yield from _format_problems(
            op.name, (op.precision.df, op.precision.acc_df, *op.precision.reads), op.precision.fidelity
        )
    for output in (*tiles.outputs.values(), *tiles.stores.values()):
        if output.op not in tiles.ops:
            yield f"{output.op}: an output or state is to be written by it, and there is no such op"
    for store in tiles.stores.values():
        if store.queue not in tiles.states:
            yield f"store {store.queue}: there is no such state"


def _format_problems(name: str, formats: tuple[str, ...], fidelity: str = "") -> Iterator[str]:
    for df in formats:
        if df and df not in FORMATS:
            yield f"{name}: there is no format {df}"
    if fidelity and fidelity not in FIDELITIES:
        yield f"{name}: there is no fidelity {fidelity}"


def placed_problems(placement: Placement) -> Iterator[str]:
    """Of a placement: divisions, cores, epochs, queues."""
    if placement.ops.keys() != placement.tiles.ops.keys():
        yield "other ops are placed than there are"
        return
    for name, placed in placement.ops.items():
        yield from _division_problems(placement, placed)
        for use in placed.op.uses:
            source = placement.ops.get(use.source)
            if source is not None and source.epoch > placed.epoch:
                yield f"{name}: {use.source}, which it reads, runs in a later epoch"
    yield from _overlaps(placement)
    for name, queue in placement.queues.items():
        problem = next(_queue_problems(placement, queue), None)
        if problem is not None:
            yield f"queue {name}: {problem}"
    yield from _unheld_constants(placement)
    queues: Mapping[Any, str] = {**placement.between, **placement.held_as}
    for name in queues.values():
        if name not in placement.queues:
            yield f"there is no queue {name}"


def _unheld_constants(placement: Placement) -> Iterator[str]:
    """Constants that an op reads, and no queue holds for it."""
    for name, placed in placement.ops.items():
        for use in placed.op.uses:
            held = (name, use.source) in placement.held_as or use.source in placement.between
            if use.source in placement.tiles.constants and not held:
                yield f"{name}: no line `held {use.source} of {name} = QUEUE` says from which queue it reads"


def _queue_problems(placement: Placement, queue: Queue) -> Iterator[str]:
    if queue.df not in FORMATS:
        yield f"there is no format {queue.df}"
    if len(queue.addresses) != prod(queue.blocks.grid):
        yield f"{plural(len(queue.addresses), 'address')} for a grid of {list(queue.blocks.grid)}"
    channels = placement.target.arch.dram_channels if queue.loc == "dram" else placement.target.arch.host_channels
    if any(not 0 <= channel < channels or address < 0 for channel, address in queue.addresses):
        yield f"an address that is not in {plural(channels, 'channel')} of {queue.loc}"
    if queue.loc not in LOCATIONS or queue.type not in QUEUE_TYPES or queue.layout not in LAYOUTS:
        yield f"there is no {queue.type} of layout {queue.layout} in {queue.loc}"
    if queue.role not in ROLES:
        yield f"there is no role {queue.role}: {', '.join(ROLES)}"
    if queue.entries < 1:
        yield f"{queue.entries} entries"
    if queue.input != "HOST" and queue.input not in placement.ops:
        yield f"there is no op {queue.input}"
    if queue.alias and queue.alias not in placement.queues:
        yield f"there is no queue {queue.alias}"


def _division_problems(placement: Placement, placed: Placed) -> Iterator[str]:
    blocks = placed.blocks
    (t, rows, columns) = placed.op.shape
    have = (blocks.t, *(a * b * c for a, b, c in zip(blocks.grid, blocks.mblock, blocks.ublock, strict=True)))
    if have != (t, rows, columns):
        yield f"{placed.op.name}: its blocks are {list(have)} tiles, its result {[t, rows, columns]}"
    top, left, bottom, right = _rectangle(placed)
    height, width = placement.target.arch.grid
    if top < 0 or left < 0 or bottom > height or right > width or placed.chip < 0 or placed.epoch < 0:
        yield f"{placed.op.name}: cores {[top, left]} to {[bottom - 1, right - 1]}, the chip has {height}x{width}"


def _rectangle(placed: Placed) -> tuple[int, int, int, int]:
    rows, columns = reversed(placed.blocks.grid) if placed.grid_transpose else placed.blocks.grid
    return (*placed.at, placed.at[0] + rows, placed.at[1] + columns)


def _overlaps(placement: Placement) -> Iterator[str]:
    for graph in placement.graphs():
        mine = [(name, _rectangle(placed)) for name, placed in placement.ops.items() if placed.graph == graph]
        for (name, one), (other, two) in combinations(mine, 2):
            if one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]:
                yield f"{name} and {other} share cores"
