"""A placed graph as the text of a netlist."""

from collections.abc import Iterator
from typing import Any

from buda_emu.compiler.emit.programs import graph_names, programs_text
from buda_emu.compiler.emit.yaml_text import comment, flow
from buda_emu.compiler.lower.tiles import TileOp, Tm
from buda_emu.compiler.place.blocks import Blocks
from buda_emu.compiler.place.placement import Placed, Placement, Queue
from buda_emu.compiler.target import Target

_ATTRIBUTES = {
    "exp", "slope", "relu_en", "relu_threshold", "relu_mode", "dim", "type", "z", "num_indices", "identity", "bias",
    "num_sparse_tiles", "num_index_tiles", "sparse_tile_ptr_bits", "sparse_ublock_idx_bits", "fracture_factor", "act_t",
    "sfpu_op", "indices_len", "dequant", "zero_point", "granularity", *(f"input{number}" for number in range(8)),
}  # fmt: skip
"""Of an op's attributes those that the netlist language has; the others say how it is made."""
_SECTIONS = {
    "input": "pushed by the host", "constant": "parameters and constants", "state": "kept from run to run",
    "between": "between epochs", "fork": "on short branches beside long ones", "output": "read by the host",
}  # fmt: skip


def netlist_text(placement: Placement, title: str) -> str:
    """The whole document."""
    return "\n".join(_lines(placement, title)) + "\n"


def _lines(placement: Placement, title: str) -> Iterator[str]:
    yield from comment(title)
    yield ""
    yield "devices:"
    yield f"  arch: {placement.target.arch.name}"
    yield ""
    yield "queues:"
    for role, heading in _SECTIONS.items():
        mine = [queue for queue in placement.queues.values() if queue.role == role]
        if mine:
            yield ""
            yield f"  # {heading}"
        for queue in mine:
            yield f"  {queue.name}: {flow(_queue(queue, _chips(placement, queue.chip)))}"
    yield ""
    yield "graphs:"
    inputs = {graph: placement.count(program) for program, graphs in placement.programs.items() for graph in graphs}
    for graph, name in graph_names(placement).items():
        yield f"  {name}:"
        yield f"    target_device: {flow(_chips(placement, graph.chip))}"
        yield f"    input_count: {inputs[graph]}"
        source = None
        for placed in placement.ops.values():
            if placed.graph == graph:
                if placed.op.sources != source:
                    source = placed.op.sources
                    yield from comment(", ".join(dict.fromkeys(source)), indent=4)
                yield f"    {placed.op.name}: {flow(_op(placement, placed))}"
    fused = [placed for placed in placement.ops.values() if placed.op.steps]
    if fused:
        yield ""
        yield "fused_ops:"
        for placed in fused:
            yield from _fused(placed)
    yield ""
    yield "programs:"
    yield from programs_text(placement)


def _fused(placed: Placed) -> Iterator[str]:
    """One schedule: block by block, all of it (OPS 8)."""
    op, blocks = placed.op, placed.blocks
    yield f"  {op.name}:"
    yield f"    inputs: {len(op.uses)}"
    yield f"    intermediates: {op.intermediates}"
    yield "    schedules:"
    for number, step in enumerate(op.steps):
        fields: dict[str, Any] = {
            "type": step.type, "inputs": step.inputs, "mblock": blocks.mblock, "ublock": blocks.ublock,
            "output": step.output,
        }  # fmt: skip
        if step.pop:
            fields["pop"] = step.pop
        if step.attrs:
            fields["attributes"] = step.attrs
        yield f"    {'- ' if number == 0 else '  '}- {step.name}: {flow(fields)}"


def _chips(placement: Placement, chip: int) -> int | tuple[int, ...]:
    """Where a graph or queue is: on one chip, or on those of all copies (NETLIST 1.7)."""
    return placement.instances or placement.device(chip)


def _blocking(blocks: Blocks) -> dict[str, Any]:
    return {"t": blocks.t, "mblock": blocks.mblock, "ublock": blocks.ublock}


def _queue(queue: Queue, device: int | tuple[int, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "input": queue.input, "type": queue.type, "entries": queue.entries, "grid_size": queue.blocks.grid,
        **_blocking(queue.blocks), "ublock_order": "r", "df": queue.df, "target_device": device, "loc": queue.loc,
    }  # fmt: skip
    if queue.alias:
        fields["alias"] = queue.alias
    if queue.layout != "tilized":
        fields["layout"] = queue.layout
    fields[queue.loc] = [[channel, f"{address:#x}"] for channel, address in queue.addresses]
    return fields


def _op(placement: Placement, placed: Placed) -> dict[str, Any]:
    op, blocks, target = placed.op, placed.blocks, placement.target.of(placed.op.precision)
    sources = [placement.source(use.source, placed) for use in op.uses]
    formats = [placement.queues[name].df if name in placement.queues else _out_df(placement, name) for name in sources]
    own = _out_df(placement, op.name)
    fields: dict[str, Any] = {
        "type": op.type, "grid_loc": placed.at, "grid_size": blocks.grid, "inputs": sources, "in_df": formats,
        "out_df": own, "intermed_df": _intermediate(target, op, own),
        "acc_df": target.acc_df, "math_fidelity": _fidelity(target, op, formats), **_blocking(blocks),
        "buf_size_mb": blocks.buf_size_mb, "ublock_order": "r",
    }  # fmt: skip
    if op.attrs.get("untilize"):
        fields["untilize_output"] = True
    if placed.turned:
        fields["grid_transpose"] = True
    if op.attrs.get("gradient"):
        fields["gradient_op"] = True
    if any(use.buffer for use in op.uses):  # a short branch beside a long one (place/fork_join.py)
        fields["input_buf_min_size_tiles"] = [use.buffer for use in op.uses]
    for number, use in enumerate(op.uses):
        if use.tms:
            fields[f"input_{number}_tms"] = [_tm(tm) for tm in use.tms]
    attributes = {key: item for key, item in op.attrs.items() if key in _ATTRIBUTES}
    if blocks.m_k:
        attributes |= {"m_k": blocks.m_k, "u_kt": blocks.u_kt}
    if op.steps:
        attributes["fused_op_id"] = op.name
    if "strips" in op.attrs:
        attributes["num_nz_strips"] = [strips for strips in op.attrs["strips"] for _ in range(blocks.grid[1])]
    if attributes:
        fields["attributes"] = attributes
    return fields


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


def _fidelity(target: Target, op: TileOp, formats: list[str]) -> str:
    if op.attrs.get("identity") and formats[0].startswith("Bfp2"):
        return "HiFi2" if target.fidelity != "LoFi" else "LoFi"  # FRONTEND 3.5
    return target.fidelity


def _tm(tm: Tm) -> Any:
    if len(tm) == 1:
        return tm[0]
    return {tm[0]: {tm[1]: tm[2]} if len(tm) == 3 else tm[1]}
