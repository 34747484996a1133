"""Conversion of a placed graph to a netlist, and to its text."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from buda_emu.compiler.emit.programs import graph_names, programs
from buda_emu.compiler.lower.schedule import schedules
from buda_emu.compiler.lower.tiles import SubOp as TileSubOp
from buda_emu.compiler.lower.tiles import TileOp
from buda_emu.compiler.lower.tiles import Tm as TileTm
from buda_emu.compiler.place.blocks import Blocks, step_blocks
from buda_emu.compiler.place.placement import GraphPlace, PlacedOp, Placement
from buda_emu.compiler.place.placement import Queue as PlacedQueue
from buda_emu.compiler.target import Target
from buda_emu.netlist.build import build
from buda_emu.netlist.fields import BOARD, EFFORT, LOW_EFFORT, OWN_SECTION, UNDEFINED, UNDEFINED_IS_NAN
from buda_emu.netlist.model import Buffer, FusedOp, Graph, Netlist, Op, Pad, Queue, SubOp, Tm
from buda_emu.netlist.nodes import words
from buda_emu.netlist.printer import Notes
from buda_emu.netlist.printer import netlist_text as print_netlist
from buda_emu.netlist.reader import WrittenNetlist
from buda_emu.spec.attributes import ATTRIBUTES, Attributes
from buda_emu.spec.blocking import Blocking
from buda_emu.spec.boards import single_board

_SECTIONS: Final = {
    "input": "pushed by the host", "constant": "parameters and constants", "state": "kept from run to run",
    "between": "between epochs", "fork": "on short branches parallel to long ones", "output": "read by the host",
}  # fmt: skip
"""Comments on the roles of queues, in the order of their sections."""


def netlist_of(placement: Placement, path: str) -> Netlist:
    """Build the netlist of a placement: the one that `load` would read from its text. `path`: the name of the netlist
    in messages."""
    return build(_written_netlist(placement, path))


def netlist_text(placement: Placement, title: str) -> str:
    """Return the whole netlist as text, with the nodes of the model that each op stands for in comments."""
    roles = {queue.name: _SECTIONS[queue.role] for queue in placement.queues.values()}
    sources = {name: placed.op.sources for name, placed in placement.ops.items()}
    return print_netlist(netlist_of(placement, placement.target.arch.name), Notes(title, roles, sources))


def _queues_by_role(placement: Placement) -> Iterator[PlacedQueue]:
    """Yield all queues of a placement grouped by their role, in the order in which the netlist lists them: inputs,
    constants, states, queues between epochs, on short branches, outputs."""
    for role in _SECTIONS:
        for queue in placement.queues.values():
            if queue.role == role:
                yield queue


def _written_netlist(placement: Placement, path: str) -> WrittenNetlist:
    """Return the netlist as its reader would have it after parsing the text, before it makes copies and derives
    anything."""
    arch = placement.target.arch.name
    document = WrittenNetlist(path, arch, (arch,))
    for queue in _queues_by_role(placement):
        document.queues[queue.name] = _netlist_queue(placement, queue)
        if placement.instances:
            document.queue_devices[queue.name] = placement.instances
    inputs: dict[GraphPlace, int] = {}
    for program, graphs in placement.programs.items():
        inputs |= dict.fromkeys(graphs, placement.count(program))
    ops_by_graph = placement.ops_by_graph()
    for graph, name in graph_names(placement).items():
        device = _device_number(placement, graph.chip)
        ops = [_netlist_op(placement, placed, name, device) for placed in ops_by_graph[graph]]
        document.graphs[name] = Graph(name=name, target_device=device, input_count=inputs[graph], ops=tuple(ops))
        if placement.instances:
            document.graph_devices[name] = placement.instances
    document.fused_ops = {name: _netlist_fused_op(placed) for name, placed in placement.ops.items() if placed.op.steps}
    document.programs = {program.name: program for program in programs(placement)}
    document.program_order = list(document.programs)
    settings = _own_settings(placement)
    if settings:
        document.sections[OWN_SECTION] = words(settings)
    return document


def _own_settings(placement: Placement) -> dict[str, str]:
    """Return the settings of the netlist's section `buda-emu`, by name; empty where the defaults say the same."""
    words: dict[str, str] = {}
    if placement.tiles.undefined_is_nan:
        words[UNDEFINED] = UNDEFINED_IS_NAN
    if placement.record.effort == LOW_EFFORT:
        words[EFFORT] = LOW_EFFORT
    if placement.target.board:
        words[BOARD] = single_board(placement.target.board)
    return words


