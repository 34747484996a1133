"""Rules on one queue: its sizes, words and allocations, and the op that feeds it (NETLIST 2: V012-V016, V067, V070)."""

from functools import partial
from types import MappingProxyType
from typing import Final

from buda_emu.netlist.model import Declare, EndLoop, Execute, Instruction, Loop, Netlist, Program, Queue, VarInst
from buda_emu.netlist.nodes import Mapping
from buda_emu.netlist.rules.context import Context, size_problem, written_text
from buda_emu.netlist.rules.missing import missing, size_hint
from buda_emu.netlist.rules.registry import TWICE, Finding, Findings, netlist_check, program_check, queue_check, rule
from buda_emu.spec.varinst import is_variable, stored_name
from buda_emu.support.checker.fix import putting, replacing
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural

LOCATIONS = ("dram", "host")
QUEUE_TMS = ("broadcast", "hslice", "hstack", "vslice", "vstack")


@queue_check(
    rule(
        "V012",
        "P",
        "a size of a queue is missing or not positive",
        "entries, t, mblock and ublock have no defaults and say how much the queue holds; target_device says on "
        "which chip. ublock_order is r unless written.",
        "{entries: 0, t: 1}",
        "{entries: 2, t: 1}",
        "NETLIST 1.3",
    ),
    basic=True,
)
def sizes(ctx: Context, queue: Queue) -> Findings:
    """Refuse a queue whose entries, t, mblock, ublock or chip is missing or too small; they have no defaults
    (NETLIST 1.3). An unknown order of ublocks is refused, too.
    """
    blocking = queue.blocking
    sizes = {"t": blocking.t, "entries": queue.entries, "mblock": blocking.mblock, "ublock": blocking.ublock}
    for key, value in sizes.items():
        if problem := size_problem(queue, key, value):
            yield Finding(queue.at(key), problem, size_hint(ctx, queue, key))
    if problem := size_problem(queue, "target_device", queue.target_device, least=0):
        yield Finding(queue.at("target_device"), problem, size_hint(ctx, queue, "target_device"))
    if blocking.ublock_order not in ("r", "c"):
        text = written_text(queue, "ublock_order")
        yield Finding(queue.at("ublock_order"), f"ublock_order '{text}' is unknown", "write r or c")


@queue_check(
    rule(
        "V013",
        "P",
        "df, type or layout of a queue is missing or unknown",
        "A `queue` is read and written in turn, a `ram` at an index. The layout is tilized unless `layout: flat`.",
        "type: qeue",
        "type: queue",
        "NETLIST 1.3",
    ),
    basic=True,
)
def words(ctx: Context, queue: Queue) -> Findings:
    """Refuse unknown words for type and layout of a queue, and a missing format; layout alone has a default,
    tilized (NETLIST 1.3).
    """
    if not queue.df:
        yield Finding(queue.at("df"), "df is missing", missing(ctx, queue, "df", "add the format"))
    for key, value, legal in (("type", queue.type, ("queue", "ram")), ("layout", queue.layout, ("tilized", "flat"))):
        if value not in legal:
            text = written_text(queue, key) or value
            if text:
                message = f"unknown {key} '{text}'"
            else:
                message = f"{key} is missing"
            hint = near(text, legal) or f"write {legal[0]} or {legal[1]}"
            yield Finding(queue.at(key), message, hint if text else missing(ctx, queue, key, hint))


@queue_check(
    rule(
        "V014",
        "P",
        "grid_size of a queue is missing or not positive",
        "A queue is cut into a grid of buffers, at least one.",
        "grid_size: [0, 1]",
        "grid_size: [1, 1]",
        "NETLIST 1.3",
    ),
    basic=True,
)
def grid(ctx: Context, queue: Queue) -> Findings:
    """Refuse a queue whose grid_size is missing or has a size below 1 (NETLIST 1.3)."""
    if problem := size_problem(queue, "grid_size", queue.blocking.grid_size):
        yield Finding(queue.at("grid_size"), problem, size_hint(ctx, queue, "grid_size"))


