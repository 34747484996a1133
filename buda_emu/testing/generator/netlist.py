"""One netlist from one seed: graphs of ops that follow each other, queues between them, a program."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from buda_emu.netlist import nodes
from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import (
    Allocate,
    Deallocate,
    Declare,
    EndLoop,
    Execute,
    Instruction,
    Loop,
    Netlist,
    Op,
    Param,
    Program,
    Queue,
    QueueSettings,
    Tm,
    VarInst,
)
from buda_emu.netlist.printer import document_text
from buda_emu.netlist.reader import Document
from buda_emu.netlist.sourced import SourcedT, evolve
from buda_emu.netlist.variants import LOOP
from buda_emu.spec.blocking import LEGAL_TILE_DIMS, Blocking
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass
from buda_emu.testing.generator.builders import (
    binary,
    embedding,
    ethernet,
    quantization,
    reduce,
    splice,
    tilizer,
    topk,
    unary,
)
from buda_emu.testing.generator.builders_of_products import depthwise, fused, matmul
from buda_emu.testing.generator.draft import Draw, NetlistDraft, NoRoomError, OpenGraph, with_attribute
from buda_emu.testing.generator.operands import value_of


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often the graphs run: in a loop, in two nested ones, or one time after the other without a loop."""

    outer: int
    inner: int
    parameter: bool
    """The inner count is `$p_loop_count`."""
    looped: bool
    split: bool
    """Every graph has a program of its own."""

    @property
    def count(self) -> int:
        """Executes of each graph."""
        return self.outer * self.inner


def draw_rounds(draft: NetlistDraft) -> Rounds:
    """From one round to six."""
    draw = draft.draw
    looped = draw.chance(75)
    outer = draw.pick((1, 1, 1, 2)) if looped else 1
    inner = draw.pick((1, 2, 3)) if looped else draw.pick((1, 1, 2))
    return Rounds(
        outer=outer,
        inner=inner,
        parameter=looped and draw.chance(40),
        looped=looped,
        split=draft.chips == 1 and draw.chance(15),
    )


def add_programs(draft: NetlistDraft, rounds: Rounds) -> None:
    """Gives queues their entries and writes the program that runs all graphs, or one for each."""
    sizes = {queue.name: _entries(draft, queue, rounds) for queue in draft.document.queues.values()}
    for queue, entries in sizes.items():
        draft.document.queues[queue] = evolve(draft.document.queues[queue], entries=entries)
    for number, graphs in enumerate([[graph] for graph in draft.graphs] if rounds.split else [draft.graphs]):
        name = f"run_fwd_{number}" if rounds.split else "run_fwd"
        instructions = tuple(_instructions(draft, rounds, graphs))
        draft.document.programs[name] = Program(name=name, instructions=instructions)
        draft.document.program_order.append(name)


def _entries(draft: NetlistDraft, queue: Queue, rounds: Rounds) -> int:
    """A constant keeps its one; the host fills a stream before the program runs and empties results after it."""
    if queue.name in draft.constants or queue.type == "ram":
        return queue.entries
    between = not rounds.split and not queue.host_fed and any(queue.name in graph.read for graph in draft.graphs)
    return (2 if queue.name in draft.strided else 1) * queue.entries * (1 if between else rounds.count)


def _pointer(inputs: int, entries: int) -> tuple[str, str]:
    return f"$l_{inputs}_{entries}", f"$g_{inputs}_{entries}"


