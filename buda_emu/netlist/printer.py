"""A netlist as text: what `load` reads, it gives an equal netlist for (NETLIST 1 to 4).

Fields stand in one order, each object on a line. What has its default is left out where a netlist may leave it out.
"""

from collections.abc import Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any, Final

from buda_emu.netlist.model import (
    Allocate,
    Deallocate,
    Declare,
    EndLoop,
    Execute,
    FusedOp,
    Graph,
    Instruction,
    Loop,
    Netlist,
    Op,
    Pad,
    Param,
    Program,
    Queue,
    QueueSettings,
    SubOp,
    Tm,
    VarInst,
)
from buda_emu.netlist.yaml_text import Pairs, Plain, block, comment, flow, word
from buda_emu.spec.attributes import ATTRIBUTES, Attributes
from buda_emu.spec.blocking import FULL_TILE, Blocking
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from buda_emu.netlist.reader import Document

_FIRST: Final = (
    "identity", "num_sparse_tiles", "num_index_tiles", "sparse_tile_ptr_bits", "sparse_ublock_idx_bits",
    "fracture_factor", "act_t", "indices_len", "granularity", "inputs", "accumulate", "dim", "type", "z", "bias",
    "dequant", "zero_point", "sfpu_op", "relu_en", "relu_threshold", "relu_mode",
)  # fmt: skip
_LAST: Final = ("m_k", "u_kt", "fused_op_id", "num_nz_strips")
ORDER: Final = (*_FIRST, *(name for name in ATTRIBUTES if name not in (*_FIRST, *_LAST)), *_LAST)
"""Of attributes: what an op computes, and then how it is divided. `z` is only read after `dim` or `accumulate`."""
_NO_PAD: Final = Pad()


@dataclass(frozen=True, slots=True)
class Notes:
    """Comments: a `title` above all, `queues` a heading for each queue, `ops` names of what each op was made of; equal
    ones that follow each other are written once."""

    title: str
    queues: Mapping[str, str]
    ops: Mapping[str, tuple[str, ...]]


def netlist_text(netlist: Netlist, notes: Notes | None = None) -> str:
    """The whole document, for all the architectures that the netlist is for."""
    from buda_emu.netlist.build import contracted  # it reads and checks; a run prints single instructions alone

    return document_text(contracted(netlist), notes)


def document_text(document: "Document", notes: Notes | None = None) -> str:
    """The same for what stands in a document, before copies for several chips are made."""
    return "\n".join(_document(document, notes)) + "\n"


def program_lines(netlist: Netlist, name: str) -> list[str]:
    """One program as `netlist_text` writes it."""
    return "\n".join(_program(netlist.programs[name], _viewed(netlist.queues))).split("\n")


def _viewed(queues: Mapping[str, Queue]) -> set[str]:
    """Names of rams that there are two views of."""
    aliased = {queue.alias for queue in queues.values()}
    return {name for name, queue in queues.items() if queue.alias or name in aliased}


def _document(document: "Document", notes: Notes | None) -> Iterator[str]:
    gap = [""] if notes is not None else []
    if notes is not None:
        yield from (*comment(notes.title), "")
    yield "devices:"
    archs = document.archs
    yield f"  arch: {archs[0] if len(archs) == 1 else flow(archs)}"
    yield from (*gap, "queues:")
    yield from _queues(document, notes.queues if notes is not None else {})
    yield from (*gap, "graphs:")
    for graph in document.graphs.values():
        yield from _graph(graph, document.graph_devices.get(graph.name), notes.ops if notes is not None else {})
    if document.fused_ops:
        yield from (*gap, "fused_ops:")
        for fused in document.fused_ops.values():
            yield from _fused(fused)
    yield from (*gap, "programs:")
    viewed = _viewed(document.queues)
    for name in document.program_order:
        yield from _program(document.programs[name], viewed)
    for name, node in document.sections.items():
        yield from (*gap, f"{word(name)}:", *block(node, 2))


def _queues(document: "Document", headings: Mapping[str, str]) -> Iterator[str]:
    before = ""
    for queue in document.queues.values():
        heading = headings.get(queue.name, "")
        if heading != before:
            yield ""
            yield f"  # {heading}"
            before = heading
        yield f"  {word(queue.name)}: {flow(_queue(queue, document.queue_devices.get(queue.name)))}"