@queue_check(
    rule(
        "V015",
        "P",
        "the number of allocations differs from the grid",
        "Every cell of the grid has its own buffer, listed row by row. A missing or unknown `loc` reads no "
        "list at all.",
        "{grid_size: [2, 1], loc: dram, dram: [[0, 0x20000000]]}",
        "{grid_size: [2, 1], loc: dram, dram: [[0, 0x20000000], [1, 0x20000000]]}",
        "NETLIST 1.3, 11.3 C1, C2",
    ),
    basic=True,
)
def allocations(_: Context, queue: Queue) -> Findings:
    """Refuse a queue that has not one allocation for each grid cell (NETLIST 1.3). With an unknown `loc`, none are
    read (11.3 C2)."""
    cells = queue.blocking.cells
    if min(queue.blocking.grid_size) < 1 or len(queue.buffers) == cells:
        return
    if queue.loc not in LOCATIONS:
        text = written_text(queue, "loc") or queue.loc
        if text:
            message = f"unknown loc '{text}': no allocations are read"
        else:
            message = "loc is missing: no allocations are read"
        yield Finding(queue.at("loc"), message, near(text, LOCATIONS) or _loc_hint(queue))
        return
    rows, columns = queue.blocking.grid_size
    yield Finding(
        queue.at(queue.loc),
        f"{plural(len(queue.buffers), 'allocation')} for a grid of {rows} x {columns} = {cells}",
        f"list one {'[channel, address]' if queue.loc == 'dram' else 'address'} for each grid cell, row by row",
    )


def _loc_hint(queue: Queue) -> str:
    """Return the hint to write `loc`: the key under which the allocations stand, if there is only one."""
    lists = [loc for loc in LOCATIONS if isinstance(queue.source, Mapping) and queue.source.find(loc) is not None]
    hint = "write `loc: dram` or `loc: host`"
    if len(lists) == 1:
        return putting(hint, "loc", lists[0])
    return hint


@queue_check(
    rule(
        "V016",
        "P",
        "a queue is fed by an op that does not exist",
        "`input` is HOST (in capitals) or the name of an op. Where graph and queue have lists of devices, the "
        "copies are fed by name.device; a copy in host memory counts as one of the first device, so such a queue "
        "on two chips is refused.",
        "input: host",
        "input: HOST",
        "NETLIST 1.3, 1.7, 11.1 A3",
    ),
    basic=True,
    unless=TWICE,
)
def input_exists(ctx: Context, queue: Queue) -> Findings:
    """Refuse an input that is no op. Before graphs are expanded, it is an op, or an op with "." and the queue's
    device (NETLIST 11.1 A3)."""
    if queue.host_fed or _known_before_expansion(queue, ctx.names_before_expansion):
        return
    if not queue.input:
        hint = "write `input: HOST` or the name of the op that feeds it"
        yield Finding(queue.at("input"), "input is missing", missing(ctx, queue, "input", hint))
        return
    names = ctx.names_before_expansion
    base, dot, _ = queue.input.rpartition(".")
    if dot and base in names:
        if queue.loc == "host":
            why = "host memory counts as the first device's"
        else:
            why = ""
        message = f"is fed by {queue.input} but its target_device is {queue.target_device}"
        yield Finding(queue.at("input"), message, why)
        return
    capitals = replacing("HOST is written in capitals", queue.input, "HOST")
    if queue.input.upper() == "HOST":
        hint = capitals
    else:
        hint = partial(near, queue.input, names)
    yield Finding(queue.at("input"), f"is fed by '{queue.input}', which is not an op", hint)


@queue_check(
    rule(
        "V070",
        "P",
        "a queue does not have exactly one producer",
        "An op of a graph with a list of devices becomes one op for each device, named op.device. A queue that "
        "still names the plain op has lost its producer.",
        "graph {target_device: [0, 1]}, queue {input: op0, target_device: 0}",
        "graph {target_device: [0, 1]}, queue {input: op0, target_device: [0, 1]}",
        "NETLIST 1.7",
    ),
    basic=True,
    unless=("V016",),
)
def one_producer(ctx: Context, queue: Queue) -> Findings:
    """Refuse a queue that the host does not fill if no op has the name of its producer once graphs are expanded over
    devices (NETLIST 1.7). Two producers are impossible, as op names are unique."""
    if not queue.host_fed and queue.input not in ctx.ops:
        message = f"no op '{queue.input}' after expansion over devices"
        yield Finding(queue.at("input"), message, partial(_copies_hint, ctx, queue.input))


