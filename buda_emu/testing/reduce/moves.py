"""What may be smaller in a netlist, the largest steps first. A move offers documents that may be invalid: the search
loads each before it is tried."""

from collections import abc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from buda_emu.netlist.contract import contracted
from buda_emu.netlist.model import (
    Declare,
    EndLoop,
    Execute,
    Instruction,
    Loop,
    Netlist,
    Op,
    Pad,
    Param,
    Queue,
    QueueSettings,
    VarInst,
)
from buda_emu.netlist.nodes import Mapping, Node
from buda_emu.netlist.reader import Document
from buda_emu.netlist.sourced import evolve
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.blocking import FULL_TILE, Blocking
from buda_emu.spec.ops import OP_TYPES
from buda_emu.testing.reduce.cut import executes, tidy, without_ops

Move = Callable[[Netlist], Iterator[Document]]
_PLAIN_FORMAT = "Float16_b"
_ALL = "all"


def fewer_ops(netlist: Netlist) -> Iterator[Document]:
    """Without runs of ops: halves, quarters, and so on to single ones."""
    names = [op.name for op in _ops_of(contracted(netlist))]
    size = len(names) - 1
    while size:
        for start in range(0, len(names), size):
            gone = names[start : start + size]
            if len(gone) < len(names):
                yield without_ops(netlist, gone)
                yield without_ops(netlist, [name for name in names if name not in gone])
        size //= 2


def fewer_programs(netlist: Netlist) -> Iterator[Document]:
    """One program of those that execute something; without each of them. Graphs that none executes go."""
    written = contracted(netlist)
    names = [name for name, program in written.programs.items() if executes(program)]
    for kept in [[name] for name in names] + [[name for name in names if name != gone] for gone in names]:
        if not 0 < len(kept) < len(written.programs):
            continue
        steps = [step for name in kept for step in written.programs[name].instructions]
        run = {step.graph for step in steps if isinstance(step, Execute)}
        gone = [op.name for name, graph in written.graphs.items() if name not in run for op in graph.ops]
        document = without_ops(netlist, gone)
        document.programs = {name: program for name, program in document.programs.items() if name in kept}
        document.program_order = [name for name in document.program_order if name in kept]
        yield document


def fewer_instructions(netlist: Netlist) -> Iterator[Document]:
    """Loops that run once or not at all, single instructions left out, parameters and variables by their values."""
    for name, program in contracted(netlist).programs.items():
        steps = program.instructions

        def changed(new: Iterable[Instruction | None], name: str = name) -> Document:
            document = contracted(netlist)
            kept = tuple(step for step in new if step is not None)
            document.programs[name] = evolve(document.programs[name], instructions=kept)
            return tidy(document)

        yield changed(None if isinstance(step, Loop | EndLoop) else step for step in steps)
        yield changed(None if isinstance(step, VarInst) else step for step in steps)
        for number, step in enumerate(steps):
            if isinstance(step, Loop) and step.count != "1":
                yield changed(evolve(step, count="1") if at == number else other for at, other in enumerate(steps))
            if not isinstance(step, Loop | EndLoop):
                yield changed(None if at == number else other for at, other in enumerate(steps))
        yield changed(map(_with_literals, steps))


def _with_literals(step: Instruction) -> Instruction | None:
    """An execute whose pointers are literals; no variables any more."""
    if isinstance(step, Declare | Param | VarInst):
        return None
    if not isinstance(step, Execute):
        return step
    fields = ("rd_ptr_local", "rd_ptr_global", "wr_ptr_global", "zero", "prologue", "epilogue")

    def plain(setting: QueueSettings) -> QueueSettings:
        return evolve(
            setting,
            **{name: "0" for name in fields[:3] if getattr(setting, name).startswith("$")},
            **{name: "false" for name in fields[3:] if getattr(setting, name).startswith("$")},
        )

    return evolve(step, queue_settings=tuple(map(plain, step.queue_settings)))


