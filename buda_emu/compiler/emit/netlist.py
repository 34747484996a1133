"""A placed graph as a netlist, and as its text."""

from collections.abc import Mapping
from typing import Any, Final

from buda_emu.compiler.emit.programs import graph_names, programs
from buda_emu.compiler.lower.schedule import schedules
from buda_emu.compiler.lower.tiles import SubOp as TileSubOp
from buda_emu.compiler.lower.tiles import TileOp
from buda_emu.compiler.lower.tiles import Tm as TileTm
from buda_emu.compiler.place.blocks import Blocks, step_blocks
from buda_emu.compiler.place.placement import GraphPlace, Placed, Placement
from buda_emu.compiler.place.placement import Queue as PlacedQueue
from buda_emu.compiler.target import Target
from buda_emu.netlist.build import build
from buda_emu.netlist.fields import OWN_SECTION, UNDEFINED, UNDEFINED_IS_NAN
from buda_emu.netlist.model import Buffer, FusedOp, Graph, Netlist, Op, Pad, Queue, SubOp, Tm
from buda_emu.netlist.nodes import words
from buda_emu.netlist.printer import Notes
from buda_emu.netlist.printer import netlist_text as printed
from buda_emu.netlist.reader import Document
from buda_emu.spec.attributes import ATTRIBUTES, Attributes
from buda_emu.spec.blocking import Blocking

_SECTIONS: Final = {
    "input": "pushed by the host", "constant": "parameters and constants", "state": "kept from run to run",
    "between": "between epochs", "fork": "on short branches parallel to long ones", "output": "read by the host",
}  # fmt: skip
"""Roles of queues in the order in which they stand."""


def netlist_of(placement: Placement, path: str) -> Netlist:
    """The netlist that `load` reads from the text, without the text. `path`: the name that it has in messages."""
    return build(_document(placement, path))


def netlist_text(placement: Placement, title: str) -> str:
    """The whole document, with the nodes of the model that each op stands for."""
    roles = {queue.name: _SECTIONS[queue.role] for queue in placement.queues.values()}
    sources = {name: placed.op.sources for name, placed in placement.ops.items()}
    return printed(netlist_of(placement, placement.target.arch.name), Notes(title, roles, sources))


def _document(placement: Placement, path: str) -> Document:
    """What the reader makes of the text, before copies are made and anything is derived."""
    arch = placement.target.arch.name
    found = Document(path, arch, (arch,))
    for role in _SECTIONS:
        for queue in placement.queues.values():
            if queue.role == role:
                found.queues[queue.name] = _queue(placement, queue)
    for name in found.queues if placement.instances else ():
        found.queue_devices[name] = placement.instances
    inputs = {graph: placement.count(program) for program, graphs in placement.programs.items() for graph in graphs}
    for graph, name in graph_names(placement).items():
        found.graphs[name] = _graph(placement, graph, name, inputs[graph])
        if placement.instances:
            found.graph_devices[name] = placement.instances
    found.fused_ops = {name: _fused(placed) for name, placed in placement.ops.items() if placed.op.steps}
    found.programs = {program.name: program for program in programs(placement)}
    found.program_order = list(found.programs)
    if placement.tiles.undefined_is_nan:
        found.sections[OWN_SECTION] = words({UNDEFINED: UNDEFINED_IS_NAN})
    return found


def _device(placement: Placement, chip: int) -> int:
    """Of a queue or graph; of one with copies the reader knows none before they are made (NETLIST 1.7)."""
    return -1 if placement.instances else placement.device(chip)


def _blocking(blocks: Blocks) -> Blocking:
    return Blocking(grid_size=blocks.grid, t=blocks.t, mblock=blocks.mblock, ublock=blocks.ublock, ublock_order="r")


def _queue(placement: Placement, queue: PlacedQueue) -> Queue:
    return Queue(
        name=queue.name,
        written_name=queue.name,
        input=queue.input,
        type=queue.type,
        entries=queue.entries,
        blocking=_blocking(queue.blocks),
        df=queue.df,
        target_device=_device(placement, queue.chip),
        loc=queue.loc,
        alias=queue.alias,
        layout=queue.layout,
        buffers=tuple(Buffer(channel, address) for channel, address in queue.addresses),
    )


def _graph(placement: Placement, graph: GraphPlace, name: str, inputs: int) -> Graph:
    device = _device(placement, graph.chip)
    ops = [_op(placement, placed, name, device) for placed in placement.ops.values() if placed.graph == graph]
    return Graph(name=name, target_device=device, input_count=inputs, ops=tuple(ops))