@queue_check(
    rule(
        "V018",
        "P",
        "a queue's input_tms use a TM that queues do not have",
        "Between an op and its queue tiles can be sliced, stacked and repeated, but not changed: no transpose, no pad.",
        "input_tms: [transpose]",
        "input_tms: [hslice: 2]",
        "NETLIST 2, OPS 7.2",
    )
)
def tms_of_queue(_: Context, queue: Queue) -> Findings:
    """Refuse TMs that a queue cannot have: it re-blocks and repeats tiles, and does not change them (OPS 7.2)."""
    for tm in queue.input_tms:
        if tm.name not in QUEUE_TMS:
            yield Finding(tm.mark, f"input_tms of a queue cannot {tm.name}", f"queues have {', '.join(QUEUE_TMS)}")


@queue_check(
    rule(
        "V067",
        "P",
        "a queue's tile differs from its producer's",
        "Tiles are stored as they are produced.",
        "op {tile_dim: [16, 32]}, queue {tile_dim: [32, 32]}",
        "both with tile_dim: [16, 32]",
        source="NETLIST 2",
    )
)
def tile_of_producer(ctx: Context, queue: Queue) -> Findings:
    """Refuse tiles other than those of the op that feeds the queue (NETLIST 2, tile-dim rules)."""
    if queue.host_fed or queue.input in ctx.broken:
        producer = None
    else:
        producer = ctx.ops.get(queue.input)
    if producer is not None and producer.blocking.tile_dim != queue.blocking.tile_dim:
        tile_dim = list(producer.blocking.tile_dim)
        yield Finding(
            queue.at("tile_dim"),
            f"tile_dim {list(queue.blocking.tile_dim)}, op {producer.name} writes tiles of "
            f"{list(producer.blocking.tile_dim)}",
            putting(f"write `tile_dim: {tile_dim}`", "tile_dim", str(tile_dim), safe=False),
        )


def _copies_hint(ctx: Context, name: str) -> str:
    """Return the hint that names the copies of an op which became one op for each chip; "" if it has none."""
    copies = [op.name for op in ctx.ops.values() if op.written_name == name]
    if copies:
        return f"it is now {', '.join(copies[:4])}: give the queue the same list of devices"
    return ""


def _known_before_expansion(queue: Queue, names: frozenset[str]) -> bool:
    """Return whether the input of a queue is one of `names`, the ops as the file writes them, also with the suffix
    of the queue's chip.
    """
    suffix = f".{queue.target_device}"
    return queue.input in names or (queue.input.endswith(suffix) and queue.input.removesuffix(suffix) in names)


@netlist_check(
    rule(
        "V365",
        "N",
        "a queue on several chips is called as the copy of another one",
        "A queue with a list of chips is replaced by a copy for each, named after it and the chip. The vendor's "
        "compiler takes the name of such a copy for the other queue, and ends where both have copies.",
        "x: {target_device: [0, 1]}, x.1: {target_device: [0, 1]}",
        "x: {target_device: [0, 1]}, x_1: {target_device: [0, 1]}",
        "NETLIST 1.7",
    )
)
def called_like_a_copy(_: Context, netlist: Netlist) -> Findings:
    """Refuse a queue whose name is also that of another queue's copy for a chip; it shows by the copies of both."""
    reported: set[str] = set()
    for queue in netlist.queues.values():
        if queue.written_name != queue.name:
            copy = netlist.queues.get(queue.written_name)
        else:
            copy = None
        if copy is None or copy.written_name == queue.written_name or queue.written_name in reported:
            continue
        reported.add(queue.written_name)
        message = f"{queue.written_name} is also the copy of {copy.written_name} for chip {copy.target_device}"
        yield Finding(queue.at(), f"queue {message}", "give it another name")


