"""One netlist from one seed: graphs of ops that follow each other, queues between them, a program."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final

from buda_emu.errors import HostError
from buda_emu.netlist import nodes
from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Netlist, Op, evolve
from buda_emu.netlist.printer import document_text
from buda_emu.records import dataclass
from buda_emu.spec.blocking import Blocking
from buda_emu.spec.ops import OP_TYPES
from buda_emu.testing.generator.builders.elementwise import binary, unary
from buda_emu.testing.generator.builders.fused import fused
from buda_emu.testing.generator.builders.integers import quantization
from buda_emu.testing.generator.builders.moves import embedding, reduce, splice, tilizer, topk
from buda_emu.testing.generator.builders.products import depthwise, matmul
from buda_emu.testing.generator.draw import Draw
from buda_emu.testing.generator.operands import value_of
from buda_emu.testing.generator.programs import Rounds, add_program, draw_rounds
from buda_emu.testing.generator.sheet import NoRoomError, OpenGraph, Sheet

Builder = Callable[[Sheet, str], None]
_OF_FAMILY: Final[Mapping[str, Builder]] = {
    "matmul": matmul, "depthwise": depthwise, "binary": binary, "quantization": quantization, "unary": unary,
    "sfpu": unary, "reduce": reduce, "splice": splice, "embedding": embedding, "tilizer": tilizer, "topk": topk,
    "fused": fused,
}  # fmt: skip
GENERATED: Final = tuple(name for name, op in OP_TYPES.items() if op.family in _OF_FAMILY and OP_TYPES.is_own(name))
"""Op types that are drawn from."""
_MOST_TRIES = 200
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
    """A valid netlist and its text. `tries`: how many were drawn for it, the last of which had no errors."""

    text: str
    netlist: Netlist
    tries: int


def generate(
    seed: "int | Random",
    *,
    arch: str = "wormhole_b0",
    budget: Budget | None = None,
    op_types: Sequence[str] = GENERATED,
) -> Generated:
    """A netlist without findings that refuse it; the same for the same seed. `op_types`: those that ops are drawn of.

    Raises HostError for an op type that is not known, and where none of many tries was valid.
    """
    unknown = [name for name in op_types if name not in GENERATED]
    if unknown or not op_types:
        raise HostError(f"op types {', '.join(unknown) or '(none)'}: known are {', '.join(GENERATED)}")
    draw = Draw(seed if isinstance(seed, Random) else Random(seed))
    for tries in range(1, _MOST_TRIES + 1):
        sheet = _drawn(draw, arch, budget or Budget(), op_types)
        if sheet is None:
            continue
        text = document_text(sheet.document)
        found = check_text(text, "generated.yaml", arch)
        if found.netlist is not None:
            return Generated(text, found.netlist, tries)
    raise HostError(f"no valid netlist of {', '.join(op_types)} for {arch} in {_MOST_TRIES} tries")


def _drawn(draw: Draw, arch: str, budget: Budget, op_types: Sequence[str]) -> Sheet | None:
    """One attempt; None where not one op found its place."""
    sheet = Sheet.new(draw, arch, budget.tiles)
    rounds = draw_rounds(sheet)
    inputs = draw.integer(1, budget.inputs)
    sheet.rounds = rounds.count
    count = draw.integer(1, budget.graphs)
    for number in range(count):
        _open(sheet, number, inputs)
        for _ in range(draw.integer(1, max(1, budget.ops // count))):
            _add_op(sheet, op_types)
        if not sheet.graph.ops:
            sheet.graphs.pop()
            continue
        _store(sheet, last=number == count - 1)
        sheet.close()
    if not sheet.graphs:
        return None
    _set_rounds(sheet, rounds)
    return sheet


def _open(sheet: Sheet, number: int, inputs: int) -> None:
    """A new graph, which may read what graphs before it stored and what the host gave those."""
    rows, cols = sheet.arch.grid
    free = {(row, col) for row in range(rows) for col in range(cols)}
    before = sheet.graphs[-1] if sheet.graphs else None
    family = before.family if before is not None else sheet.draw.pick("bbba")
    graph = OpenGraph(f"graph_{number}", 0, inputs, free, family)
    sheet.graphs.append(graph)
    if before is not None:
        graph.values += [value for value in before.values if value.is_queue]


def _add_op(sheet: Sheet, op_types: Sequence[str]) -> None:
    """One op; where it finds no room, another is drawn."""
    for _ in range(8):
        name = sheet.draw.pick(op_types)
        queues, fused_ops = dict(sheet.document.queues), dict(sheet.document.fused_ops)
        constants, values = set(sheet.constants), list(sheet.graph.values)
        try:
            _OF_FAMILY[OP_TYPES[name].family](sheet, name)
            return
        except NoRoomError:
            sheet.document.queues, sheet.document.fused_ops = queues, fused_ops
            sheet.constants, sheet.graph.values = constants, values


def _store(sheet: Sheet, *, last: bool) -> None:
    """Queues for results: of every op that nothing reads, and of some that something does."""
    draw, graph = sheet.draw, sheet.graph
    for number, op in enumerate(graph.ops):
        read = op.name in graph.read
        if read and not draw.chance(20) and not op.gradient_op:
            continue
        blocking = op.blocking
        if op.gradient_op:
            sheet.queue("sum", blocking, op.out_df, source=op.name, kind="ram", entries=1)
            continue
        flat = not read and _may_untilize(op) and draw.chance(15)
        if flat:
            graph.ops[number] = evolve(op, untilize_output=True)
            blocking = _one_buffer(blocking)
        queue = sheet.queue("out", blocking, op.out_df, source=op.name, entries=graph.input_count, headers=not flat)
        if not flat and not last and draw.chance(80):
            graph.values.append(value_of(queue))


def _may_untilize(op: Op) -> bool:
    """NETLIST V029, V030, V096."""
    attributes = op.attributes
    whole = attributes.m_k <= 1 and attributes.dim != "z"
    return op.out_df in _UNTILIZED and op.blocking.ublock_order == "r" and whole


def _one_buffer(blocking: Blocking) -> Blocking:
    """The whole of it in one place, as an op that untilizes writes it (NETLIST V071, V077)."""
    (down, across), (m, n), ublock = blocking.grid_size, blocking.mblock, blocking.ublock
    return Blocking((1, 1), blocking.t, (m * down, n * across), ublock, "r", blocking.tile_dim)


def _set_rounds(sheet: Sheet, rounds: Rounds) -> None:
    add_program(sheet, rounds)
    if rounds.parameter:
        sheet.document.sections |= {"test-config": _test_args(rounds.inner)}


def _test_args(count: int) -> nodes.Mapping:
    """`test-args: {microbatch_count: N}`, which is what `$p_loop_count` is then (NETLIST 3.7)."""

    def word(text: str) -> nodes.Scalar:
        return nodes.Scalar(text, True, 0, 0, 0)

    args = nodes.Mapping([(word("microbatch_count"), word(str(count)))], 0, 0, 0)
    return nodes.Mapping([(word("test-args"), args)], 0, 0, 0)
