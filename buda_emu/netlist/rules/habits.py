"""Rules on likely mistakes that neither the loader nor the device refuses (V208, V209, V211, V212, V217, V219, V221;
stage W)."""

import re
from collections import deque
from collections.abc import Container, Iterator
from typing import Final

from buda_emu.netlist.model import Execute, Graph, Netlist, Op, Program, Queue, QueueSettings, SubOp
from buda_emu.netlist.nodes import Mapping, Scalar, Sequence
from buda_emu.netlist.repetitions import repetition_hint
from buda_emu.netlist.rules.context import Context, attribute_mark, item_mark
from buda_emu.netlist.rules.fused_use import FusedUse
from buda_emu.netlist.rules.registry import (
    Finding,
    Findings,
    fused_check,
    graph_check,
    netlist_check,
    op_check,
    program_check,
    queue_check,
    rule,
)
from buda_emu.netlist.yaml_text import parse_address
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker.fix import replacing
from buda_emu.support.checker.text import list_first, plural

_LISTS = ("grid_loc", "grid_size", "mblock", "ublock", "inputs")
_READ_AGAIN = ("loc", "dram", "host")
_ALONG = {"r": ("r",), "c": ("c",), "rc": ("r", "c")}
_PLACE = {"r": "row 0", "c": "column 0"}
_FALSE = ("false", "0")
_WIDE = {"a": "Float16", "b": "Float16_b"}
_LONG_NUMBER = re.compile(r"(?!0+\Z)[0-9]{5,8}")
_ROUND = "000"  # end of a number that is a round address if it is read as hexadecimal
_ALIGNMENT = 32  # bytes, of which every chip wants a multiple as address in DRAM
_FAR = 64  # names that are looked at on the way from an operand to a reduce


_NAMED_READERS: Final = 3
"""Readers that a message names; the others are counted, so that it stays on a line."""


@op_check(
    rule(
        "V219",
        "W",
        "a copy between chips goes to the chip on which it begins",
        "An ethernet_datacopy brings its operand to dest_device, where other ops read it. To its own chip it brings "
        "nothing new, and ops of other chips do not get it.",
        "{type: ethernet_datacopy, attributes: {dest_device: 0}} in a graph of chip 0",
        "{type: ethernet_datacopy, attributes: {dest_device: 1}} in a graph of chip 0",
        "OPS 1",
    ),
)
def copy_to_its_own_chip(ctx: Context, op: Op) -> Findings:
    """Warn of a copy between chips whose destination is its own chip, where its operand is; the hint names the chip of
    its readers if it is a single other one."""
    if not op.has("Ethernet") or op.attributes.dest_device != op.target_device:
        return
    operand = ctx.ops.get(op.inputs[0]) or ctx.netlist.queues.get(op.inputs[0])
    if operand is not None and operand.target_device != op.target_device:
        return
    missed_readers = _readers_elsewhere(ctx, op)
    away = sorted({reader.target_device for reader in missed_readers})
    message = f"dest_device {op.target_device} is the chip that it runs on"
    hint = "read its operand instead"
    if away:
        missed = [reader.name for reader in missed_readers]
        chips = ", ".join(map(str, away))
        message += f": it does not reach {list_first(missed, _NAMED_READERS)} of chip {chips}"
        hint = "name the chip that reads it"
    if len(away) == 1:
        hint = replacing(f"did you mean {away[0]}?", str(op.target_device), str(away[0]))
    yield Finding(attribute_mark(op, "dest_device"), message, hint)


def _readers_elsewhere(ctx: Context, op: Op) -> list[Op]:
    """Return the ops of other chips that read an op."""
    readers = [reader for reader in ctx.ops.values() if op.name in reader.inputs]
    return [reader for reader in readers if reader.target_device != op.target_device]