# Found while a netlist is read, or not checked
rule(
    "V003",
    "P",
    "grid_size, mblock or ublock of a queue is not a pair",
    "Each is [rows, columns]: buffers of the grid, ublocks of the mblock, tiles of the ublock.",
    "mblock: [4]",
    "mblock: [4, 1]",
    "NETLIST 1.3",
)
rule(
    "V004",
    "P",
    "the allocation list that `loc` asks for is missing or empty",
    "`loc: dram` reads the list `dram`, `loc: host` the list `host`. It says where each buffer of the queue starts.",
    "{loc: dram, host: [0x1000]}",
    "{loc: dram, dram: [[0, 0x20000000]]}",
    "NETLIST 1.3",
)
rule(
    "V005",
    "P",
    "a DRAM address on blackhole is not a multiple of 64",
    "Blackhole moves 64 bytes at a time, and the header of a queue is one such piece. Other architectures "
    "take any address.",
    "dram: [[0, 0x20000020]]",
    "dram: [[0, 0x20000040]]",
    "NETLIST 2, 11.3 C3",
)
rule(
    "V006",
    "P",
    "read_ports or write_ports are not legal",
    "A DRAM channel has ports 0, 1 and 2 (grayskull: none to choose). One is given for every buffer of the queue.",
    "{dram: [[0, 0x100]], read_ports: [0, 1]}",
    "{dram: [[0, 0x100]], read_ports: [1]}",
    "NETLIST 1.3, 11.2 B12",
)
rule(
    "V007",
    "P",
    "tile_dim is not a legal tile",
    "Tiles are 32x32, 16x32, 32x16, 8x32, 4x32, 2x32 or 1x32 elements; grayskull has 32x32 only.",
    "tile_dim: [16, 16]",
    "tile_dim: [16, 32]",
    "NETLIST 1.3",
)
rule(
    "V008",
    "P",
    "unknown queue field",
    "Fields of a queue are a closed list: a misspelt one would silently take its default.",
    "entrys: 2",
    "entries: 2",
    "NETLIST 1.3",
)
rule(
    "V009",
    "P",
    "two queues have one name",
    "Ops and programs speak of a queue by its name.",
    "queues: {q: {...}, q: {...}}",
    "queues: {q0: {...}, q1: {...}}",
    source="NETLIST 2",
)
rule(
    "V010",
    "P",
    "unknown data format",
    "Formats are written exactly: Float32, Float16, Float16_b, Bfp8, Bfp8_b, Bfp4, Bfp4_b, Bfp2, Bfp2_b, Lf8,"
    " Fp8_e4m3, Int8, UInt8, UInt16, Int32, RawUInt8, RawUInt16, RawUInt32.",
    "df: bfloat16",
    "df: Float16_b",
    "NETLIST 1.9",
)
rule(
    "V185",
    "P",
    "an allocation is malformed",
    "A buffer in DRAM is [channel, address]. In host memory a plain address means channel 0.",
    "dram: [0x20000000]",
    "dram: [[0, 0x20000000]]",
    "NETLIST 1.3, 11.2 B6",
)


_NESTING: Final[MappingProxyType[type[Instruction], int]] = MappingProxyType({Loop: 1, EndLoop: -1})
"""By how many loops an instruction leads further into a program."""


@program_check(
    rule(
        "V125",
        "R",
        "a constant variable is written again",
        "A variable whose name starts with $c_ keeps the value it has when the program's first loop or execute "
        "begins; a static one is only changed by set.",
        "[loop: 2, varinst: [$c_one, inc, 1], endloop]",
        "[varinst: [$c_one, set, 1], loop: 2, endloop]",
        "NETLIST 3",
    )
)
def constant_changes(_: Context, program: Program) -> Findings:
    """Refuse changes of constants: `$c_...` gets its value before the program's first loop or execute, a static one
    only by `set` (NETLIST 3)."""
    depth = 0
    started = False
    statics: set[str] = set()
    for step in program.instructions:
        started = started or isinstance(step, Loop | Execute)
        depth += _NESTING.get(type(step), 0)
        if isinstance(step, Declare):
            names = _stored_names(step)
            if step.kind == "staticvar":
                statics |= names
            if depth > 0 and any(map(_is_constant, names)):
                yield Finding(step.at(), "declares a constant inside a loop")
        elif isinstance(step, VarInst) and _is_constant(stored_name(step.out)):
            if depth > 0:
                yield Finding(step.at(), f"changes constant {step.out} inside a loop")
            else:
                yield from _constant_change(step, statics, started=started)


def _stored_names(step: Declare) -> set[str]:
    """Return the names of the variables that an instruction declares, as they are stored."""
    return {stored_name(name) for name, _text in step.variables}


