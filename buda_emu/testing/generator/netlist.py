"""Random netlists by seed: graphs of ops that follow each other, queues between them, and programs."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from random import Random
from typing import Any, Final, Literal

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
from buda_emu.netlist.reader import WrittenNetlist
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
from buda_emu.testing.generator.builders_of_products import depthwise, fused_op, matmul
from buda_emu.testing.generator.draft import Draw, NetlistDraft, NoRoomError, OpenGraph, with_attribute
from buda_emu.testing.generator.operands import value_of


@dataclass(frozen=True, slots=True)
class Rounds:
    """The number of times that the graphs run: in a loop, in two nested ones, or one time after the other without a
    loop."""

    outer: int
    inner: int
    parameter: bool
    """True where the inner count is `$p_loop_count`."""
    looped: bool
    split: bool
    """True where every graph has a program of its own."""

    @property
    def count(self) -> int:
        """The number of executes of each graph."""
        return self.outer * self.inner


def draw_rounds(draft: NetlistDraft) -> Rounds:
    """Draw how often the graphs run, from one round to six, and in which loops."""
    draw = draft.draw
    looped = draw.chance(75)
    if looped:
        outer = draw.pick((1, 1, 1, 2))
        inner = draw.pick((1, 2, 3))
    else:
        outer = 1
        inner = draw.pick((1, 1, 2))
    return Rounds(
        outer=outer,
        inner=inner,
        parameter=looped and draw.chance(40),
        looped=looped,
        split=draft.chips == 1 and draw.chance(15),
    )


def add_programs(draft: NetlistDraft, rounds: Rounds) -> None:
    """Set the number of entries of each queue, and add the program that runs all graphs in `rounds`, or one for each
    graph."""
    sizes = {queue.name: _entry_count(draft, queue, rounds) for queue in draft.document.queues.values()}
    for queue, entries in sizes.items():
        draft.document.queues[queue] = evolve(draft.document.queues[queue], entries=entries)
    for number, graphs in enumerate([[graph] for graph in draft.graphs] if rounds.split else [draft.graphs]):
        name = "run_fwd"
        if rounds.split:
            name = f"run_fwd_{number}"
        instructions = tuple(_program_instructions(draft, rounds, graphs))
        draft.document.programs[name] = Program(name=name, instructions=instructions)
        draft.document.program_order.append(name)


def _entry_count(draft: NetlistDraft, queue: Queue, rounds: Rounds) -> int:
    """Return the number of entries that a queue needs: a stream for all inputs of the program, since the host fills it
    before the program runs; a queue that ops read for one round; constants and rams have theirs already."""
    if queue.name in draft.constants or queue.type == "ram":
        return queue.entries
    stride = 1
    if queue.name in draft.strided:
        stride = 2
    is_read = any(queue.name in graph.read for graph in draft.graphs)
    if is_read and not queue.host_fed and not rounds.split:
        return stride * queue.entries
    return stride * queue.entries * rounds.count


def _pointer_names(inputs: int, entries: int) -> tuple[str, str]:
    """Return the names of the variables for the local and the global pointer that step by `inputs` over a queue of
    `entries` entries."""
    return f"$l_{inputs}_{entries}", f"$g_{inputs}_{entries}"


def _program_instructions(draft: NetlistDraft, rounds: Rounds, graphs: list[OpenGraph]) -> Iterator[Instruction]:
    """Yield the instructions of a program that executes graphs in rounds: parameters, variables, loops, executes and
    steps of pointers."""
    draw = draft.draw
    pointers: dict[tuple[str, str], tuple[int, int]] = {}
    executes = [_make_execute(draft, graph, pointers) for graph in graphs]
    if rounds.parameter:
        yield Param(names=(LOOP,))
        count = LOOP
    else:
        count = str(rounds.inner)
    computed = rounds.looped and not rounds.parameter and draw.chance(40)
    kind = draw.pick(("var", "var", "staticvar"))
    has_constant = computed and kind == "var" and draw.sometimes(30, "c_one")
    yield from _declarations(kind, pointers, computed, has_constant)
    if computed:
        yield _count_calculation(draft, count, has_constant)
        count = "$rounds"
    dynamic: tuple[str, ...] = ()
    if not rounds.split and draw.sometimes(25, "allocate_queue"):
        dynamic = _allocatable_queues(draft)
    if dynamic:
        yield Allocate(queues=dynamic)
    yield from _loop_instructions(rounds, count, [*executes, *_pointer_steps(pointers)])
    if dynamic:
        yield Deallocate(queues=dynamic)


def _count_calculation(draft: NetlistDraft, count: str, has_constant: bool) -> VarInst:
    """Return an instruction that sets $rounds to `count` by an operation that does not change the number, such as
    adding 0. `has_constant` says that the variable $c_one exists, by which it then multiplies."""
    opcode, before = draft.draw.pick((("add", ("0",)), ("mul", ("1",)), ("inc", ())))
    if has_constant:
        opcode = "mul"
        before = ("$c_one",)
    return VarInst(out="$rounds", opcode=opcode, args=(*before, count))


def _declarations(
    kind: Literal["var", "staticvar"], pointers: Iterable[tuple[str, str]], computed: bool, has_constant: bool
) -> Iterator[Instruction]:
    """Yield the declaration of the pointers as variables of `kind`, of $rounds if `computed`, and of $c_one if
    `has_constant`; for static variables then their reset."""
    variables = [(name, "0") for name in chain.from_iterable(pointers)]
    if computed:
        variables.append(("$rounds", "0"))
    if has_constant:
        variables.append(("$c_one", "1"))
    if variables:
        yield Declare(kind=kind, variables=tuple(variables))
    if kind == "staticvar":  # a second run of the program starts with the values that this one leaves
        yield from (VarInst(out=name, opcode="set", args=("0",)) for name, _ in variables)


def _loop_instructions(rounds: Rounds, count: str, body: list[Instruction]) -> Iterator[Instruction]:
    """Yield the body within its loops, the inner one of `count` rounds; without loops, yield the body as often as it is
    to run."""
    if not rounds.looped:
        for _ in range(rounds.count):
            yield from body
        return
    if rounds.outer > 1:
        yield Loop(count=str(rounds.outer))
    yield Loop(count=count)
    yield from body
    yield EndLoop()
    if rounds.outer > 1:
        yield EndLoop()


def _pointer_steps(pointers: dict[tuple[str, str], tuple[int, int]]) -> Iterator[Instruction]:
    """Yield the instructions that, after the executes of a round, step each pair of local and global pointer by the
    inputs of an execute, modulo twice the queue's entries (NETLIST 4.1)."""
    for pair, (inputs, entries) in pointers.items():
        for name in pair:
            yield VarInst(out=name, opcode="incwrap", args=(str(inputs), str(2 * entries)))