@queue_check(
    rule(
        "V208",
        "W",
        "a queue is too small for the inputs of one execute",
        "A graph writes an entry for each of its input_count inputs before the host can take one out, so a result queue"
        " needs at least as many entries. A queue that is streamed into a graph (no prologue, no epilogue, no"
        " global_rdptr_autoinc) is read in batches of input_count, which must divide its entries. `run`, `test` and the"
        " like refuse a netlist whose programs are bound to fail for this.",
        "{entries: 1} fed by an op of a graph with input_count 2",
        "{entries: 2} fed by an op of a graph with input_count 2",
        "NETLIST 4.1, 4.3",
    )
)
def room_for_results(ctx: Context, queue: Queue) -> Findings:
    """Warn of a queue too small for the results of one execute: a graph writes an entry for each of its inputs, and
    the host reads when the execute is over (NETLIST 4.3)."""
    if queue.host_fed or queue.is_ram:
        op = None
    else:
        op = ctx.ops.get(queue.input)
    if op is not None:
        graph = ctx.netlist.graphs.get(op.graph)
    else:
        graph = None
    if graph is None or queue.entries >= graph.input_count or queue.entries < 1:
        return
    temporal = ctx.temporal.get(graph.name)
    if any(ctx.temporal.get(reader.graph) == temporal for reader in ctx.readers.get(queue.name, ())):
        return
    message = f"has {plural(queue.entries, 'entry')}, one execute of {graph.name} writes {graph.input_count}"
    yield Finding(queue.at("entries"), message, "give it at least as many entries as the graph has inputs")


@program_check("V208")
def room_for_inputs(ctx: Context, program: Program) -> Findings:
    """Warn of a streamed queue whose entries are no multiple of the graph's inputs: it hands out whole batches
    (NETLIST 4.3 step 3c)."""
    for step in program.instructions:
        if not isinstance(step, Execute):
            continue
        graph = ctx.netlist.graphs.get(step.graph)
        if graph is None or graph.input_count < 1:
            continue
        for settings in step.queue_settings:
            queue = ctx.queues.get(settings.queue)
            if queue is None or queue.is_ram or not _is_streamed(settings) or queue.entries < 1:
                continue
            yield from _entries_of_no_batch(queue, graph)


def _entries_of_no_batch(queue: Queue, graph: Graph) -> Findings:
    """Yield a finding about a streamed queue whose entries are no multiple of what an execute of a graph reads."""
    if graph.input_count > queue.entries or queue.entries % graph.input_count:
        has = f"queue {queue.name} has {plural(queue.entries, 'entry')}"
        message = f"{has}, an execute of {graph.name} reads {graph.input_count} at a time"
        yield Finding(queue.at("entries"), message, "entries must be a multiple of the graph's input_count")


def _is_streamed(settings: QueueSettings) -> bool:
    """Return whether a queue with these settings is read entry by entry, each input another one, without popping
    any.
    """
    return (
        settings.prologue.lower() in _FALSE
        and settings.epilogue.lower() in _FALSE
        and settings.global_rdptr_autoinc == "0"
        and settings.rd_ptr_autoinc.isdecimal()
        and settings.rd_ptr_autoinc != "0"
    )


@queue_check(
    rule(
        "V211",
        "W",
        "a field of a queue, graph or op occurs twice",
        "The last one counts, earlier ones are not read. Fields whose occurrences all count are not reported: formats "
        "of in_df and lists of allocations are appended, attributes merged.",
        "{t: 1, t: 2}",
        "{t: 2}",
        "NETLIST 11.3 C1",
    )
)
def queue_overwrites(_: Context, queue: Queue) -> Findings:
    """Warn of a field of a queue that a later one of the same name overrides."""
    yield from _repeated_fields(queue)


@graph_check("V211")
def graph_overwrites(_: Context, graph: Graph) -> Findings:
    """Warn of a field of a graph that a later one of the same name overrides."""
    yield from _repeated_fields(graph)


@op_check("V211")
def op_overwrites(_: Context, op: Op) -> Findings:
    """Warn of a field of an op that a later one of the same name overrides."""
    yield from _repeated_fields(op)


def _repeated_fields(subject: Queue | Graph | Op) -> Findings:
    """Yield a finding for each scalar or list field that occurs again further down, where that one counts alone; not
    for those of `_READ_AGAIN`."""
    source = subject.source
    if not isinstance(source, Mapping) or len({name for name, _, _ in source.items()}) == len(source.pairs):
        return
    last = {name: (key, value) for name, key, value in source.items()}
    for name, key, value in source.items():
        last_key, last_value = last[name]
        if key is not last_key and (isinstance(value, Scalar) or name in _LISTS) and name not in _READ_AGAIN:
            message = f"{name} occurs again in line {last_key.line}, and that one counts"
            yield Finding(key.mark, message, repetition_hint(last_value, value, "leave one of them out", safe=False))