def _instructions(draft: NetlistDraft, rounds: Rounds, graphs: list[OpenGraph]) -> Iterator[Instruction]:
    draw = draft.draw
    pointers: dict[tuple[str, str], tuple[int, int]] = {}
    executes = [_execute(draft, graph, pointers) for graph in graphs]
    if rounds.parameter:
        yield Param(names=(LOOP,))
    count = LOOP if rounds.parameter else str(rounds.inner)
    computed = [("$rounds", "0")] if rounds.looped and not rounds.parameter and draw.chance(40) else []
    kind = draw.pick(("var", "var", "staticvar"))
    constant = [("$c_one", "1")] if computed and kind == "var" and draw.sometimes(30, "c_one") else []
    variables = [(name, "0") for pair in pointers for name in pair] + computed + constant
    if variables:
        yield Declare(kind=kind, variables=tuple(variables))
    if kind == "staticvar":  # a second run of the program starts where this one ends
        yield from (VarInst(out=name, opcode="set", args=("0",)) for name, _ in variables)
    if computed:
        opcode, before = draw.pick((("add", ("0",)), ("mul", ("1",)), ("inc", ())))
        if constant:
            opcode = "mul"
            before = ("$c_one",)
        yield VarInst(out="$rounds", opcode=opcode, args=(*before, count))
        count = "$rounds"
    dynamic = _dynamic(draft) if not rounds.split and draw.sometimes(25, "allocate_queue") else ()
    if dynamic:
        yield Allocate(queues=dynamic)
    body = [*executes, *_moved(pointers)]
    if rounds.looped:
        if rounds.outer > 1:
            yield Loop(count=str(rounds.outer))
        yield Loop(count=count)
        yield from body
        yield EndLoop()
        if rounds.outer > 1:
            yield EndLoop()
    else:
        for _ in range(rounds.count):
            yield from body
    if dynamic:
        yield Deallocate(queues=dynamic)


def _moved(pointers: dict[tuple[str, str], tuple[int, int]]) -> Iterator[Instruction]:
    """Each pair of pointers on by the inputs of an execute, modulo twice the entries (NETLIST 4.1)."""
    for (local, over), (inputs, entries) in pointers.items():
        for name in (local, over):
            yield VarInst(out=name, opcode="incwrap", args=(str(inputs), str(2 * entries)))


def _dynamic(draft: NetlistDraft) -> tuple[str, ...]:
    """Queues between graphs, which may come and go (NETLIST 3.6)."""
    queues = draft.document.queues.values()
    return tuple(
        queue.name
        for queue in queues
        if not queue.host_fed and queue.type == "queue" and any(queue.name in graph.read for graph in draft.graphs)
    )


def _execute(draft: NetlistDraft, graph: OpenGraph, pointers: dict[tuple[str, str], tuple[int, int]]) -> Execute:
    gradients = {op.name for op in graph.ops if op.gradient_op}
    settings: list[QueueSettings] = []
    for queue in draft.document.queues.values():
        if queue.name in graph.read:
            settings.append(_reading(draft, graph, queue, pointers))
        elif queue.name in draft.stepped and any(op.name == queue.input for op in graph.ops):
            settings.append(
                QueueSettings(queue=queue.name, rd_ptr_global="0", wr_ptr_global="0", global_wrptr_autoinc="1")
            )
        elif queue.input in gradients:
            settings.append(
                QueueSettings(
                    queue=queue.name,
                    prologue="true",
                    epilogue="true",
                    zero=draft.draw.pick(("true", "false")),
                    rd_ptr_global="0",
                    wr_ptr_global="0",
                )
            )
    return Execute(graph=graph.name, queue_settings=tuple(settings))


def _reading(
    draft: NetlistDraft, graph: OpenGraph, queue: Queue, pointers: dict[tuple[str, str], tuple[int, int]]
) -> QueueSettings:
    if queue.name in draft.constants:
        local, written = ("", "0") if queue.type == "ram" else ("0", "")
        kept = queue.type == "ram" and draft.draw.chance(30)
        return QueueSettings(
            queue=queue.name,
            prologue="true",
            rd_ptr_global="0",
            rd_ptr_local=local,
            wr_ptr_global=written,
            read_only="true" if kept else "false",
        )
    if queue.name in draft.stepped:
        return QueueSettings(queue=queue.name, rd_ptr_global="0", wr_ptr_global="0", global_rdptr_autoinc="1")
    stride = 2 if queue.name in draft.strided else 1
    step = graph.input_count * stride
    pair = _pointer(step, queue.entries)
    pointers[pair] = (step, queue.entries)
    alone = sum(queue.name in other.read for other in draft.graphs) == 1
    popping = stride == 1 and queue.host_fed and alone and draft.draw.chance(15)
    return QueueSettings(
        queue=queue.name,
        rd_ptr_local=pair[0],
        rd_ptr_global=pair[1],
        rd_ptr_autoinc=str(stride),
        global_rdptr_autoinc="1" if popping else "0",
    )