def _device_number(placement: Placement, chip: int) -> int:
    """Return the number in the netlist of the device that is chip `chip` of the placement; -1 for a model with copies,
    whose devices follow when the reader makes the copies (NETLIST 1.7)."""
    if placement.instances:
        return -1
    return placement.device(chip)


def _netlist_blocking(blocks: Blocks) -> Blocking:
    """Return the fields of a netlist op or queue that say how it is divided into blocks."""
    return Blocking(grid_size=blocks.grid, t=blocks.t, mblock=blocks.mblock, ublock=blocks.ublock, ublock_order="r")


def _netlist_queue(placement: Placement, queue: PlacedQueue) -> Queue:
    """Return the netlist's queue for a placed one."""
    return Queue(
        name=queue.name,
        written_name=queue.name,
        input=queue.input,
        type=queue.type,
        entries=queue.entries,
        blocking=_netlist_blocking(queue.blocks),
        df=queue.df,
        target_device=_device_number(placement, queue.chip),
        loc=queue.loc,
        alias=queue.alias,
        layout=queue.layout,
        buffers=tuple(Buffer(channel, address) for channel, address in queue.addresses),
    )


def _netlist_op(placement: Placement, placed: PlacedOp, graph: str, device: int) -> Op:
    """Return the netlist's op for an op on its cores. Each operand has the format of the queue or op that it comes
    from. `graph`: the name of its graph in the netlist; `device`: the number of the graph's device."""
    op = placed.op
    target = placement.target.of(placed.op.precision)
    sources = tuple(placement.source(use.source, placed) for use in op.uses)
    formats = tuple(
        placement.queues[name].df if name in placement.queues else _output_format(placement, name) for name in sources
    )
    out_df = _output_format(placement, op.name)
    buffers = tuple(use.buffer for use in op.uses)  # of a short branch beside a long one (place/operand_room.py)
    return Op(
        name=op.name,
        written_name=op.name,
        graph=graph,
        type=op.type,
        target_device=device,
        grid_loc=placed.at,
        blocking=_netlist_blocking(placed.blocks),
        inputs=sources,
        in_df=formats,
        out_df=out_df,
        intermed_df=_intermediate_format(target, op, out_df),
        acc_df=target.acc_df,
        math_fidelity=_op_fidelity(target, op, formats),
        untilize_output=bool(op.attrs.get("untilize")),
        gradient_op=bool(op.attrs.get("gradient")),
        grid_transpose=placed.grid_transpose,
        buf_size_mb=placed.blocks.buf_size_mb,
        input_buf_min_size_tiles=buffers if any(buffers) else (),
        input_tms=tuple(tuple(map(_netlist_tm, use.tms)) for use in op.uses),
        input_unpad=(Pad(),) * len(sources),
        input_pad=(Pad(),) * len(sources),
        attributes=_netlist_attributes(_attribute_values(placed)),
    )


def _attribute_values(placed: PlacedOp) -> dict[str, Any]:
    """Return the attributes of an op on its cores by name: those of the op, also such as only the compiler has, and
    those that follow from its division into blocks."""
    op = placed.op
    blocks = placed.blocks
    values = dict(op.attrs)
    if blocks.m_k:
        values |= {"m_k": blocks.m_k, "u_kt": blocks.u_kt}
    if op.steps:
        values["fused_op_id"] = op.name
    if "strips" in op.attrs:
        values["num_nz_strips"] = tuple(strips for strips in op.attrs["strips"] for _ in range(blocks.grid[1]))
    return values


