"""Print a netlist as text from which `load` reads an equal netlist (NETLIST 1 to 4).

Fields stand in a fixed order, each object on a line of its own. A field that has its default is left out where the
language allows it.
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
    from buda_emu.netlist.reader import WrittenNetlist

_FIRST: Final = (
    "identity", "num_sparse_tiles", "num_index_tiles", "sparse_tile_ptr_bits", "sparse_ublock_idx_bits",
    "fracture_factor", "act_t", "indices_len", "granularity", "inputs", "accumulate", "dim", "type", "z", "bias",
    "dequant", "zero_point", "sfpu_op", "relu_en", "relu_threshold", "relu_mode",
)  # fmt: skip
_LAST: Final = ("m_k", "u_kt", "fused_op_id", "num_nz_strips")
ORDER: Final = (*_FIRST, *(name for name in ATTRIBUTES if name not in (*_FIRST, *_LAST)), *_LAST)
"""Order of the attributes: first what an op computes, then how it is divided. `z` is only read after `dim` or
`accumulate`."""
_NO_PAD: Final = Pad()


@dataclass(frozen=True, slots=True)
class Notes:
    """Comments to print: a `title` at the top, a heading for each queue in `queues`, and in `ops` the names of the
    model's operators from which each op was made. Equal comments that follow each other are printed once."""

    title: str
    queues: Mapping[str, str]
    ops: Mapping[str, tuple[str, ...]]


def netlist_text(netlist: Netlist, notes: Notes | None = None) -> str:
    """Return the whole document, for all the architectures that the netlist is written for; `notes` are printed as
    comments.
    """
    from buda_emu.netlist.build import contract  # it reads and checks; a run prints single instructions alone

    return document_text(contract(netlist), notes)


def document_text(document: "WrittenNetlist", notes: Notes | None = None) -> str:
    """Return the text of a document before copies for several chips are made (NETLIST 1.7); `notes` are printed as
    comments.
    """
    return "\n".join(_document_lines(document, notes)) + "\n"


def program_lines(netlist: Netlist, name: str) -> list[str]:
    """Return the lines of the program `name` as `netlist_text` prints them. Raises KeyError for a name that the netlist
    does not have."""
    return "\n".join(_program_lines(netlist.programs[name], _rams_with_two_views(netlist.queues))).split("\n")


def _rams_with_two_views(queues: Mapping[str, Queue]) -> set[str]:
    """Return the names of rams that are an alias of another ram or have one."""
    aliased = {queue.alias for queue in queues.values()}
    return {name for name, queue in queues.items() if queue.alias or name in aliased}


def _document_lines(document: "WrittenNetlist", notes: Notes | None) -> Iterator[str]:
    """Yield the lines of a document, section by section; with notes, comments and blank lines between sections."""
    gap: list[str] = []
    if notes is not None:
        gap = [""]
        yield from (*comment(notes.title), "")
    else:
        notes = Notes(title="", queues={}, ops={})
    yield "devices:"
    archs = document.archs
    yield f"  arch: {archs[0] if len(archs) == 1 else flow(archs)}"
    yield from (*gap, "queues:")
    yield from _queue_lines(document, notes.queues)
    yield from (*gap, "graphs:")
    for graph in document.graphs.values():
        yield from _graph_lines(graph, document.graph_devices.get(graph.name), notes.ops)
    if document.fused_ops:
        yield from (*gap, "fused_ops:")
        for fused in document.fused_ops.values():
            yield from _fused_op_lines(fused)
    yield from (*gap, "programs:")
    two_views = _rams_with_two_views(document.queues)
    for name in document.program_order:
        yield from _program_lines(document.programs[name], two_views)
    for name, node in document.sections.items():
        yield from (*gap, f"{word(name)}:", *block(node, 2))


