"""What the router can make of an edge, held against the vendor's own program on random edges."""

from math import prod
from typing import NamedTuple

import numpy as np
import pytest

from buda_emu.compiler.lower.tiles import Constant, InputQueue, TileGraph, TileOp, Use, after, divisors
from buda_emu.compiler.place.blocks import Blocks
from buda_emu.compiler.place.routable import buffered_slices, pipes, stack_problem, streams_of_operands, view
from vendor_router import needs_vendor_router, refusal

NINE = (("hstack", 9),)


@pytest.mark.parametrize(
    ("held", "reader", "problem"),
    [
        (3, Blocks((7, 1), 1, (2, 2), (7, 1), 2, 6, 3), "neither divides"),  # 2 columns of a piece, u_kt 3
        (
            3,
            Blocks((7, 1), 1, (2, 2), (7, 1), 2, 3, 6),
            "read row by row",
        ),  # 98 rows within ublocks of 6 columns
        (3, Blocks((7, 1), 1, (2, 2), (7, 1), 2, 9, 2), ""),
        (9, Blocks((7, 1), 1, (2, 2), (7, 1), 2, 6, 3), ""),  # all that is stacked is there at once
        (1, Blocks((7, 1), 1, (2, 2), (7, 1), 2, 18, 1), ""),
    ],
)
def test_a_stack_has_to_fall_on_the_blocks_of_a_product(held, reader, problem):
    op = TileOp("mm", "matmul", [Use("x", NINE), Use("w")], (1, 98, 2), inner=18)
    said = stack_problem((9, 98, 2), held, NINE, view(op, reader, 0))
    assert problem in said if problem else said == ""


def test_each_row_of_cores_reads_a_pickers_table_once():
    op = TileOp("pick", "matmul", [Use("picker"), Use("x"), Use("table")], (7, 1, 3), {"identity": True}, inner=1)
    assert [view(op, Blocks((1, 3), 7, (1, 1), (1, 1), 2, 1, 1), place).grid for place in range(3)] == [
        (1, 1),
        (1, 3),
        (1, 1),
    ]