def _allocatable_queues(draft: NetlistDraft) -> tuple[str, ...]:
    """Return the queues between graphs, which may be allocated and deallocated (NETLIST 3.6)."""
    queues = draft.document.queues.values()
    return tuple(
        queue.name
        for queue in queues
        if not queue.host_fed and queue.type == "queue" and any(queue.name in graph.read for graph in draft.graphs)
    )


def _make_execute(draft: NetlistDraft, graph: OpenGraph, pointers: dict[tuple[str, str], tuple[int, int]]) -> Execute:
    """Make the execute of a graph with drawn settings of its queues; add the pointers that they use to `pointers`, as
    pair of names to step and entries."""
    gradients = {op.name for op in graph.ops if op.gradient_op}
    settings: list[QueueSettings] = []
    for queue in draft.document.queues.values():
        if queue.name in graph.read:
            settings.append(_reading_settings(draft, graph, queue, pointers))
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


def _reading_settings(
    draft: NetlistDraft, graph: OpenGraph, queue: Queue, pointers: dict[tuple[str, str], tuple[int, int]]
) -> QueueSettings:
    """Draw the settings of a queue that a graph reads; add the pointers that they use to `pointers`."""
    if queue.name in draft.constants:
        return _constant_settings(draft, queue)
    if queue.name in draft.stepped:
        return QueueSettings(queue=queue.name, rd_ptr_global="0", wr_ptr_global="0", global_rdptr_autoinc="1")
    stride = 1
    if queue.name in draft.strided:
        stride = 2
    step = graph.input_count * stride
    pair = _pointer_names(step, queue.entries)
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