def _constant_change(step: VarInst, statics: set[str], *, started: bool) -> Findings:
    """Yield what is wrong with a varinst that changes a constant outside of loops. `started` tells whether a loop or an
    execute stands before it; `statics` are the stored names of static variables."""
    if started:
        yield Finding(step.at(), f"changes constant {step.out} after the program's first loop or execute")
    elif stored_name(step.out) in statics:
        yield from _static_constant_change(step, statics)


def _is_constant(name: str) -> bool:
    """Return whether a stored name is that of a constant, `$c_...`."""
    return name.startswith("c_")


def _static_constant_change(step: VarInst, statics: set[str]) -> Findings:
    """Report a static constant that is not written by `set`, or is set from a static variable."""
    if step.opcode != "set":
        yield Finding(step.at(), f"changes static constant {step.out} by {step.opcode}", "only set may")
        return
    sources = {stored_name(word) for word in step.args if is_variable(word)}
    if any(source in statics and not _is_constant(source) for source in sources):
        yield Finding(step.at(), f"sets static constant {step.out} from a static variable")


@program_check(
    rule(
        "V126",
        "R",
        "the graphs of a temporal graph are not executed together",
        "They run at the same time and wait for each other: a program executes all of them before it executes one"
        " again or another group.",
        "[execute: g0, execute: g0, execute: g1, execute: g1] where g0 feeds g1",
        "[execute: g0, execute: g1, execute: g0, execute: g1]",
        "NETLIST 2, 4.3",
    )
)
def temporal_graphs_whole(ctx: Context, program: Program) -> Findings:
    """Refuse a program that executes a graph of one temporal graph twice, or a graph of a second temporal graph, before
    all graphs of the first were executed: they start together."""
    members = {temporal.id: {*temporal.graphs} for temporal in ctx.netlist.temporal_graphs}
    current = -1
    seen = set[str]()
    last: Execute | None = None
    for step in program.instructions:
        if not isinstance(step, Execute):
            continue
        group = ctx.temporal.get(step.graph, -1)
        if group != current or step.graph in seen:
            yield from _missing_graphs(members.get(current, set()), seen, last)
            current = group
            seen = set[str]()
        seen.add(step.graph)
        last = step
    yield from _missing_graphs(members.get(current, set()), seen, last)


def _missing_graphs(members: set[str], seen: set[str], last: Execute | None) -> Findings:
    """Report the graphs among `members`, those of one temporal graph, that were not executed (`seen`) up to `last`,
    the last execute of its graphs.
    """
    if last is not None and (missing := members - seen):
        message = f"executes {', '.join(sorted(seen))} without {', '.join(sorted(missing))}, which run at the same time"
        yield Finding(last.at("graph_name"), message)


@queue_check(
    rule(
        "V127",
        "W",
        "a buffered queue is not allocated dynamically or reads by more than one",
        "A queue from one op to another of the same temporal graph, with several entries, is a buffer. It is "
        "meant to be allocated by the program and read entry by entry.",
        "a queue between two ops that no allocate_queue names",
        "- allocate_queue: [buf0]",
        source="NETLIST 2",
    )
)
def buffered_queue(ctx: Context, queue: Queue) -> Findings:
    """Warn of a queue between two ops of one temporal graph that no program allocates: it is a buffer, allocated
    while the program runs and read one by one.
    """
    producer = ctx.ops.get(queue.input)
    readers = ctx.readers.get(queue.name, ())
    if queue.is_ram or producer is None or len(readers) != 1 or queue.entries < 2:
        return
    if ctx.temporal.get(producer.graph) != ctx.temporal.get(readers[0].graph):
        return
    if queue.name not in ctx.dynamic:
        yield Finding(
            queue.at(),
            "buffers between two ops of one temporal graph, but no program allocates it",
            f"add allocate_queue: [{queue.name}] to the program, or let op {readers[0].name} read op {producer.name}",
        )


@program_check("V127")
def buffered_step(ctx: Context, program: Program) -> Findings:
    """Warn of settings that read a buffer between two ops of one temporal graph by more than one entry."""
    for step in program.instructions:
        for setting in step.queue_settings if isinstance(step, Execute) else ():
            queue = ctx.queues[setting.queue]
            if setting.rd_ptr_autoinc.isdigit() and int(setting.rd_ptr_autoinc) > 1 and any(buffered_queue(ctx, queue)):
                yield Finding(setting.at("rd_ptr_autoinc"), f"reads buffer {queue.name} by {setting.rd_ptr_autoinc}")