def _op(placement: Placement, placed: Placed, graph: str, device: int) -> Op:
    op = placed.op
    target = placement.target.of(placed.op.precision)
    sources = tuple(placement.source(use.source, placed) for use in op.uses)
    formats = tuple(
        placement.queues[name].df if name in placement.queues else _out_df(placement, name) for name in sources
    )
    own = _out_df(placement, op.name)
    buffers = tuple(use.buffer for use in op.uses)  # of a short branch beside a long one (place/fork_join.py)
    return Op(
        name=op.name,
        written_name=op.name,
        graph=graph,
        type=op.type,
        target_device=device,
        grid_loc=placed.at,
        blocking=_blocking(placed.blocks),
        inputs=sources,
        in_df=formats,
        out_df=own,
        intermed_df=_intermediate(target, op, own),
        acc_df=target.acc_df,
        math_fidelity=_fidelity(target, op, formats),
        untilize_output=bool(op.attrs.get("untilize")),
        gradient_op=bool(op.attrs.get("gradient")),
        grid_transpose=placed.grid_transpose,
        buf_size_mb=placed.blocks.buf_size_mb,
        input_buf_min_size_tiles=buffers if any(buffers) else (),
        input_tms=tuple(tuple(map(_tm, use.tms)) for use in op.uses),
        input_unpad=(Pad(),) * len(sources),
        input_pad=(Pad(),) * len(sources),
        attributes=_attributes(_written(placed)),
    )


def _written(placed: Placed) -> dict[str, Any]:
    """What the attributes map of an op says: of what it is, and of how it is divided."""
    op = placed.op
    blocks = placed.blocks
    found = dict(op.attrs)
    if blocks.m_k:
        found |= {"m_k": blocks.m_k, "u_kt": blocks.u_kt}
    if op.steps:
        found["fused_op_id"] = op.name
    if "strips" in op.attrs:
        found["num_nz_strips"] = tuple(strips for strips in op.attrs["strips"] for _ in range(blocks.grid[1]))
    return found


def _single(value: Any) -> float:
    """In the nine digits that a number of single precision needs, as it is written."""
    return float(f"{value:.9g}")


_KINDS: Final[Mapping[str, Any]] = {"int": int, "bool": bool, "float": _single, "ints": tuple}


def _attributes(written: Mapping[str, Any]) -> Attributes:
    """Of what an op carries that which the netlist language has; the rest says how the op is made."""
    values = {
        name: _KINDS.get(ATTRIBUTES[name].kind, str)(value)
        for name, value in written.items()
        if name in ATTRIBUTES and name != "inputs"
    }
    turns = {int(name[5:]): tuple(turn) for name, turn in written.items() if name[:5] == "input" and name[5:].isdigit()}
    if turns:
        values["inputs"] = tuple(sorted(turns.items()))
    return Attributes(given=frozenset(values), **values) if values else _NO_ATTRIBUTES


_NO_ATTRIBUTES: Final = Attributes()


def _fused(placed: Placed) -> FusedOp:
    """Block by block, as far as a schedule goes (OPS 8)."""
    op = placed.op
    written = tuple(tuple(_step(placed, step) for step in schedule) for schedule in schedules(op.steps))
    return FusedOp(id=op.name, inputs=len(op.uses), intermediates=op.intermediates, schedules=written)


def _step(placed: Placed, step: TileSubOp) -> SubOp:
    blocks = step_blocks(placed.op, placed.blocks, step)
    inner = {"m_k": blocks.m_k, "u_kt": blocks.u_kt} if step.inner else {}
    return SubOp(
        name=step.name,
        type=step.type,
        inputs=step.inputs,
        output=step.output,
        mblock=blocks.mblock,
        ublock=blocks.ublock,
        pop=step.pop,
        input_tms=_tms(step),
        attributes=_attributes(step.attrs | inner),
    )


def _tms(step: TileSubOp) -> tuple[tuple[Tm, ...], ...]:
    """Of each input of a sub-op."""
    spread = (Tm("broadcast", ("c", step.across)),) if step.across else ()
    spread += (Tm("tile_broadcast", (step.spread,)),) if step.spread else ()
    return tuple(spread if place == 1 else () for place in range(len(step.inputs)))


def _intermediate(target: Target, op: TileOp, own: str) -> str:
    """Partial sums of products and what stands between sub-ops; else what the op writes (FRONTEND 3.5)."""
    if target.acc_df == "Int32":
        return "Int32"  # V102
    summed = op.type in ("matmul", "fused_op") and not op.attrs.get("identity")
    return target.intermed_df if summed and own != "Float32" else own


def _out_df(placement: Placement, name: str) -> str:
    op = placement.ops[name].op
    target = placement.target.of(op.precision)
    return target.output_df if op.attrs.get("untilize") else target.activation_df


def _fidelity(target: Target, op: TileOp, formats: tuple[str, ...]) -> str:
    if op.attrs.get("identity") and formats[0].startswith("Bfp2"):
        return "HiFi2" if target.fidelity != "LoFi" else "LoFi"  # FRONTEND 3.5
    return target.fidelity


def _tm(tm: TileTm) -> Tm:
    return Tm(tm[0], tm[1:])