@op_check(
    rule(
        "V209",
        "W",
        "a reduced result is read element by element",
        "A reduce writes its result into one column (dim c) or row (dim r) of the tile; the other elements are zero. An"
        " op that works element by element uses those zeros, too: a softmax written so is silently wrong. Spread the"
        " result first, by a matmul with a tile of ones (column 0 times ones fills the row), or in a fused op by"
        " tile_broadcast. docs/recipes.md has both.",
        "{type: subtract, inputs: [x, max_of_x], input_1_tms: [broadcast: {c: 2}]} with max_of_x a reduce",
        "{type: matmul, inputs: [max_of_x, ones]} before it",
        "OPS 6.7, 7",
    ),
    "binary",
)
def spread_before_use(ctx: Context, op: Op) -> Findings:
    """Warn of a binary op that reads the result of a reduce as if it filled the tile: a reduce leaves its result in
    one row or column of the tile, and zeros beside it (OPS 6.7)."""
    if len(op.inputs) < 2:
        return
    for index in range(2):
        reduce = _reduce_behind(ctx, op.inputs[index])
        if reduce is not None and _is_used_unspread(ctx, op, index, reduce):
            place = " and ".join(_PLACE[dim] for dim in _ALONG[reduce.attributes.dim])
            message = (
                f"input {index} holds the result of reduce {reduce.name} in {place} of its tiles and zeros elsewhere"
            )
            hint = "spread it first: a matmul by a tile of ones, or tile_broadcast in a fused op"
            yield Finding(item_mark(op, "inputs", index), message, hint)


def _is_used_unspread(ctx: Context, op: Op, index: int, reduce: Op) -> bool:
    """Return whether a binary op certainly reads input `index`, the result of `reduce`, as if it filled its tiles: it
    repeats the tiles along the dim of the reduce, or its other operand is computed from what is reduced."""
    dims = _ALONG.get(reduce.attributes.dim, ())
    other = op.inputs[1 - index]
    beside = _reduce_behind(ctx, other)
    if not dims or (beside is not None and beside.attributes.dim == reduce.attributes.dim):
        return False
    if _is_broadcast(op, index, dims):
        return True
    return bool(reduce.inputs) and reduce.inputs[0] in _upstream(ctx, other)


def _is_broadcast(op: Op, index: int, dims: tuple[str, ...]) -> bool:
    """Return whether a TM repeats input `index` along one of the dimensions `dims` (r, c, z)."""
    if index < len(op.input_tms):
        tms = op.input_tms[index]
    else:
        tms = ()
    return any(tm.name == "broadcast" and tm.args[0] in dims and int(tm.args[1]) > 1 for tm in tms)


@op_check(
    rule(
        "V212",
        "W",
        "zeros beside a reduced column become the largest numbers of a block format",
        "A reduce along columns (dim c, rc) leaves zeros in the other columns of the tile. A function without a value"
        " at 0, such as a reciprocal or a logarithm, makes infinities or very large numbers of them. In a block format"
        " sixteen columns share an exponent, which is then that of the large numbers, and the result in column 0"
        " becomes 0. Write 16 bits, or spread the column first. The same happens in the padding of a tensor whose last"
        " dimension is no multiple of 16; the netlist does not show it, so it is not reported. Compiled netlists have"
        " 16 bits there.",
        "{type: reciprocal, inputs: [max_of_rows], out_df: Bfp8_b} with max_of_rows a reduce",
        "{type: reciprocal, inputs: [max_of_rows], out_df: Float16_b}",
        "OPS 5, 6.7, FORMATS 4",
    ),
    "sfpu",
)
def zeros_in_block(ctx: Context, op: Op) -> Findings:
    """Warn of an sfpu op that is large at 0, on a reduced column, with a block format: column 0 holds the numbers,
    and fifteen other columns share its exponent (OPS 6.7)."""
    if not op.has("large at 0") or not op.inputs or not _is_block(op.out_df):
        return
    reduce = _reduce_behind(ctx, op.inputs[0])
    if any(tm.name == "transpose" for tms in op.input_tms[:1] for tm in tms):
        column = "r"
    else:
        column = "c"
    if reduce is not None and column in _ALONG.get(reduce.attributes.dim, ()):
        yield _zeros_finding(op, op.type, reduce.name)