def test_a_pickers_streams_are_known_for_rows_of_cores_that_its_tiles_are_not_made_for_yet():
    constants = {name: Constant(name, np.ones((1, 32, 32), np.float32), "value") for name in ("picker", "words")}
    tiles = TileGraph(inputs={"x": InputQueue("x", "x", (1, 1, 3), (1, 32, 96))}, constants=constants)
    uses = [Use("picker", (("broadcast", "c", 2),)), Use("x"), Use("words", (("broadcast", "c", 2),))]
    op = TileOp("pick", "matmul", uses, (1, 4, 3), {"identity": True}, inner=1)
    held = frozenset(constants)
    found = [streams_of_operands(tiles, op, Blocks((rows, 1), 1, (4 // rows, 1), (1, 3)), held) for rows in (1, 2, 4)]
    assert found == found[:1] * 3


def test_a_buffer_of_the_first_stack_is_not_one_of_both():
    """Four slices as two rows of two: a buffer holds a column, and two columns of cores wait for one each."""
    tms = (("vstack", 2), ("hstack", 2))
    op = TileOp("mm", "matmul", [Use("w"), Use("x", tms)], (1, 2, 4), inner=12)
    wide = view(op, Blocks((1, 2), 1, (2, 2), (1, 1), 2, 2, 6), 1)
    assert "wrong cores" in stack_problem((4, 6, 2), 2, tms, wide)


def test_a_core_feeds_each_core_that_reads_of_it_and_each_row_of_a_product():
    made, blocks = TileOp("x", "nop", [], (1, 40, 8)), Blocks((5, 1), 1, (8, 8), (1, 1))
    same = Blocks((5, 1), 1, (8, 8), (1, 1))
    finer = Blocks((10, 8), 1, (4, 1), (1, 1))
    alike, product = TileOp("y", "nop", [Use("x")], (1, 40, 8)), TileOp("y", "matmul", [Use("x"), Use("w")], (1, 40, 8))
    assert pipes(made, blocks, (), view(alike, same, 0)).tolist() == [[1]] * 5
    assert pipes(made, blocks, (), view(alike, finer, 0)).tolist() == [[16]] * 5
    assert pipes(made, blocks, (), view(product, finer, 0)).tolist() == [[2]] * 5
    right = TileOp("y", "matmul", [Use("w"), Use("x")], (1, 40, 8))
    assert pipes(made, blocks, (), view(right, finer, 1)).tolist() == [[8]] * 5  # each column reads of all rows
    turned = TileOp("y", "nop", [Use("x", (("transpose",),))], (1, 8, 40))
    assert pipes(made, blocks, (("transpose",),), view(turned, Blocks((8, 10), 1, (1, 4), (1, 1)), 0)).max() == 16


def test_slices_that_come_later_come_through_the_same_pipes():
    """Eight slices, of which the buffer holds one, are stacked over eight rows of cores."""
    made, stack = TileOp("x", "nop", [], (8, 1, 1)), (("vstack", 8),)
    reader = TileOp("y", "nop", [Use("x", stack)], (1, 8, 1))
    rows = view(reader, Blocks((8, 1), 1, (1, 1), (1, 1)), 0)
    assert pipes(made, Blocks((1, 1), 8, (1, 1), (1, 1), 2), stack, rows).max() == 1
    assert pipes(made, Blocks((1, 1), 8, (1, 1), (1, 1), 16), stack, rows).max() == 8


# ---------------------------------------------------------------------------------------------------- beside the vendor
class Edge(NamedTuple):
    """An op `made`, another one that reads it as its operand number `operand` after stacks."""

    made: TileOp
    made_as: Blocks
    read: TileOp
    read_as: Blocks
    operand: int

    @property
    def tms(self):
        return self.read.uses[self.operand].tms

    @property
    def behind(self):
        shape = self.made.shape
        for tm in self.tms:
            shape = after(tm, shape)
        return shape

    def problem(self):
        """What is foreseen."""
        reader = view(self.read, self.read_as, self.operand)
        return stack_problem(self.made.shape, buffered_slices(self.made_as), self.tms, reader)


def random_edge(seed):
    """Slices, some of them cut before, that are stacked once or twice, for a nop or for an operand of a product."""
    rng = np.random.default_rng(seed)

    def pick(items):
        return items[int(rng.integers(len(items)))]

    made = TileOp("x", "nop", [Use("a")], (pick([2, 3, 4, 6, 8, 9, 12]), pick([1, 2, 4, 6]), pick([1, 2, 3, 4])))
    t, rows, columns = shape = made.shape
    grid = pick(divisors(rows)), pick(divisors(columns))
    made_as = Blocks(grid, t, (rows // grid[0], columns // grid[1]), (1, 1), 2 * pick(divisors(t)))
    tms = []
    wished = [
        pick(["vslice", "hslice", ""]),
        *pick([["hstack"], ["vstack"], ["hstack", "vstack"], ["vstack", "hstack"]]),
    ]
    for name in filter(None, wished):
        divided = {"vslice": shape[1], "hslice": shape[2]}.get(name, shape[0])
        count = pick([n for n in divisors(divided) if n > 1] or [1])
        if count > 1:
            tms.append((name, count))
            shape = after(tms[-1], shape)
    kind, operand = pick([("nop", 0), ("matmul", 0), ("matmul", 1)])
    t, rows, columns = shape
    out = shape if kind == "nop" else (t, rows, 2) if operand == 0 else (t, 2, columns)
    inner = 0 if kind == "nop" else columns if operand == 0 else rows
    grid = pick([n for n in divisors(out[1]) if n <= 4]), pick([n for n in divisors(out[2]) if n <= 5])
    height, width = out[1] // grid[0], out[2] // grid[1]
    ublock = pick([(r, c) for r in divisors(height) for c in divisors(width) if r * c <= 8])
    u_kt = pick(divisors(inner)) if inner else 0
    m_k = inner // u_kt if inner else 0
    read_as = Blocks(grid, t, (height // ublock[0], width // ublock[1]), ublock, 2, m_k, u_kt)
    use = Use("x", tuple(tms))
    uses = [use] if kind == "nop" else [use, Use("w")] if operand == 0 else [Use("w"), use]
    return Edge(made, made_as, TileOp("y", kind, uses, out, inner=inner), read_as, operand)


def netlist(edge):
    """With queues around the two ops."""
    read, (t, rows, columns) = edge.read, edge.read.shape
    other = (t, read.inner, columns) if edge.operand == 0 else (t, rows, read.inner)
    sides = ["a", *(["w"] if read.type == "matmul" else [])]
    settings = "{prologue: false, epilogue: false, zero: false, rd_ptr_local: $p, rd_ptr_global: $p}"
    fields = f"input_{edge.operand}_tms: [{', '.join(f'{name}: {count}' for name, count in edge.tms)}]"
    if read.type == "matmul":
        fields += f", attributes: {{m_k: {edge.read_as.m_k}, u_kt: {edge.read_as.u_kt}}}"
    return "\n".join(
        [
            "devices: {arch: wormhole_b0}",
            "queues:",
            _queue("a", "HOST", Blocks((1, 1), *_whole(edge.made.shape)), 0),
            *([_queue("w", "HOST", Blocks((1, 1), *_whole(other)), 1)] if "w" in sides else []),
            _queue("o", "y", edge.read_as, 2),
            "graphs:",
            "  g1:",
            "    target_device: 0",
            "    input_count: 1",
            _op(edge.made, edge.made_as, "grid_loc: [0, 0]"),
            _op(read, edge.read_as, f"grid_loc: [6, 0], {fields}"),
            "programs:",
            "  - run:",
            "    - staticvar: {$p: 0}",
            f"    - execute: {{graph_name: g1, queue_settings: {{{', '.join(f'{n}: {settings}' for n in sides)}}}}}",
            "",
        ]
    )


def _whole(shape):
    return shape[0], shape[1:], (1, 1)


def _blocks(blocks):
    return (
        f"grid_size: {list(blocks.grid)}, t: {blocks.t}, mblock: {list(blocks.mblock)}, ublock: {list(blocks.ublock)}, "
        f"ublock_order: r"
    )


def _queue(name, source, blocks, number):
    places = [f"[{n % 4}, {0x10000000 + 0x2000000 * number + 0x100000 * n:#x}]" for n in range(prod(blocks.grid))]
    return (
        f"  {name}: {{input: {source}, type: queue, entries: 2, {_blocks(blocks)}, df: Float16_b, target_device: 0, "
        f"loc: dram, dram: [{', '.join(places)}]}}"
    )


def _op(op, blocks, fields):
    names = ", ".join(use.source for use in op.uses)
    formats = ", ".join(["Float16_b"] * len(op.uses))
    return (
        f"    {op.name}: {{type: {op.type}, inputs: [{names}], in_df: [{formats}], out_df: Float16_b, "
        f"intermed_df: Float16_b, acc_df: Float16_b, math_fidelity: HiFi3, {_blocks(blocks)}, "
        f"buf_size_mb: {blocks.buf_size_mb}, {fields}}}"
    )


@needs_vendor_router
@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(20, 400, 20))])
def test_the_vendor_takes_random_stacks_as_foreseen(first, tmp_path):
    for seed in range(first, first + 20):
        edge = random_edge(seed)
        said = refusal(netlist(edge), "wormhole_b0", tmp_path / str(seed), pipes_only=True)
        foreseen = edge.problem()
        if "wrong cores" in foreseen and not said:
            continue  # taken, and wrong
        assert bool(said) == bool(foreseen), (seed, edge, foreseen, said)