Builder = Callable[[NetlistDraft, str], None]
_OF_FAMILY: Final[Mapping[str, Builder]] = {
    "matmul": matmul, "depthwise": depthwise, "binary": binary, "quantization": quantization, "unary": unary,
    "sfpu": unary, "reduce": reduce, "splice": splice, "embedding": embedding, "tilizer": tilizer, "topk": topk,
    "fused": fused, "ethernet": ethernet,
}  # fmt: skip
GENERATED: Final = tuple(name for name, op in OP_TYPES.items() if op.family in _OF_FAMILY and OP_TYPES.is_own(name))
"""Op types that are drawn from."""
_MOST_TRIES = 200
_TILES: Final = {f"{high}x{wide}": (high, wide) for high, wide in LEGAL_TILE_DIMS}
_UNTILIZED = ("Float16", "Float16_b", "Float32")


@dataclass(frozen=True, slots=True)
class Budget:
    """How large a netlist becomes: ops in all, graphs (epochs), tiles of one tensor, inputs of an epoch."""

    ops: int = 6
    graphs: int = 2
    tiles: int = 12
    inputs: int = 3


@dataclass(frozen=True, slots=True)
class Generated:
    """A valid netlist and its text. `tries`: how many were drawn for it, the last of which had no errors. `refused`:
    attributes that it may not have, with the rules that say so."""

    text: str
    netlist: Netlist
    tries: int
    refused: tuple[str, ...] = ()


def generate(
    seed: "int | Random",
    *,
    arch: str = "wormhole_b0",
    budget: Budget | None = None,
    op_types: Sequence[str] = GENERATED,
    wanted: Collection[str] = (),
) -> Generated:
    """A netlist without findings that refuse it; the same for the same seed. `op_types`: those that ops are drawn of.
    `wanted`: words of the language that it has more likely than others (`steering.py`).

    Raises HostError for an op type that is not known, and where none of many tries was valid.
    """
    unknown = [name for name in op_types if name not in GENERATED]
    if unknown or not op_types:
        raise HostError(f"op types {', '.join(unknown) or '(none)'}: known are {', '.join(GENERATED)}")
    draw = Draw(seed if isinstance(seed, Random) else Random(seed), frozenset(wanted))
    for tries in range(1, _MOST_TRIES + 1):
        draft = _drawn(draw, arch, budget or Budget(), op_types)
        if draft is None:
            continue
        text = document_text(draft.document)
        found = check_text(text, "generated.yaml", arch)
        if found.netlist is not None:
            return _decorated(draw, draft.document, Generated(text, found.netlist, tries))
    raise HostError(f"no valid netlist of {', '.join(op_types)} for {arch} in {_MOST_TRIES} tries")


def _decorated(draw: Draw, document: Document, made: Generated) -> Generated:
    """The netlist with attributes that no builder draws."""
    refused: list[str] = []
    for _ in range(draw.pick((0, 1, 1, 2, 3))):
        found = with_attribute(draw, document)
        if isinstance(found, str):
            refused += [found] if found else []
        else:
            document, netlist = found
            made = replace(made, text=document_text(document), netlist=netlist)
    return replace(made, refused=tuple(refused))