def fewer_queues(netlist: Netlist) -> Iterator[Document]:
    """Without queues of results that something else takes, too; without each operand that an op need not have."""
    document = contracted(netlist)
    fed: dict[str, list[str]] = {}
    for name, queue in document.queues.items():
        fed.setdefault(queue.input, []).append(name)
    read = {name for op in netlist.ops.values() for name in op.inputs}
    for name, queue in document.queues.items():
        if not queue.host_fed and name not in read and (queue.input in read or len(fed[queue.input]) > 1):
            made = contracted(netlist)
            del made.queues[name]
            yield tidy(made)
    for name, source in _same_operands(document):
        yield _ops(netlist, lambda op, old=name, new=source: _reading(op, old, new))


def _reading(op: Op, old: str, new: str) -> Op:
    return evolve(op, inputs=tuple(new if name == old else name for name in op.inputs)) if old in op.inputs else op


def _same_operands(document: Document) -> Iterator[tuple[str, str]]:
    """Pairs of host-fed queues of one shape, of which the first could be the second."""
    first: dict[tuple[Any, ...], str] = {}
    for name, queue in document.queues.items():
        if queue.host_fed:
            key = (queue.type, queue.blocking.shape, queue.df, queue.entries, queue.target_device)
            if key in first:
                yield name, first[key]
            first.setdefault(key, name)


def fewer_inputs(netlist: Netlist) -> Iterator[Document]:
    """One input of each epoch, then half of them; queues of as many entries."""
    for of_graphs, of_queues in ((1, 1), (None, 1), (2, 2), (None, 2)):
        document = contracted(netlist)
        for name, graph in document.graphs.items():
            document.graphs[name] = evolve(graph, input_count=_fewer(graph.input_count, of_graphs))
        for name, queue in document.queues.items():
            document.queues[name] = evolve(queue, entries=_fewer(queue.entries, of_queues))
        yield document