def _round_to_single(value: Any) -> float:
    """Return a number rounded to nine significant digits, which identify a number of single precision and keep the text
    short."""
    return float(f"{value:.9g}")


_KINDS: Final[Mapping[str, Any]] = {"int": int, "bool": bool, "float": _round_to_single, "ints": tuple}


def _netlist_attributes(entries: Mapping[str, Any]) -> Attributes:
    """Return those of the attributes that the netlist language has, as it has them; other entries only say how the
    compiler treats the op."""
    values = {
        name: _KINDS.get(ATTRIBUTES[name].kind, str)(value)
        for name, value in entries.items()
        if name in ATTRIBUTES and name != "inputs"
    }
    slices = {
        int(name[5:]): tuple(tensor) for name, tensor in entries.items() if name[:5] == "input" and name[5:].isdigit()
    }
    if slices:
        values["inputs"] = tuple(sorted(slices.items()))
    if values:
        return Attributes(given=frozenset(values), **values)
    return _NO_ATTRIBUTES


_NO_ATTRIBUTES: Final = Attributes()


def _netlist_fused_op(placed: PlacedOp) -> FusedOp:
    """Return the netlist's record of a fused op: its schedules, each of which runs block by block (OPS 8)."""
    op = placed.op
    written = tuple(tuple(_netlist_sub_op(placed, step) for step in schedule) for schedule in schedules(op.steps))
    return FusedOp(id=op.name, inputs=len(op.uses), intermediates=op.intermediates, schedules=written)


def _netlist_sub_op(placed: PlacedOp, step: TileSubOp) -> SubOp:
    """Return the netlist's sub-op for one step of a fused op."""
    blocks = step_blocks(placed.op, placed.blocks, step)
    if step.inner:
        inner = {"m_k": blocks.m_k, "u_kt": blocks.u_kt}
    else:
        inner = {}
    return SubOp(
        name=step.name,
        type=step.type,
        inputs=step.inputs,
        output=step.output,
        mblock=blocks.mblock,
        ublock=blocks.ublock,
        pop=step.pop,
        input_tms=_step_tms(step),
        attributes=_netlist_attributes(step.attrs | inner),
    )


def _step_tms(step: TileSubOp) -> tuple[tuple[Tm, ...], ...]:
    """Return the TMs of each input of a step of a fused op: those that repeat the one column of its second input, none
    for other inputs."""
    if step.across:
        spread = (Tm("broadcast", ("c", step.across)),)
    else:
        spread = ()
    spread += (Tm("tile_broadcast", (step.spread,)),) if step.spread else ()
    return tuple(spread if place == 1 else () for place in range(len(step.inputs)))


def _intermediate_format(target: Target, op: TileOp, out_df: str) -> str:
    """Return the format of partial sums and of values between sub-ops; for other ops the one that the op writes
    (FRONTEND 3.5)."""
    if target.acc_df == "Int32":
        return "Int32"  # V102
    summed = op.type in ("matmul", "fused_op") and not op.attrs.get("identity")
    if summed and out_df != "Float32":
        return target.intermed_df
    return out_df


def _output_format(placement: Placement, name: str) -> str:
    """Return the format that the op `name` writes: no block format if the host reads it, else that of the op's
    activations."""
    op = placement.ops[name].op
    target = placement.target.of(op.precision)
    if op.attrs.get("untilize"):
        return target.output_df
    return target.activation_df


def _op_fidelity(target: Target, op: TileOp, formats: tuple[str, ...]) -> str:
    """Return the fidelity of an op; an identity matmul with a Bfp2 encoding takes at most HiFi2."""
    if op.attrs.get("identity") and formats[0].startswith("Bfp2"):
        return "HiFi2" if target.fidelity != "LoFi" else "LoFi"  # FRONTEND 3.5
    return target.fidelity


def _netlist_tm(tm: TileTm) -> Tm:
    """Return the netlist's TM for a name with its arguments."""
    return Tm(tm[0], tm[1:])