def _reduced_columns(ctx: Context, op: Op) -> dict[str, str]:
    """Return the input buffers of a fused op that hold a reduced column, each with the name of the reduce."""
    columns: dict[str, str] = {}
    for number, name in enumerate(op.inputs):
        reduce = _reduce_behind(ctx, name)
        if reduce is not None and "c" in _ALONG.get(reduce.attributes.dim, ()):
            columns[f"input{number}"] = reduce.name
    return columns


@fused_check("V212")
def zeros_in_fused_block(ctx: Context, use: FusedUse) -> Findings:
    """Warn of a fused op that writes a block format and whose last step is large at 0, on a column that another op or
    an earlier step reduced (OPS 6.7)."""
    if not _is_block(use.op.out_df):
        return
    columns = _reduced_columns(ctx, use.op)
    for step in use.steps:
        sub = step.sub
        reduce_name = ""
        if len(sub.inputs) == 1 and not any(sub.input_tms):
            reduce_name = columns.get(sub.inputs[0], "")
        if sub.output == "output" and reduce_name and sub.has("large at 0"):
            yield _zeros_finding(use.op, sub.type, reduce_name)
        columns[sub.output] = _column_after(sub, reduce_name)


def _column_after(sub: SubOp, reduce_name: str) -> str:
    """Return the name of the reduce whose column the result of a sub-op holds, "" if it holds none. `reduce_name`
    is that of its operand.
    """
    if sub.has("reduces"):
        return sub.name if sub.attributes.dim == "c" else ""
    return reduce_name if sub.has("tile by tile") else ""


def _zeros_finding(op: Op, type: str, reduce: str) -> Finding:
    """Return the finding about an op that computes a function of type `type`, large at 0, of the result of the
    reduce named `reduce`.
    """
    held = f"{type} of the result of reduce {reduce}, which has zeros beside its column"
    wide = _WIDE[FORMATS[op.out_df].family or "b"]
    hint = f"write out_df: {wide}, or spread the column first"
    return Finding(op.at("out_df"), f"{held}: they take the exponent that sixteen columns of {op.out_df} share", hint)


def _is_block(df: str) -> bool:
    """Return whether a format is a block format, whose elements share exponents. False for an unknown one."""
    return df in FORMATS and FORMATS[df].kind == "block"


def _reduce_behind(ctx: Context, name: str) -> Op | None:
    """Return the reduce whose result a queue or op holds, through ops that leave elements where they are, or None."""
    for _ in range(_FAR):
        name = _producer(ctx, name)
        op = ctx.ops.get(name)
        if op is None or name in ctx.broken:
            return None
        if op.has("reduces"):
            return op
        declaration = OP_TYPES.get(op.type)
        keeps_places = declaration is not None and declaration.one_input and declaration.has("tile by tile")
        if not keeps_places or len(op.inputs) != 1 or any(op.input_tms):
            return None
        name = op.inputs[0]
    return None


def _upstream(ctx: Context, name: str) -> set[str]:
    """Return a name and the names from which it is computed, `_FAR` of them at most."""
    names: set[str] = set()
    ahead = deque([name])
    while ahead and len(names) < _FAR:
        current = ahead.popleft()
        if current not in names:
            names.add(current)
            ahead.extend(_direct_sources(ctx, current))
    return names


def _direct_sources(ctx: Context, name: str) -> Iterator[str]:
    """Yield the inputs of an op, or the op that feeds a queue; nothing for rams and queues of the host."""
    op = ctx.ops.get(name)
    if op is not None:
        yield from op.inputs
    elif _producer(ctx, name) != name:
        yield _producer(ctx, name)


def _producer(ctx: Context, name: str) -> str:
    """Return the op that feeds a queue. Rams, queues of the host and anything else count as their own producers."""
    queue = ctx.queues.get(name)
    if queue is None or queue.host_fed or queue.is_ram:
        return name
    return queue.input