def _drawn(draw: Draw, arch: str, budget: Budget, op_types: Sequence[str]) -> NetlistDraft | None:
    """One attempt; None where not one op found its place."""
    draft = NetlistDraft.new(draw, arch, budget.tiles)
    only_links = all(OP_TYPES[name].has("Ethernet") for name in op_types)
    small = [
        name for name in op_types if OP_TYPES[name].has("tile by tile") and OP_TYPES[name].family != "quantization"
    ]
    if arch != "grayskull" and small and draw.sometimes(10, *_TILES):
        draft.tile = _TILES[draw.pick(tuple(_TILES))]
        op_types = small
    elif budget.graphs > 1 and draw.chance(100 if only_links else 12):
        draft.chips = 2
    rounds = draw_rounds(draft)
    inputs = draw.integer(1, budget.inputs)
    draft.rounds = rounds.count
    count = max(draft.chips, draw.integer(1, budget.graphs))
    for number in range(count):
        _open(draft, number, inputs)
        for _ in range(draw.integer(1, max(1, budget.ops // count))):
            _add_op(draft, op_types)
        if not draft.graph.ops:
            draft.graphs.pop()
            continue
        _store(draft, last=number == count - 1)
        draft.close()
    if not draft.graphs:
        return None
    _set_rounds(draft, rounds)
    _set_tiles(draft)
    if _may_be_copied(draft) and draw.chance(6):
        draft.document.graph_devices = dict.fromkeys(draft.document.graphs, (0, 1))
        draft.document.queue_devices = dict.fromkeys(draft.document.queues, (0, 1))
    return draft


def _open(draft: NetlistDraft, number: int, inputs: int) -> None:
    """A new graph, which may read what graphs before it stored and what the host gave those. The second of two graphs
    on two chips reads the ops of the first, too: both run as one (NETLIST 1.8)."""
    rows, cols = draft.arch.grid
    free = {(row, col) for row in range(rows) for col in range(cols)}
    before = draft.graphs[-1] if draft.graphs else None
    family = before.family if before is not None else draft.draw.pick("bbba")
    graph = OpenGraph(name=f"graph_{number}", chip=number % draft.chips, input_count=inputs, free=free, family=family)
    draft.graphs.append(graph)
    if before is None:
        return
    graph.values += [
        value for value in before.values if value.is_queue and (draft.chips == 1 or value.name not in draft.constants)
    ]
    if graph.chip > before.chip:
        tiled = {op.name for op in before.ops if not op.untilize_output and not op.gradient_op}
        graph.values += [value for value in before.values if value.name in tiled]


def _add_op(draft: NetlistDraft, op_types: Sequence[str]) -> None:
    """One op; where it finds no room, another is drawn."""
    links = [name for name in op_types if OP_TYPES[name].has("Ethernet")] if draft.chips > 1 else []
    for _ in range(8):
        name = draft.draw.pick(links if links and draft.draw.chance(10) else op_types)
        queues = dict(draft.document.queues)
        fused_ops = dict(draft.document.fused_ops)
        constants = set(draft.constants)
        values = list(draft.graph.values)
        try:
            _OF_FAMILY[OP_TYPES[name].family](draft, name)
            return
        except NoRoomError:
            draft.document.queues, draft.document.fused_ops = queues, fused_ops
            draft.graph.values = values
            draft.constants = constants


def _store(draft: NetlistDraft, *, last: bool) -> None:
    """Queues for results: of every op that nothing reads, and of some that something does."""
    draw = draft.draw
    graph = draft.graph
    for number, op in enumerate(graph.ops):
        read = op.name in graph.read
        if read and not draw.chance(20) and not op.gradient_op:
            continue
        blocking = op.blocking
        if op.gradient_op:
            draft.queue("sum", blocking, op.out_df, source=op.name, kind="ram", entries=1)
            continue
        if not read and draw.sometimes(8, "in place") and _written_in_place(draft, op):
            continue
        flat = not read and _may_untilize(op) and draw.chance(15)
        if flat:
            graph.ops[number] = evolve(op, untilize_output=True)
            blocking = _one_buffer(blocking)
        if not flat and not read and draw.chance(8):
            ram = draft.queue("out", blocking, op.out_df, source=op.name, kind="ram", entries=graph.input_count)
            draft.stepped.add(ram.name)
            continue
        tms: tuple[Tm, ...] = ()
        if not flat and blocking.t > 1 and draw.chance(15):
            t, rows, cols = blocking.shape
            tms = (Tm("hstack", (t,)),)
            blocking = Blocking(grid_size=(1, 1), t=1, mblock=(rows, cols * t), ublock=(1, 1), ublock_order="r")
        queue = draft.queue("out", blocking, op.out_df, source=op.name, entries=graph.input_count, input_tms=tms)
        if not flat and not last and draw.chance(80):
            graph.values.append(value_of(queue))


def _written_in_place(draft: NetlistDraft, op: Op) -> bool:
    """Whether the op now writes a ram that its graph alone reads, as an optimizer does with weights."""
    graph = draft.graph
    queues = draft.document.queues
    others = {name for other in draft.graphs[:-1] for name in other.read} | {queue.alias for queue in queues.values()}
    positive = any(value.positive for value in graph.values if value.name == op.name)
    for name in sorted(graph.read & draft.constants - others):
        ram = queues[name]
        alike = (ram.df, ram.blocking.shape, ram.blocking.cells) == (op.out_df, op.blocking.shape, op.blocking.cells)
        if ram.type == "ram" and not ram.alias and alike and positive:
            queues[name] = evolve(ram, input=op.name, blocking=op.blocking)
            graph.values = [value for value in graph.values if value.name != name]
            return True
    return False


def _may_untilize(op: Op) -> bool:
    """NETLIST V029, V030, V096."""
    attributes = op.attributes
    whole = attributes.m_k <= 1 and attributes.dim != "z"
    return op.out_df in _UNTILIZED and op.blocking.ublock_order == "r" and whole


def _one_buffer(blocking: Blocking) -> Blocking:
    """The whole of it in one place, as an op that untilizes writes it (NETLIST V071, V077)."""
    (down, across) = blocking.grid_size
    (m, n) = blocking.mblock
    ublock = blocking.ublock
    return Blocking(
        grid_size=(1, 1),
        t=blocking.t,
        mblock=(m * down, n * across),
        ublock=ublock,
        ublock_order="r",
        tile_dim=blocking.tile_dim,
    )


def _may_be_copied(draft: NetlistDraft) -> bool:
    """Whether everything may stand on a list of chips: a name of an alias stays as it is, and copies of a queue in host
    memory are all of the first chip (NETLIST 1.7)."""
    queues = draft.document.queues.values()
    return draft.chips == 1 and not any(queue.alias or queue.loc == "host" for queue in queues)


def _set_tiles(draft: NetlistDraft) -> None:
    """Everything in tiles of the netlist's size."""
    document = draft.document

    def cut(item: SourcedT) -> SourcedT:
        return evolve(item, blocking=replace(getattr(item, "blocking"), tile_dim=draft.tile))  # noqa: B009

    document.queues = {name: cut(queue) for name, queue in document.queues.items()}
    for name, graph in document.graphs.items():
        document.graphs[name] = evolve(graph, ops=tuple(map(cut, graph.ops)))


def _set_rounds(draft: NetlistDraft, rounds: Rounds) -> None:
    """Programs, and what a test is to know: what `$p_loop_count` is (NETLIST 3.7), and which inputs are sparse."""
    add_programs(draft, rounds)
    config: dict[str, Any] = {}
    if rounds.parameter:
        config["test-args"] = {"microbatch_count": str(rounds.inner)}
    if draft.sparse:
        config["stimulus-config"] = {"overrides": {name: {"type": "sparse"} for name in draft.sparse}}
    if config:
        draft.document.sections |= {"test-config": _node(config)}


def _node(content: Any) -> nodes.Node:
    """Of YAML: mappings and words."""
    if isinstance(content, str):
        return nodes.Scalar(content, True, 0, 0, 0)
    return nodes.Mapping([(_node(key), _node(value)) for key, value in content.items()], 0, 0, 0)