def _constant_settings(draft: NetlistDraft, queue: Queue) -> QueueSettings:
    """Draw the settings of a queue or ram whose single entry every input reads."""
    is_ram = queue.type == "ram"
    read_only = is_ram and draft.draw.chance(30)
    return QueueSettings(
        queue=queue.name,
        prologue="true",
        rd_ptr_global="0",
        rd_ptr_local="" if is_ram else "0",
        wr_ptr_global="0" if is_ram else "",
        read_only="true" if read_only else "false",
    )


Builder = Callable[[NetlistDraft, str], None]
_OF_FAMILY: Final[Mapping[str, Builder]] = {
    "matmul": matmul, "depthwise": depthwise, "binary": binary, "quantization": quantization, "unary": unary,
    "sfpu": unary, "reduce": reduce, "splice": splice, "embedding": embedding, "tilizer": tilizer, "topk": topk,
    "fused": fused_op, "ethernet": ethernet,
}  # fmt: skip
GENERATED: Final = tuple(name for name, op in OP_TYPES.items() if op.family in _OF_FAMILY and OP_TYPES.is_own(name))
"""Op types that the generator draws from."""
_MOST_TRIES = 200  # more would only delay the refusal of impossible options
_TILES: Final = {f"{high}x{wide}": (high, wide) for high, wide in LEGAL_TILE_DIMS}
_UNTILIZED = ("Float16", "Float16_b", "Float32")


@dataclass(frozen=True, slots=True)
class Budget:
    """The size of a netlist: at most so many ops in all, graphs (epochs), tiles of one tensor, inputs of an epoch."""

    ops: int = 6
    graphs: int = 2
    tiles: int = 12
    inputs: int = 3


@dataclass(frozen=True, slots=True)
class Generated:
    """A valid netlist and its text. `tries` is the number of netlists that were drawn for it, the last of which had no
    errors; `refused` are attributes that it may not have, with the rules that refuse them."""

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
    """Generate a netlist that no rule refuses; the same for the same seed. Ops are drawn from `op_types`. Words of the
    language in `wanted` are drawn more likely than others, to cover features that are missing. Raises HostError for an
    op type that the generator does not have, and if none of many tries is valid."""
    unknown = [name for name in op_types if name not in GENERATED]
    if unknown or not op_types:
        raise HostError(f"op types {', '.join(unknown) or '(none)'}: known are {', '.join(GENERATED)}")
    draw = Draw(seed if isinstance(seed, Random) else Random(seed), frozenset(wanted))
    for tries in range(1, _MOST_TRIES + 1):
        draft = _draw_netlist(draw, arch, budget or Budget(), op_types)
        if draft is None:
            continue
        text = document_text(draft.document)
        checked = check_text(text, "generated.yaml", arch)
        if checked.netlist is not None:
            return _add_attributes(draw, draft.document, Generated(text, checked.netlist, tries))
    raise HostError(f"no valid netlist of {', '.join(op_types)} for {arch} in {_MOST_TRIES} tries")


def _add_attributes(draw: Draw, document: WrittenNetlist, generated: Generated) -> Generated:
    """Try to add a few attributes that no builder draws. Return the netlist with those that the checker accepts, and
    with the refused ones in `refused`."""
    refused: list[str] = []
    for _ in range(draw.pick((0, 1, 1, 2, 3))):
        attempt = with_attribute(draw, document)
        if not isinstance(attempt, str):
            document, netlist = attempt
            generated = replace(generated, text=document_text(document), netlist=netlist)
        elif attempt:
            refused.append(attempt)
    return replace(generated, refused=tuple(refused))