@netlist_check(
    rule(
        "V217",
        "W",
        "an address looks hexadecimal and has no 0x",
        "Without 0x an address is decimal, and octal with a leading 0: 11000000 is 0xa7d8c0, far below the 0x11000000"
        " that was meant. A number of five to eight digits is reported if another address of the netlist has 0x, if it"
        " ends in 000, or if only its hexadecimal reading is a multiple of 32.",
        "dram: [[0, 11000000]]",
        "dram: [[0, 0x11000000]]",
        "NETLIST 1.1, 1.3",
    )
)
def addresses_without_prefix(_: Context, netlist: Netlist) -> Findings:
    """Warn of addresses in decimal or octal that were most likely meant as hexadecimal numbers."""
    addresses: list[tuple[Queue, Scalar]] = []
    for queue in netlist.queues.values():
        addresses.extend((queue, node) for node in _address_nodes(queue))
    has_prefixes = any(node.text[:2] in ("0x", "0X") for _, node in addresses)
    for queue, node in addresses:
        text = node.text
        value = parse_address(text)
        if value is None or not _LONG_NUMBER.fullmatch(text) or not (has_prefixes or _looks_hexadecimal(text, value)):
            continue
        meant = int(text, 16)
        base = {"0": "octal"}.get(text[0], "decimal")
        message = f"queue {queue.written_name or queue.name}: address {text} is {base}: {value:#x}"
        yield Finding(node.mark, message, replacing(f"did you mean {meant:#x}?", text, f"{meant:#x}", safe=False))


def _looks_hexadecimal(text: str, value: int) -> bool:
    """Return whether the digits of an address are more likely hexadecimal: they are round, or aligned only then."""
    return text.endswith(_ROUND) or (int(text, 16) % _ALIGNMENT == 0 and value % _ALIGNMENT != 0)


def _address_nodes(queue: Queue) -> Iterator[Scalar]:
    """Yield the addresses of a queue's buffers as the file writes them."""
    if not isinstance(queue.source, Mapping):
        return
    allocations = queue.source.find(queue.loc)
    if not isinstance(allocations, Sequence):
        return
    for allocation in allocations.items:
        address = allocation
        if isinstance(allocation, Sequence) and len(allocation.items) > 1:
            address = allocation.items[1]
        if isinstance(address, Scalar):
            yield address


@netlist_check(
    rule(
        "V221",
        "W",
        "a queue or ram that the host fills and no op reads",
        "The host writes it, and nothing depends on what it holds. Most likely an op reads another queue than was "
        "meant. The memory of dual-view rams is read under the names of their views.",
        "inputs: [x, w] beside queues x, w and a ram `bias` of the host",
        "inputs: [x, w, bias]",
        "docs/netlists/check.md",
    )
)
def host_data_is_read(ctx: Context, netlist: Netlist) -> Findings:
    """Warn of each queue or ram that the host fills and that no op reads under any of its names."""
    definitions = ctx.queues.keys() | ctx.ops.keys()
    if ctx.doubtful or ctx.broken or not ctx.readers.keys() <= definitions:
        return
    viewed = {queue.alias for queue in netlist.queues.values() if queue.alias}
    for queue in netlist.queues.values():
        if queue.host_fed and queue.name not in ctx.readers and not _has_other_names(queue, viewed):
            name = queue.written_name or queue.name
            yield Finding(queue.at(), f"queue {name} is filled by the host, and no op reads it")


def _has_other_names(queue: Queue, viewed: Container[str]) -> bool:
    """Return whether ops may read a ram under other names: it is a view, or one of the rams `viewed`, which have
    views."""
    return bool(queue.alias) or queue.name in viewed or queue.written_name in viewed


# Found while a netlist is read, or not checked
rule(
    "V210",
    "W",
    "a comment ignores a finding that is not there, or cannot be ignored",
    "`# buda: ignore[V154]` silences findings of its line, alone on a line those of the next one, and"
    " `# buda: ignore-file[V154]` those of the whole document. A comment without effect would hide later "
    "findings. Findings that refuse a netlist when it is loaded cannot be ignored.",
    "# buda: ignore[V15]",
    "# buda: ignore[V154]",
    "docs/netlists/ci.md",
)
