"""The invariants of an IR at each level. A verifier names the op and the rule that it breaks."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import prod
from typing import Any, Final

from buda_emu.checker.text import plural
from buda_emu.compiler.graph.spec import CORE, FRONT, declared_problems, graph_problems
from buda_emu.compiler.ir.text import PLACED, TILE, Ir
from buda_emu.compiler.ir.tile_rules import attribute_problems, operand_problems
from buda_emu.compiler.lower.tiles import TileGraph
from buda_emu.compiler.place.placement import ROLES, Placed, Placement, Queue
from buda_emu.compiler.target import FIDELITIES
from buda_emu.netlist.fields import LAYOUTS, LOCATIONS, QUEUE_TYPES
from buda_emu.spec.formats import FORMATS

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
        yield from declared_problems(form.graph)
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
    blocks, (t, rows, columns) = placed.blocks, placed.op.shape
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