def _blocking(blocking: Blocking) -> dict[str, Any]:
    return {"t": blocking.t, "mblock": blocking.mblock, "ublock": blocking.ublock}


def _if(**fields: Any) -> dict[str, Any]:
    """Those that say something."""
    return {name: value for name, value in fields.items() if value}


def _queue(queue: Queue, devices: tuple[int, ...] | None) -> dict[str, Any]:
    blocking = queue.blocking
    return {
        "input": queue.input,
        **_if(input_tms=_tms(queue.input_tms)),
        "type": queue.type,
        "entries": queue.entries,
        "grid_size": blocking.grid_size,
        **_blocking(blocking),
        "ublock_order": blocking.ublock_order,
        **_tile_dim(blocking),
        "df": queue.df,
        "target_device": queue.target_device if devices is None else devices,
        "loc": queue.loc,
        **_if(alias=queue.alias),
        **({} if queue.layout == "tilized" else {"layout": queue.layout}),
        **_if(read_ports=queue.read_ports, write_ports=queue.write_ports),
        queue.loc: [(buffer.channel, Plain(f"{buffer.address:#x}")) for buffer in queue.buffers],
    }


def _tile_dim(blocking: Blocking) -> dict[str, Any]:
    return {} if blocking.tile_dim == FULL_TILE else {"tile_dim": blocking.tile_dim}