def _fewer(count: int, part: int | None) -> int:
    """1, or half of a count; None: as many."""
    return count if part is None else 1 if part == 1 else max(1, count // part)


def fewer_cores(netlist: Netlist) -> Iterator[Document]:
    """Every op and queue on one core and in one buffer; then each by itself."""

    def whole(blocking: Blocking) -> Blocking:
        (rows, cols), (m, n) = blocking.grid_size, blocking.mblock
        return replace(blocking, grid_size=(1, 1), mblock=(m * rows, n * cols))

    yield _all(netlist, whole)
    yield from _each(netlist, whole)


def smaller(netlist: Netlist) -> Iterator[Document]:
    """t, rows and columns: each size that occurs becomes one, or half, wherever it occurs."""
    shapes = [item.blocking.shape for item in (*netlist.queues.values(), *netlist.ops.values())]
    for axis in range(3):
        for size in sorted({shape[axis] for shape in shapes if shape[axis] > 1}, reverse=True):
            for new in dict.fromkeys((1, size // 2)):
                for axes in ((axis,), (1, 2)):
                    yield _all(netlist, partial(_resized, axes=axes, size=size, new=new))


def _resized(blocking: Blocking, axes: tuple[int, ...], size: int, new: int) -> Blocking:
    """A blocking whose axes of `size` (t, rows, columns: 0 to 2) have `new` tiles, in one ublock of one core."""
    for axis in axes:
        if blocking.shape[axis] != size:
            continue
        if axis == 0:
            blocking = replace(blocking, t=new)
            continue
        at = axis - 1
        parts = {name: list(getattr(blocking, name)) for name in ("grid_size", "mblock", "ublock")}
        parts["grid_size"][at], parts["mblock"][at], parts["ublock"][at] = 1, new, 1
        if size % (parts["ublock"][at] * new) == 0 and blocking.ublock[at] <= new and new % blocking.ublock[at] == 0:
            parts["mblock"][at], parts["ublock"][at] = new // blocking.ublock[at], blocking.ublock[at]
        blocking = replace(blocking, **{name: tuple(values) for name, values in parts.items()})
    return blocking


def simpler_ops(netlist: Netlist) -> Iterator[Document]:
    """Attributes, TMs and fields of ops as they are where nobody writes them: everywhere, then one op at a time."""
    yield _ops(netlist, _plain_op)
    for op in _ops_of(contracted(netlist)):
        for new in _simpler(op):
            yield _ops(netlist, lambda item, new=new: new if item.name == new.name else item)


def _ops_of(document: Document) -> list[Op]:
    return [op for graph in document.graphs.values() for op in graph.ops]


def _plain_op(op: Op) -> Op:
    """Without what changes no shape."""
    return evolve(
        op,
        untilize_output=False,
        gradient_op=False,
        grid_transpose=False,
        overlay_size=-1,
        input_buf_min_size_tiles=(),
        input_dram_io_buf_size_tiles=(),
    )


def _simpler(op: Op) -> Iterator[Op]:
    plain = _plain_op(op)
    if plain != op:
        yield plain
    if any(op.input_tms):
        yield evolve(op, input_tms=((),) * len(op.inputs))
        for number, tms in enumerate(op.input_tms):
            for at in range(len(tms)):
                new = (*tms[:at], *tms[at + 1 :])
                yield evolve(op, input_tms=(*op.input_tms[:number], new, *op.input_tms[number + 1 :]))
    if any(pad != Pad() for pad in (*op.input_pad, *op.input_unpad)):
        none = (Pad(),) * len(op.inputs)
        yield evolve(op, input_pad=none, input_unpad=none)
    given = op.attributes.given
    for name in sorted(given, key=list(ATTRIBUTES).index):
        without = replace(op.attributes, given=given - {name}, **{name: ATTRIBUTES[name].default})
        yield evolve(op, attributes=without)
    if {"m_k", "u_kt"} <= given and op.attributes.m_k * op.attributes.u_kt > 1:
        yield evolve(op, attributes=replace(op.attributes, m_k=1, u_kt=1))
        yield evolve(op, attributes=replace(op.attributes, m_k=1, u_kt=op.attributes.m_k * op.attributes.u_kt))
    if len(op.inputs) > 1 and OP_TYPES[op.type].inputs[0] < len(op.inputs):
        yield evolve(
            op,
            inputs=op.inputs[:-1],
            in_df=op.in_df[:-1],
            input_tms=op.input_tms[:-1],
            input_pad=op.input_pad[:-1],
            input_unpad=op.input_unpad[:-1],
            attributes=replace(op.attributes, given=given - {"bias"}, bias=False),
        )


def plainer_formats(netlist: Netlist) -> Iterator[Document]:
    """Everything in one format and fidelity; then each format that occurs."""
    formats = {queue.df for queue in netlist.queues.values()}
    formats |= {name for op in netlist.ops.values() for name in (*op.in_df, op.out_df, op.intermed_df, op.acc_df)}
    for old in (_ALL, *sorted(formats - {_PLAIN_FORMAT, ""})):
        yield _in_formats(netlist, old)
    yield _ops(netlist, lambda op: evolve(op, math_fidelity="HiFi3"))


def _in_formats(netlist: Netlist, old: str) -> Document:
    def new(name: str) -> str:
        return _PLAIN_FORMAT if name and old in (_ALL, name) else name

    document = _ops(
        netlist,
        lambda op: evolve(
            op,
            in_df=tuple(map(new, op.in_df)),
            out_df=new(op.out_df),
            intermed_df=new(op.intermed_df),
            acc_df=new(op.acc_df),
        ),
    )
    document.queues = {name: evolve(queue, df=new(queue.df)) for name, queue in document.queues.items()}
    return document


def simpler_queues(netlist: Netlist) -> Iterator[Document]:
    """Queues of full tiles, tilized, without TMs; a netlist for one chip and one architecture."""

    def plain(queue: Queue) -> Queue:
        return evolve(queue, input_tms=(), layout="tilized", read_ports=(), write_ports=(), alias="")

    document = contracted(netlist)
    document.queues = {name: plain(queue) for name, queue in document.queues.items()}
    yield document
    yield _all(netlist, lambda blocking: replace(blocking, tile_dim=FULL_TILE))
    document = contracted(netlist)
    document.queue_devices, document.graph_devices = {}, {}
    document.queues = {name: evolve(queue, target_device=0) for name, queue in document.queues.items()}
    document.graphs = {name: evolve(graph, target_device=0) for name, graph in document.graphs.items()}
    yield document
    document = contracted(netlist)
    document.archs = (netlist.arch_name,)
    yield document


def fewer_sections(netlist: Netlist) -> Iterator[Document]:
    """Without test-config, performance-check and sections of other programs: all, each, then the entries of each."""
    for gone in (list(netlist.sections), *([name] for name in netlist.sections)):
        document = contracted(netlist)
        document.sections = {name: node for name, node in document.sections.items() if name not in gone}
        yield document
    for name, node in netlist.sections.items():
        for smaller_node in _without_entries(node):
            document = contracted(netlist)
            document.sections[name] = smaller_node
            yield document


def _without_entries(node: Node) -> Iterator[Node]:
    """A map without each of its pairs, then the same in the maps that it holds."""
    if not isinstance(node, Mapping):
        return
    for at, (key, value) in enumerate(node.pairs):
        before, after = node.pairs[:at], node.pairs[at + 1 :]
        yield Mapping([*before, *after], node.line, node.column, node.end_column)
        for other in _without_entries(value):
            yield Mapping([*before, (key, other), *after], node.line, node.column, node.end_column)


def _ops(netlist: Netlist, change: Callable[[Op], Op]) -> Document:
    document = contracted(netlist)
    for name, graph in document.graphs.items():
        document.graphs[name] = evolve(graph, ops=tuple(map(change, graph.ops)))
    return tidy(document)


def _all(netlist: Netlist, change: Callable[[Blocking], Blocking]) -> Document:
    """Every blocking changed; buffers and inner dimensions follow."""
    document = contracted(netlist)
    document.queues = {name: _with(queue, change(queue.blocking)) for name, queue in document.queues.items()}
    for name, graph in document.graphs.items():
        ops = tuple(evolve(op, blocking=change(op.blocking)) for op in graph.ops)
        document.graphs[name] = evolve(graph, ops=ops)
    shapes = {item.name: item.blocking for item in (*document.queues.values(), *_ops_of(document))}
    for name, graph in document.graphs.items():
        document.graphs[name] = evolve(graph, ops=tuple(_with_inner(op, shapes) for op in graph.ops))
    return document


def _each(netlist: Netlist, change: Callable[[Blocking], Blocking]) -> Iterator[Document]:
    for name in contracted(netlist).queues:
        document = contracted(netlist)
        queue = document.queues[name]
        if change(queue.blocking) != queue.blocking:
            document.queues[name] = _with(queue, change(queue.blocking))
            yield document
    for op in _ops_of(contracted(netlist)):
        new = evolve(op, blocking=change(op.blocking))
        if new != op:
            yield _ops(netlist, lambda item, new=new: new if item.name == new.name else item)


def _with(queue: Queue, blocking: Blocking) -> Queue:
    return evolve(queue, blocking=blocking, buffers=queue.buffers[: blocking.cells])


def _with_inner(op: Op, shapes: abc.Mapping[str, Blocking]) -> Op:
    """The op with an inner dimension that is the first operand's columns, where it has one and no TMs change it."""
    inner = {"m_k", "u_kt"} <= op.attributes.given
    source = shapes.get(op.inputs[0]) if op.inputs else None
    if not inner or source is None or op.input_tms[0] or op.attributes.identity:
        return op
    along = source.rows if op.attributes.dim == "r" else source.t if op.attributes.dim == "z" else source.cols
    if op.attributes.m_k * op.attributes.u_kt == along:
        return op
    return evolve(op, attributes=replace(op.attributes, m_k=1, u_kt=along))


MOVES: Final[tuple[tuple[str, Move], ...]] = (
    ("sections", fewer_sections),
    ("programs", fewer_programs),
    ("ops", fewer_ops),
    ("inputs", fewer_inputs),
    ("instructions", fewer_instructions),
    ("queues", fewer_queues),
    ("cores", fewer_cores),
    ("sizes", smaller),
    ("op fields", simpler_ops),
    ("formats", plainer_formats),
    ("queue fields", simpler_queues),
)
"""In the order in which they are tried: each makes the next ones cheaper."""