def _draw_netlist(draw: Draw, arch: str, budget: Budget, op_types: Sequence[str]) -> NetlistDraft | None:
    """Draw a netlist of ops of these types within a budget, which need not be valid; None if not one op fits."""
    draft = NetlistDraft.new(draw, arch, budget.tiles)
    op_types = _draw_setting(draft, budget, op_types)
    rounds = draw_rounds(draft)
    inputs = draw.integer(1, budget.inputs)
    draft.rounds = rounds.count
    count = max(draft.chips, draw.integer(1, budget.graphs))
    for number in range(count):
        _open_graph(draft, number, inputs)
        for _ in range(draw.integer(1, max(1, budget.ops // count))):
            _add_op(draft, op_types)
        if not draft.graph.ops:
            draft.graphs.pop()
            continue
        _store_results(draft, last=number == count - 1)
        draft.close()
    if not draft.graphs:
        return None
    _set_rounds(draft, rounds)
    _set_tiles(draft)
    if _may_be_copied(draft) and draw.chance(6):
        draft.document.graph_devices = dict.fromkeys(draft.document.graphs, (0, 1))
        draft.document.queue_devices = dict.fromkeys(draft.document.queues, (0, 1))
    return draft


def _draw_setting(draft: NetlistDraft, budget: Budget, op_types: Sequence[str]) -> Sequence[str]:
    """Draw small tiles or a second chip now and then; return the op types that are possible with it."""
    draw = draft.draw
    only_links = all(OP_TYPES[name].has("Ethernet") for name in op_types)
    small = [name for name in op_types if _takes_small_tiles(name)]
    if draft.arch.name != "grayskull" and small and draw.sometimes(10, *_TILES):
        draft.tile = _TILES[draw.pick(tuple(_TILES))]
        return small
    if budget.graphs > 1 and draw.chance(100 if only_links else 12):
        draft.chips = 2
    return op_types


def _takes_small_tiles(op_type: str) -> bool:
    """Return whether ops of a type may have tiles that are not full."""
    return OP_TYPES[op_type].has("tile by tile") and OP_TYPES[op_type].family != "quantization"


def _open_graph(draft: NetlistDraft, number: int, inputs: int) -> None:
    """Open graph number `number`, whose epochs have `inputs` inputs. It may read the queues that the graph before it
    could read or stored, without constants if there are two chips. The second of two graphs on two chips also reads the
    ops of the first: both run as one (NETLIST 1.8)."""
    rows, cols = draft.arch.grid
    before = None
    if draft.graphs:
        before = draft.graphs[-1]
    if before is not None:
        family = before.family
    else:
        family = draft.draw.pick("bbba")
    graph = OpenGraph(
        name=f"graph_{number}",
        chip=number % draft.chips,
        input_count=inputs,
        free=set(product(range(rows), range(cols))),
        family=family,
    )
    draft.graphs.append(graph)
    if before is None:
        return
    queues = [value for value in before.values if value.is_queue]
    graph.values += [value for value in queues if draft.chips == 1 or value.name not in draft.constants]
    if graph.chip > before.chip:
        tiled = {op.name for op in before.ops if not op.untilize_output and not op.gradient_op}
        graph.values += [value for value in before.values if value.name in tiled]


def _add_op(draft: NetlistDraft, op_types: Sequence[str]) -> None:
    """Draw an op and add it to the open graph; if it does not fit, undo that and draw another one, up to 8 times."""
    links: list[str] = []
    if draft.chips > 1:
        links = [name for name in op_types if OP_TYPES[name].has("Ethernet")]
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
            draft.document.queues = queues
            draft.document.fused_ops = fused_ops
            draft.graph.values = values
            draft.constants = constants


def _store_results(draft: NetlistDraft, *, last: bool) -> None:
    """Add queues for results of the open graph: of every op that no op reads, and of some that ops read. With `last`,
    no later graph will read them."""
    for number, op in enumerate(draft.graph.ops):
        if op.gradient_op:
            if op.name in draft.graph.read:
                draft.draw.chance(20)  # the draw of other ops that are read: seeds keep their netlists
            draft.queue("sum", op.blocking, op.out_df, source=op.name, kind="ram", entries=1)
        elif op.name not in draft.graph.read:
            if not _store_specially(draft, number, op):
                _store_tiles(draft, op, last=last)
        elif draft.draw.chance(20):
            _store_tiles(draft, op, last=last)


def _store_specially(draft: NetlistDraft, number: int, op: Op) -> bool:
    """Draw whether the result of op number `number` is stored in place, untilized, or in a ram with a slot for each
    input. If so, add its queue and return True."""
    draw = draft.draw
    graph = draft.graph
    if draw.sometimes(8, "in place") and _write_in_place(draft, op):
        return True
    if _may_untilize(op) and draw.chance(15):
        graph.ops[number] = evolve(op, untilize_output=True)
        draft.queue("out", _one_buffer(op.blocking), op.out_df, source=op.name, entries=graph.input_count)
        return True
    if draw.chance(8):
        ram = draft.queue("out", op.blocking, op.out_df, source=op.name, kind="ram", entries=graph.input_count)
        draft.stepped.add(ram.name)
        return True
    return False


def _store_tiles(draft: NetlistDraft, op: Op, *, last: bool) -> None:
    """Add a queue of tiles for an op's result, stacked along the columns now and then. Unless the graph is the `last`,
    later graphs may read it."""
    draw = draft.draw
    blocking = op.blocking
    tms: tuple[Tm, ...] = ()
    if blocking.t > 1 and draw.chance(15):
        t, rows, cols = blocking.shape
        tms = (Tm("hstack", (t,)),)
        blocking = Blocking(grid_size=(1, 1), t=1, mblock=(rows, cols * t), ublock=(1, 1), ublock_order="r")
    entries = draft.graph.input_count
    queue = draft.queue("out", blocking, op.out_df, source=op.name, entries=entries, input_tms=tms)
    if not last and draw.chance(80):
        draft.graph.values.append(value_of(queue))


def _write_in_place(draft: NetlistDraft, op: Op) -> bool:
    """Let the op write a ram that its graph alone reads, as an optimizer writes weights. Return False, with nothing
    changed, if no ram fits."""
    graph = draft.graph
    queues = draft.document.queues
    others = set(chain.from_iterable(other.read for other in draft.graphs[:-1]))
    others |= {queue.alias for queue in queues.values()}
    positive = any(value.positive for value in graph.values if value.name == op.name)
    layout = (op.out_df, op.blocking.shape, op.blocking.cells)
    for name in sorted(graph.read & draft.constants - others):
        ram = queues[name]
        alike = (ram.df, ram.blocking.shape, ram.blocking.cells) == layout
        if ram.type == "ram" and not ram.alias and alike and positive:
            queues[name] = evolve(ram, input=op.name, blocking=op.blocking)
            graph.values = [value for value in graph.values if value.name != name]
            return True
    return False


def _may_untilize(op: Op) -> bool:
    """Return whether an op may write its result row by row (NETLIST V029, V030, V096)."""
    attributes = op.attributes
    one_block = attributes.m_k <= 1 and attributes.dim != "z"
    return op.out_df in _UNTILIZED and op.blocking.ublock_order == "r" and one_block


def _one_buffer(blocking: Blocking) -> Blocking:
    """Return a blocking of the same result in a single buffer, as an op that untilizes its result needs it (NETLIST
    V071, V077)."""
    down, across = blocking.grid_size
    rows, cols = blocking.mblock
    return Blocking(
        grid_size=(1, 1),
        t=blocking.t,
        mblock=(rows * down, cols * across),
        ublock=blocking.ublock,
        ublock_order="r",
        tile_dim=blocking.tile_dim,
    )


def _may_be_copied(draft: NetlistDraft) -> bool:
    """Return whether graphs and queues of a draft for one chip may be copied to several. Aliases prevent it, as their
    names stay unchanged on all chips, and so do queues in host memory, whose copies all belong to the first chip
    (NETLIST 1.7)."""
    queues = draft.document.queues.values()
    return draft.chips == 1 and not any(queue.alias or queue.loc == "host" for queue in queues)


def _set_tiles(draft: NetlistDraft) -> None:
    """Give every op and queue the netlist's tile size."""
    document = draft.document

    def cut(record: SourcedT) -> SourcedT:
        """Return an op or queue with the netlist's tile size."""
        return evolve(record, blocking=replace(getattr(record, "blocking"), tile_dim=draft.tile))  # noqa: B009

    document.queues = {name: cut(queue) for name, queue in document.queues.items()}
    for name, graph in document.graphs.items():
        document.graphs[name] = evolve(graph, ops=tuple(map(cut, graph.ops)))


def _set_rounds(draft: NetlistDraft, rounds: Rounds) -> None:
    """Add the programs, and a test-config with the value of `$p_loop_count` (NETLIST 3.7) and the inputs that are
    sparse."""
    add_programs(draft, rounds)
    config: dict[str, Any] = {}
    if rounds.parameter:
        config["test-args"] = {"microbatch_count": str(rounds.inner)}
    if draft.sparse:
        config["stimulus-config"] = {"overrides": {name: {"type": "sparse"} for name in draft.sparse}}
    if config:
        draft.document.sections |= {"test-config": _yaml_node(config)}


def _yaml_node(content: Any) -> nodes.Node:
    """Return a YAML node of nested mappings of strings."""
    if isinstance(content, str):
        return nodes.Scalar(content, True, 0, 0, 0)
    return nodes.Mapping([(_yaml_node(key), _yaml_node(value)) for key, value in content.items()], 0, 0, 0)