# ------------------------------------------------------------------------------------------------------------- graphs
def _graph(graph: Graph, devices: tuple[int, ...] | None, notes: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    yield f"  {word(graph.name)}:"
    yield f"    target_device: {flow(graph.target_device if devices is None else devices)}"
    yield f"    input_count: {graph.input_count}"
    before: tuple[str, ...] = ()
    for op in graph.ops:
        note = notes.get(op.written_name, ())
        if note != before:
            yield from comment(", ".join(dict.fromkeys(note)), indent=4)
            before = note
        yield f"    {word(op.name)}: {flow(_op(op))}"


def _op(op: Op) -> dict[str, Any]:
    blocking = op.blocking
    return {
        "type": op.type,
        **_if(grid_loc=op.grid_loc),
        "grid_size": blocking.grid_size,
        "inputs": op.inputs,
        "in_df": op.in_df,
        "out_df": op.out_df,
        "intermed_df": op.intermed_df,
        **_if(acc_df=op.acc_df),
        "math_fidelity": op.math_fidelity,
        **_blocking(blocking),
        **_tile_dim(blocking),
        "buf_size_mb": op.buf_size_mb,
        "ublock_order": blocking.ublock_order,
        **_if(
            untilize_output=op.untilize_output,
            grid_transpose=op.grid_transpose,
            gradient_op=op.gradient_op,
            input_buf_min_size_tiles=op.input_buf_min_size_tiles,
            input_dram_io_buf_size_tiles=op.input_dram_io_buf_size_tiles,
            forked_dram_inputs=[{queue: fork} for queue, fork in op.forked_dram_inputs],
        ),
        **({} if op.overlay_size == -1 else {"overlay_size": op.overlay_size}),
        **_shaping(op),
        **_if(attributes=_attributes(op.attributes)),
    }


def _shaping(op: Op) -> dict[str, Any]:
    """TMs and padding of each input (NETLIST 1.4)."""
    found: dict[str, Any] = {}
    for number, (unpad, tms, pad) in enumerate(zip(op.input_unpad, op.input_tms, op.input_pad, strict=True)):
        if unpad != _NO_PAD:
            found[f"input_{number}_unpad"] = {"rt": unpad.rt, "ct": unpad.ct}
        if tms:
            found[f"input_{number}_tms"] = _tms(tms)
        if pad != _NO_PAD:
            found[f"input_{number}_pad"] = {"rt": pad.rt, "ct": pad.ct, "pad_value": pad.value}
    return found


def _tms(tms: tuple[Tm, ...]) -> list[Any]:
    """A broadcast that holds several numbers shares a map with those before it (NETLIST 1.6)."""
    found: list[Any] = []
    for tm in tms:
        first, *counts = tm.args or (None,)
        if tm.name == "broadcast" and len(counts) > 1:
            found[-1]["broadcast"].append((str(first), counts[-1]))
        elif tm.name == "broadcast":
            found.append({"broadcast": Pairs([(str(first), counts[0])])})
        elif first is None:
            found.append(tm.name)
        else:
            found.append({tm.name: tm.args if counts else first})
    return found


def _attributes(attributes: Attributes) -> dict[str, Any]:
    """Those that were given, so that each is read as it was (NETLIST 11.1 A8, 11.3 C11)."""
    given = attributes.given
    found: dict[str, Any] = {}
    if "relu_mode" in given and attributes.relu_mode == "none":
        found["relu_mode"] = "none"  # relu_en, if it stands first, asks for another
    for name in ORDER if given else ():
        value = getattr(attributes, name)
        if name not in given or name in found:
            continue
        if ATTRIBUTES[name].kind == "broadcasts":
            value = {f"input_{number}": count for number, count in value}
        if name == "inputs":
            found |= {f"input{number}": turn for number, turn in value}
        else:
            found[name] = value
    return found


def _fused(fused: FusedOp) -> Iterator[str]:
    """Its schedules, a scheduled op on a line (OPS 8)."""
    yield f"  {word(fused.id)}:"
    yield f"    inputs: {fused.inputs}"
    yield f"    intermediates: {fused.intermediates}"
    if fused.custom_kernel_path:
        yield f"    custom_kernel_path: {word(fused.custom_kernel_path)}"
    yield f"    schedules:{'' if fused.schedules else ' []'}"
    for schedule in fused.schedules:
        if not schedule:
            yield "      - []"
        for number, step in enumerate(schedule):
            yield f"      {'  ' if number else '- '}- {word(step.name)}: {flow(_sub_op(step))}"


def _sub_op(step: SubOp) -> dict[str, Any]:
    return {
        "type": step.type,
        "inputs": step.inputs,
        "mblock": step.mblock,
        "ublock": step.ublock,
        "output": step.output,
        **_if(pop=step.pop, pop_last=step.pop_last, zero_point=step.zero_point),
        **{f"input_{number}_tms": _tms(tms) for number, tms in enumerate(step.input_tms) if tms},
        **_if(attributes=_attributes(step.attributes)),
    }


# ----------------------------------------------------------------------------------------------------------- programs
def _program(program: Program, viewed: Set[str]) -> Iterator[str]:
    yield f"  - {word(program.name)}:{'' if program.instructions else ' []'}"
    for instruction in program.instructions:
        yield f"      - {instruction_text(instruction, viewed)}"


def instruction_text(instruction: Instruction, viewed: Set[str] = frozenset()) -> str:
    """One instruction. `viewed`: rams that there are two views of."""
    match instruction:
        case Declare():
            values = [(name, Plain(value)) for name, value in instruction.variables]
            return f"{instruction.kind}: {flow(Pairs(values))}"
        case Param():
            return f"param: {flow(instruction.names)}"
        case VarInst():
            return f"varinst: {flow([instruction.out, instruction.opcode, *instruction.args])}"
        case Loop():
            return f"loop: {word(instruction.count)}"
        case EndLoop():
            return "endloop"
        case Allocate():
            return f"allocate_queue: {flow(instruction.queues)}"
        case Deallocate():
            return f"deallocate_queue: {flow(instruction.queues)}"
        case Execute():
            head = f"execute: {{graph_name: {word(instruction.graph)}"
            settings = ",\n".join(
                f"          {word(item.queue)}: {flow(_setting(item, item.queue in viewed))}"
                for item in instruction.queue_settings
            )
            return f"{head}, queue_settings: {{\n{settings}}}}}" if settings else f"{head}}}"


def _setting(setting: QueueSettings, viewed: bool) -> dict[str, str]:
    """Texts as they are looked up when the instruction runs (NETLIST 3.1, 4)."""
    fields = {"prologue": setting.prologue, "epilogue": setting.epilogue, "zero": setting.zero}
    if viewed or setting.read_only != "false":  # NETLIST 1.10
        fields["read_only"] = setting.read_only
    return fields | _if(
        rd_ptr_autoinc=setting.rd_ptr_autoinc,
        rd_ptr_local=setting.rd_ptr_local,
        rd_ptr_global=setting.rd_ptr_global,
        wr_ptr_global=setting.wr_ptr_global,
        global_rdptr_autoinc=setting.global_rdptr_autoinc,
        global_wrptr_autoinc=setting.global_wrptr_autoinc,
    )