def _queue_lines(document: "WrittenNetlist", headings: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of all queues, with a comment where the heading changes. `headings` is by the name of the
    queue.
    """
    before = ""
    for queue in document.queues.values():
        heading = headings.get(queue.name, "")
        if heading != before:
            yield ""
            yield f"  # {heading}"
            before = heading
        yield f"  {word(queue.name)}: {flow(_queue_fields(queue, document.queue_devices.get(queue.name)))}"


def _blocking_fields(blocking: Blocking) -> dict[str, Any]:
    """Return the fields t, mblock and ublock, which queues and ops write alike."""
    return {"t": blocking.t, "mblock": blocking.mblock, "ublock": blocking.ublock}


def _non_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields whose value is neither empty, 0 nor False."""
    return {name: value for name, value in fields.items() if value}


def _queue_fields(queue: Queue, devices: tuple[int, ...] | None) -> dict[str, Any]:
    """Return the fields of a queue in the order in which they are printed. `devices` are the chips of its copies,
    None for a queue on one chip.
    """
    blocking = queue.blocking
    return {
        "input": queue.input,
        **_non_empty(input_tms=_tm_entries(queue.input_tms)),
        "type": queue.type,
        "entries": queue.entries,
        "grid_size": blocking.grid_size,
        **_blocking_fields(blocking),
        "ublock_order": blocking.ublock_order,
        **_tile_dim_fields(blocking),
        "df": queue.df,
        "target_device": queue.target_device if devices is None else devices,
        "loc": queue.loc,
        **_non_empty(alias=queue.alias, layout="" if queue.layout == "tilized" else queue.layout),
        **_non_empty(read_ports=queue.read_ports, write_ports=queue.write_ports),
        queue.loc: [(buffer.channel, Plain(f"{buffer.address:#x}")) for buffer in queue.buffers],
    }


def _tile_dim_fields(blocking: Blocking) -> dict[str, Any]:
    """Return the field tile_dim, or no field for the default of 32 x 32."""
    if blocking.tile_dim == FULL_TILE:
        return {}
    return {"tile_dim": blocking.tile_dim}


# ------------------------------------------------------------------------------------------------------------- graphs
def _graph_lines(graph: Graph, devices: tuple[int, ...] | None, notes: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a graph and its ops. `devices` are the chips of its copies, None for a graph on one chip;
    `notes` is `Notes.ops`.
    """
    yield f"  {word(graph.name)}:"
    yield f"    target_device: {flow(graph.target_device if devices is None else devices)}"
    yield f"    input_count: {graph.input_count}"
    before: tuple[str, ...] = ()
    for op in graph.ops:
        note = notes.get(op.written_name, ())
        if note != before:
            yield from comment(", ".join(dict.fromkeys(note)), indent=4)
            before = note
        yield f"    {word(op.name)}: {flow(_op_fields(op))}"


def _op_fields(op: Op) -> dict[str, Any]:
    """Return the fields of an op in the order in which they are printed, without those that have their default."""
    blocking = op.blocking
    return {
        "type": op.type,
        **_non_empty(grid_loc=op.grid_loc),
        "grid_size": blocking.grid_size,
        "inputs": op.inputs,
        "in_df": op.in_df,
        "out_df": op.out_df,
        "intermed_df": op.intermed_df,
        **_non_empty(acc_df=op.acc_df),
        "math_fidelity": op.math_fidelity,
        **_blocking_fields(blocking),
        **_tile_dim_fields(blocking),
        "buf_size_mb": op.buf_size_mb,
        "ublock_order": blocking.ublock_order,
        **_non_empty(
            untilize_output=op.untilize_output,
            grid_transpose=op.grid_transpose,
            gradient_op=op.gradient_op,
            input_buf_min_size_tiles=op.input_buf_min_size_tiles,
            input_dram_io_buf_size_tiles=op.input_dram_io_buf_size_tiles,
            forked_dram_inputs=[{queue: fork} for queue, fork in op.forked_dram_inputs],
        ),
        **({} if op.overlay_size == -1 else {"overlay_size": op.overlay_size}),
        **_shaping_fields(op),
        **_non_empty(attributes=_attribute_fields(op.attributes)),
    }


def _shaping_fields(op: Op) -> dict[str, Any]:
    """Return the fields for TMs, padding and unpadding of each input that has some (NETLIST 1.4)."""
    fields: dict[str, Any] = {}
    for number, (unpad, tms, pad) in enumerate(zip(op.input_unpad, op.input_tms, op.input_pad, strict=True)):
        if unpad != _NO_PAD:
            fields[f"input_{number}_unpad"] = {"rt": unpad.rt, "ct": unpad.ct}
        if tms:
            fields[f"input_{number}_tms"] = _tm_entries(tms)
        if pad != _NO_PAD:
            fields[f"input_{number}_pad"] = {"rt": pad.rt, "ct": pad.ct, "pad_value": pad.value}
    return fields


def _tm_entries(tms: tuple[Tm, ...]) -> list[Any]:
    """Return the entries of a list of TMs. Consecutive broadcasts that were read from one map share a map again: the
    later ones hold several numbers (NETLIST 1.6)."""
    entries: list[Any] = []
    for tm in tms:
        first, *counts = tm.args or (None,)
        if tm.name == "broadcast" and len(counts) > 1:
            entries[-1]["broadcast"].append((str(first), counts[-1]))
        elif tm.name == "broadcast":
            entries.append({"broadcast": Pairs([(str(first), counts[0])])})
        elif first is None:
            entries.append(tm.name)
        else:
            entries.append({tm.name: tm.args if counts else first})
    return entries


def _attribute_fields(attributes: Attributes) -> dict[str, Any]:
    """Return the attributes that were written, in an order in which each reads as before (NETLIST 11.1 A8, 11.3
    C11)."""
    written = attributes.given
    fields: dict[str, Any] = {}
    if "relu_mode" in written and attributes.relu_mode == "none":
        fields["relu_mode"] = "none"  # after relu_en: true, only min and max are legal
    for name in ORDER:
        if name not in written or name in fields:
            continue
        value = getattr(attributes, name)
        if ATTRIBUTES[name].kind == "broadcasts":
            value = {f"input_{number}": count for number, count in value}
        if name == "inputs":
            fields |= {f"input{number}": turn for number, turn in value}
        else:
            fields[name] = value
    return fields


def _fused_op_lines(fused: FusedOp) -> Iterator[str]:
    """Yield the lines of a fused op, each scheduled op on a line of its own (OPS 8)."""
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
            yield f"      {'  ' if number else '- '}- {word(step.name)}: {flow(_sub_op_fields(step))}"


def _sub_op_fields(step: SubOp) -> dict[str, Any]:
    """Return the fields of a scheduled op of a fused op in the order in which they are printed."""
    return {
        "type": step.type,
        "inputs": step.inputs,
        "mblock": step.mblock,
        "ublock": step.ublock,
        "output": step.output,
        **_non_empty(pop=step.pop, pop_last=step.pop_last, zero_point=step.zero_point),
        **{f"input_{number}_tms": _tm_entries(tms) for number, tms in enumerate(step.input_tms) if tms},
        **_non_empty(attributes=_attribute_fields(step.attributes)),
    }


# ----------------------------------------------------------------------------------------------------------- programs
def _program_lines(program: Program, two_views: Set[str]) -> Iterator[str]:
    """Yield the lines of a program, a line for each instruction. `two_views` is as in `instruction_text`."""
    yield f"  - {word(program.name)}:{'' if program.instructions else ' []'}"
    for instruction in program.instructions:
        yield f"      - {instruction_text(instruction, two_views)}"


def instruction_text(instruction: Instruction, two_views: Set[str] = frozenset()) -> str:
    """Return the text of one instruction.

    `two_views` names the rams that have two views: their settings always print `read_only` (NETLIST 1.10).
    """
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
            return _execute_text(instruction, two_views)


def _execute_text(execute: Execute, two_views: Set[str]) -> str:
    """Return the text of an execute, with the settings of each queue on a line of its own. `two_views` is as in
    `instruction_text`.
    """
    head = f"execute: {{graph_name: {word(execute.graph)}"
    settings = ",\n".join(
        f"          {word(setting.queue)}: {flow(_setting_fields(setting, setting.queue in two_views))}"
        for setting in execute.queue_settings
    )
    if settings:
        return f"{head}, queue_settings: {{\n{settings}}}}}"
    return f"{head}}}"


def _setting_fields(setting: QueueSettings, has_two_views: bool) -> dict[str, str]:
    """Return the settings of a queue as texts, which are looked up when the instruction runs (NETLIST 3.1, 4).
    `has_two_views` makes `read_only` appear although it is false.
    """
    fields = {"prologue": setting.prologue, "epilogue": setting.epilogue, "zero": setting.zero}
    if has_two_views or setting.read_only != "false":  # NETLIST 1.10
        fields["read_only"] = setting.read_only
    return fields | _non_empty(
        rd_ptr_autoinc=setting.rd_ptr_autoinc,
        rd_ptr_local=setting.rd_ptr_local,
        rd_ptr_global=setting.rd_ptr_global,
        wr_ptr_global=setting.wr_ptr_global,
        global_rdptr_autoinc=setting.global_rdptr_autoinc,
        global_wrptr_autoinc=setting.global_wrptr_autoinc,
    )
