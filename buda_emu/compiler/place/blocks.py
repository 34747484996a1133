"""The division of one op over cores: grids, blocks, ublocks and the L1 bytes of its buffers (FRONTEND 4.2, 4.3, 4.6),
the ways to cut an identity matmul, and the free cores of a chip."""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import prod

from buda_emu.compiler.lower.picker import PickTable, WorkDivision
from buda_emu.compiler.lower.schedule import kept_columns
from buda_emu.compiler.lower.tiles import Constant, SubOp, TileGraph, TileOp, Use, divisors
from buda_emu.compiler.target import Target
from buda_emu.spec.formats import tile_bytes
from buda_emu.support.errors import UnsupportedError

TargetOf = Callable[[TileOp], Target]
"""A function that returns the target with the formats that an op is going to have."""
MOST_WORK_PER_CORE = 192
"""Tile operations (tiles of the result, times tile products for each) of one core up to which low effort takes a
smaller grid; beyond this it adds cores while there are any. No measurement chose the figure: low effort only has to
find a legal grid (FRONTEND 4.6)."""

MOST_SHARED_OPERANDS = 2
"""Most operands of a fused op that are multicast to a row or a column of cores (V084)."""
SINGLE = 1
DOUBLE = 2
"""Mblocks of a result in L1. With two, an op computes one while its readers take the other; with one, it waits for
them."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The division of one op as the netlist states it, in tiles: `grid` rows and columns of cores, and in each core `t`
    slices of `mblock` x `ublock` tiles (OPS 6.1).

    `buf_size_mb`: mblocks in the result's buffer; `m_k` and `u_kt`: number of inner blocks and tiles of the inner
    dimension in each, 0 for ops without one; `most_step_tiles`: most tiles of an ublock of a single step, set only for
    a fused op that sums rows."""

    grid: tuple[int, int]
    t: int
    mblock: tuple[int, int]
    ublock: tuple[int, int]
    buf_size_mb: int = 2
    m_k: int = 0
    u_kt: int = 0
    most_step_tiles: int = 0


def choose_blocks(target: Target, op: TileOp) -> Blocks:
    """Return the division of one op that low effort takes: the smallest grid that fits and whose cores do at most
    `MOST_WORK_PER_CORE`, or the largest that fits. The result gets a single buffer if no grid has room for two. Raises
    UnsupportedError when no grid has room for one."""
    target = target.of(op.precision)
    blocks = _smallest_division(target, op, DOUBLE) or _smallest_division(target, op, SINGLE)
    if blocks is None:
        raise no_grid_error(target, op)
    return blocks


def has_grid(target: Target, op: TileOp, buffers: int = SINGLE) -> bool:
    """Return whether some grid has room for an op with `buffers` mblocks in its result's buffer. The largest grids are
    tried first, as they are the most likely to fit."""
    target = target.of(op.precision)
    divisions = (divide_op(target, op, grid, buffers=buffers) for grid in reversed(list(grids(target, op))))
    return any(blocks is not None and buffer_bytes(target, op, blocks) <= target.buffer_room for blocks in divisions)


def _smallest_division(target: Target, op: TileOp, buffers: int) -> Blocks | None:
    """Return the division over the smallest grid that fits and whose cores do no more than `MOST_WORK_PER_CORE` each,
    else over the largest one that fits; None where none does. `buffers`: mblocks in the result's buffer."""
    t, rows, columns = op.shape
    work = t * rows * columns * max(1, _products_per_tile(op)) / MOST_WORK_PER_CORE
    best: Blocks | None = None
    for grid in grids(target, op):
        blocks = divide_op(target, op, grid, buffers=buffers)
        if blocks is None or buffer_bytes(target, op, blocks) > target.buffer_room:
            continue
        if best is None or prod(best.grid) < work:
            best = blocks
        if prod(best.grid) >= work:
            break
    return best


def _products_per_tile(op: TileOp) -> int:
    """Return the tile products that each tile of the result takes, 0 for an op without an inner dimension and 1 for an
    identity matmul, which only moves tiles."""
    if op.attrs.get("identity"):
        return 1
    return op.inner


def grids(target: Target, op: TileOp) -> Iterator[tuple[int, int]]:
    """Yield the legal grids (rows, columns) of an op by number of cores, the fewest first and of equal ones the
    squarest: divisors of the result's tiles within the chip (FRONTEND 4.2). Rows or columns that the op fixes, as an
    encoded identity matmul does, replace these."""
    _, rows, columns = op.shape
    limit_r, limit_c = target.arch.grid
    heights = [n for n in divisors(rows) if n <= limit_r]
    widths = [n for n in divisors(columns) if n <= limit_c]
    if _has_one_row(op):
        heights = [1]
    if _has_one_column(op):
        widths = [1]
    if op.grid is not None:
        if op.grid[0]:
            heights = [op.grid[0]]
        if op.grid[1]:
            widths = [op.grid[1]]
    yield from sorted(product(heights, widths), key=lambda grid: (prod(grid), abs(grid[0] - grid[1]), grid))


def _has_one_row(op: TileOp) -> bool:
    """Return whether a single row of cores computes the op, because each core needs all rows of its columns."""
    return op.has("row-wise index") or (op.has("reduces") and op.attrs["dim"] == "r")


def _has_one_column(op: TileOp) -> bool:
    """Return whether a single column of cores computes the op, because each core needs all columns of its rows."""
    return op.type == "depthwise" or op.sums_rows or (op.has("reduces") and op.attrs["dim"] == "c")


def divide_op(
    target: Target, op: TileOp, grid: tuple[int, int], held: int = 0, *, buffers: int = DOUBLE
) -> Blocks | None:
    """Return the division of an op over `grid` with the largest ublock and the longest inner block that fit beside
    `held` bytes of constants in L1; None where there is none. `buffers`: mblocks in the result's buffer, where the op
    may have two.

    Identity matmuls, depthwise products, fused ops that sum rows and ops without an inner dimension are not held
    against L1 here: the caller compares `buffer_bytes` with the room."""
    t, rows, columns = op.shape
    block = (rows // grid[0], columns // grid[1])
    dest = target.dest_tiles
    if op.sums_rows:
        return _divide_row_sums(target, op, grid, buffers)
    if op.has_sums:
        return _divide_products(target, op, grid, held, buffers)
    ublock = _largest_ublock(block, dest, rows_fixed=op.ublock is not None or op.has("row-wise index"))
    mblock = (block[0] // ublock[0], block[1] // ublock[1])
    # A gradient op has one buffer (FRONTEND 4.3), and so has an untilized result of large blocks; no measurement chose
    # the 256 tiles.
    if op.attrs.get("gradient") or (op.attrs.get("untilize") and prod(block) > 256):
        buffers = SINGLE
    blocks = Blocks(grid=grid, t=t, mblock=mblock, ublock=ublock, buf_size_mb=buffers)
    if op.attrs.get("identity") or op.type == "depthwise":
        return replace(blocks, m_k=op.inner, u_kt=1)
    if op.inner:
        return _with_longest_inner(target, op, blocks, held)
    return blocks


def _with_longest_inner(target: Target, op: TileOp, blocks: Blocks, held: int) -> Blocks | None:
    """Return a product's or a reduction's division with the longest inner blocks for which L1 has room beside `held`
    bytes of constants; None where even blocks of one tile do not fit."""
    for inner in reversed(divisors(op.inner)):
        divided = replace(blocks, m_k=op.inner // inner, u_kt=inner)
        if buffer_bytes(target, op, divided, held=held) <= target.buffer_room:
            return divided
    return None


def _divide_row_sums(target: Target, op: TileOp, grid: tuple[int, int], buffers: int) -> Blocks | None:
    """Divide a fused op that sums rows: all rows of a core are one ublock, of as many columns as fit dest; None where
    dest has no room for one column, or for the columns that are kept while a sum is taken. L1 is not checked.
    `buffers`: mblocks in the result's buffer."""
    t, rows, columns = op.shape
    height = rows // grid[0]
    dest = target.dest_tiles
    if height * max(1, kept_columns(op.steps, columns)) > dest:
        return None
    count, wide = cut_columns(columns, height, dest)
    return Blocks(grid=grid, t=t, mblock=(1, count), ublock=(height, wide), buf_size_mb=buffers, most_step_tiles=dest)


def _divide_products(target: Target, op: TileOp, grid: tuple[int, int], held: int, buffers: int) -> Blocks | None:
    """Divide a fused op with products: each core has one ublock, which stays in dest while a sum is taken, and the
    longest inner blocks for which L1 has room beside `held` bytes of constants and `buffers` mblocks of the result.
    None where dest or L1 has no room, or where more operands would be multicast than `MOST_SHARED_OPERANDS`."""
    t, rows, columns = op.shape
    block = (rows // grid[0], columns // grid[1])
    products = sum(step.inner > 0 for step in op.steps)
    if prod(block) > target.dest_tiles or products * ((grid[0] > 1) + (grid[1] > 1)) > MOST_SHARED_OPERANDS:
        return None
    for inner in reversed(divisors(max(step.inner for step in op.steps))):
        blocks = Blocks(grid=grid, t=t, mblock=(1, 1), ublock=block, buf_size_mb=buffers, u_kt=inner)
        if buffer_bytes(target, op, blocks, held=held) <= target.buffer_room:
            return blocks
    return None


def cut_columns(columns: int, height: int, dest: int) -> tuple[int, int]:
    """Return how many ublocks `columns` tiles are cut into and how many columns each has: the most that, with `height`
    rows, fit `dest` tiles. Raises ValueError where not even one column fits."""
    wide = max(size for size in divisors(columns) if size * height <= dest)
    return columns // wide, wide


def step_blocks(op: TileOp, blocks: Blocks, step: SubOp) -> Blocks:
    """Return the division of one step of a fused op (OPS 8.3), derived from the op's division `blocks`; this division
    itself for an op without products or sums in its steps."""
    if not op.has_sums:
        return blocks
    if not op.sums_rows:
        u_kt = 0
        if step.inner:
            u_kt = max((size for size in divisors(step.inner) if size <= blocks.u_kt), default=0)
        return replace(blocks, m_k=step.inner // u_kt if u_kt else 0, u_kt=u_kt)
    height = blocks.ublock[0]
    max_tiles = blocks.most_step_tiles
    count, wide = cut_columns(step.columns or op.shape[2], height, max_tiles)
    m_k = u_kt = 0
    if step.inner:
        m_k, u_kt = cut_columns(step.inner, height, max_tiles)
    return replace(blocks, mblock=(blocks.mblock[0], count), ublock=(height, wide), m_k=m_k, u_kt=u_kt)


def divide_picker(target: Target, op: TileOp, grid: tuple[int, int], cut: WorkDivision) -> Blocks:
    """Return the division over `grid` of an identity matmul whose strips and ublocks are cut as `cut` says. L1 is not
    checked."""
    t, rows, columns = op.shape
    height = rows // grid[0]
    width = columns // grid[1]
    wide = max(size for size in divisors(width) if size * cut.u_rt <= target.dest_tiles)
    return Blocks(
        grid=grid,
        t=t,
        mblock=(height // cut.u_rt, width // wide),
        ublock=(cut.u_rt, wide),
        buf_size_mb=2,
        m_k=op.inner // cut.u_kt,
        u_kt=cut.u_kt,
    )


def _largest_ublock(block: tuple[int, int], dest: int, *, rows_fixed: bool) -> tuple[int, int]:
    """Return the rows and columns of the largest ublock that divides `block` and fits `dest` tiles, the wider of equal
    ones (FRONTEND 4.2). With `rows_fixed` it has one row."""
    if rows_fixed:
        heights = [1]
    else:
        heights = divisors(block[0])
    ublocks = (ublock for ublock in product(heights, divisors(block[1])) if prod(ublock) <= dest)
    return max(ublocks, key=lambda ublock: (prod(ublock), ublock[1]))


@cache
def size_of_tile(df: str, alignment: int) -> int:
    """Return the bytes of a 32 x 32 tile of format `df` with its header, rounded up to `alignment`."""
    return tile_bytes(df, 32, 32, alignment, header=True)


_READ_BYTES = 72 << 10
"""Largest operand buffer in bytes for which the router asks when the operand is read out of DRAM or by a fused op.
Without it pipegen2 refused HRNet on an e75 (V355); tests/compiler/place/test_l1.py holds it against our router."""
_MULTICAST_BYTES = 100 << 10
"""Largest buffer in bytes that the router gives a core which reads an operand out of DRAM for a row or a column of
cores (`MERGED_READ_BYTES` of `routing/streams/model.py`). The core at the corner of a grid may do so for both
factors."""
_ROOM_FOR_READS = 160_000
"""Bytes of L1 beside `Target.buffer_room` that such buffers may take, after headers of four sizes of tile
(`routing/streams`). tests/compiler/place/test_l1.py compares it with what the router has left."""


def buffer_bytes(target: Target, op: TileOp, blocks: Blocks, *, held: int = 0) -> int:
    """Return the bytes of L1 that one core needs for an op with this division: two blocks of each operand, the result's
    buffer, partial sums, `held` bytes of constants, and what the router's read buffers take beyond the room kept for
    them (FRONTEND 4.3, NETLIST 2.2). For a picker, its tiles and words count, too."""
    align = target.arch.alignment

    def size(df: str) -> int:
        """Return the bytes of a tile of a format with its header, aligned."""
        return size_of_tile(df, align)

    act = size("Float32" if op.type == "quantization" else target.activation_df)
    reads = [max(act, size(target.read_df(number))) for number in range(len(op.uses))]
    ublock = prod(blocks.ublock)
    mblock = prod(blocks.mblock)
    if op.attrs.get("gradient"):  # all of its block stays, as the ram's sum (FRONTEND 4.3)
        mblock *= blocks.t
    if op.attrs.get("untilize"):
        result = blocks.mblock[1] * ublock * size(target.output_df)
    else:
        result = mblock * ublock * size(target.activation_df)
    total = held + blocks.buf_size_mb * result
    if op.attrs.get("identity"):
        picked = size(target.picker_df if op.attrs["table"].plain else target.activation_df)
        tiles = op.attrs["num_sparse_tiles"] * picked + op.attrs["num_index_tiles"] * size("RawUInt32")
        total += tiles + 2 * blocks.u_kt * blocks.mblock[1] * blocks.ublock[1] * reads[1]
    elif op.has("inner dimension"):
        total += _bytes_of_product(op, blocks, reads, act, size("Float32"))
    elif op.has("reduces"):
        total += 2 * ublock * max(1, blocks.u_kt) * reads[0]
    elif op.has_sums:
        total += _bytes_of_sums(op, blocks, reads, act)
    else:
        total += 2 * ublock * sum(reads) + op.intermediates * ublock * act
        total += max(0, sum(max(0, _READ_BYTES - 2 * ublock * tile) for tile in reads) - _ROOM_FOR_READS)
    if op.type == "matmul" and target.intermed_df != target.activation_df:
        total += mblock * ublock * size(target.intermed_df)
    return total


def _bytes_of_product(op: TileOp, blocks: Blocks, reads: list[int], act: int, float32: int) -> int:
    """Return the bytes of L1 that a product needs for two blocks of each factor, for a bias or the scales of integers,
    and for read buffers beyond the room that is kept for them. Both factors count as if they came out of DRAM, as their
    source is not known here. `reads`: bytes of a tile of each operand; `act` and `float32`: bytes of a tile of
    activations and of Float32."""
    ublock = prod(blocks.ublock)
    left = blocks.mblock[0] * blocks.ublock[0]
    if op.type == "depthwise":  # each column of the result has a column of its own (`routing.pipes.ops.Depthwise`)
        left *= blocks.ublock[1]
    right = blocks.mblock[1] * blocks.ublock[1]
    total = 2 * blocks.u_kt * (left * reads[0] + right * reads[1])
    read_buffers = _MULTICAST_BYTES * ((blocks.grid[1] > 1) + (blocks.grid[0] > 1))
    if op.attrs.get("bias"):
        total += 2 * ublock * act
        read_buffers += max(0, _READ_BYTES - 2 * ublock * act)
    if op.attrs.get("dequant"):
        total += 4 * ublock * float32
    return total + max(0, read_buffers - _ROOM_FOR_READS)


def _bytes_of_sums(op: TileOp, blocks: Blocks, reads: list[int], act: int) -> int:
    """Return the bytes of L1 that a fused op with sums needs for its operands (two blocks of each, the whole inner
    dimension of a second factor, all inner blocks of an operand that several steps read), for its intermediates, and
    for read buffers beyond the room that is kept for them. `reads`: bytes of a tile of each operand; `act`: those of a
    tile of activations."""
    total = 0
    tiles = dict[str, int]()
    deepest = max(step_blocks(op, blocks, step).m_k for step in op.steps)  # inner blocks that are read again
    for number, size in enumerate(reads):
        division = step_blocks(op, blocks, op.reader(number))
        height, width = division.ublock
        if op.is_factor(number):
            height = division.u_kt * division.m_k  # all of it, as the router has it (`least_bytes`)
        elif op.is_left_factor(number):
            width = division.u_kt
        operand = 2 * size * height * width
        if sum(f"input{number}" in step.inputs for step in op.steps) > 1:
            operand *= deepest
        total += operand
    for step in op.steps:
        if step.output.startswith("intermed"):
            tiles[step.output] = max(tiles.get(step.output, 0), prod(step_blocks(op, blocks, step).ublock))
    return total + act * sum(tiles.values()) + max(0, _READ_BYTES * len(reads) - _ROOM_FOR_READS)


def no_grid_error(target: Target, op: TileOp) -> UnsupportedError:
    """Build the error for an op whose buffers fit no grid; the caller raises it."""
    return UnsupportedError(
        f"compile: {op.name}: no grid of {target.title} has room for {op.type} of {list(op.shape)} tiles: divide it "
        "into several, in the model"
    )


MOST_PAIRS = 6000
"""Most pairs of indices of one row of cores with which the search tries other cuts of an identity matmul: the words of
all pairs stay in L1. No measurement chose the figure."""
MOST_INNER = 32
"""Most tiles of the inner dimension in one strip of an identity matmul that the search tries. No measurement chose the
figure."""


def picker_cuts(op: TileOp, grid_rows: int, dest: int) -> Iterator[WorkDivision]:
    """Yield the ways to cut the strips and ublocks of an identity matmul over `grid_rows` rows of cores whose words
    have 16 bits. An ublock has at most `dest` rows. Nothing if there are more pairs than `MOST_PAIRS`, unless the op
    was lowered for as many rows."""
    table: PickTable = op.attrs["table"]
    block = op.shape[1] // grid_rows
    if table.counts(WorkDivision(grid_rows)).pairs > MOST_PAIRS and grid_rows != op.attrs["rows"]:
        return
    for u_rt in (size for size in divisors(block) if size <= dest):
        for u_kt in (size for size in divisors(op.inner) if size <= MOST_INNER):
            cut = WorkDivision(grid_rows, u_rt, u_kt)
            if table.fits(cut):
                yield cut


def with_cut_counts(op: TileOp, cut: WorkDivision) -> TileOp:
    """Return an identity matmul with the numbers of strips, ublocks, tiles and words that a cut gives it, but still
    with its old tiles and words: enough to estimate cycles and L1 without encoding it."""
    counts = op.attrs["table"].counts(cut)
    attrs = {
        "strips": (counts.strips,) * cut.grid_rows,
        "indices_len": counts.pairs,
        "num_index_tiles": counts.word_tiles,
        "num_sparse_tiles": counts.tiles,
        "ublocks": counts.ublocks,
    }
    return replace(op, grid=(cut.grid_rows, op.grid[1] if op.grid else 0), attrs={**op.attrs, **attrs})


def encode_picker(tiles: TileGraph, op: TileOp, blocks: Blocks) -> TileOp:
    """Return an identity matmul with the tiles and words of its division; any other op, or one that was lowered for
    this division, as it is. New constants are added to the graph `tiles`."""
    cut = WorkDivision(blocks.grid[0], blocks.ublock[0], blocks.u_kt)
    if "table" not in op.attrs or cut == WorkDivision(op.attrs["rows"]):
        return op
    return replace_table(tiles.constants, op, op.attrs["table"], cut)


def replace_table(constants: dict[str, Constant], op: TileOp, table: PickTable, cut: WorkDivision) -> TileOp:
    """Return an identity matmul that picks by `table`, cut as `cut` says: with the table's slices and rows, and with
    its tiles and words, which are added to `constants` under new names. Raises UnsupportedError if they do not fit
    16-bit words."""
    picker = table.picker(cut)
    kind = "picker" if picker.plain else "value"
    names = [_unused_name(constants, f"{op.name}.{part}", cut.grid_rows) for part in ("picker", "encoding")]
    constants[names[0]] = Constant(names[0], picker.tiles, kind)
    constants[names[1]] = Constant(names[1], picker.words, "words")
    attrs = {
        **op.attrs,
        "num_sparse_tiles": picker.tiles.shape[2] // 32,
        "num_index_tiles": picker.words.shape[2] // 32,
        "sparse_tile_ptr_bits": picker.tile_bits,
        "sparse_ublock_idx_bits": picker.ublock_bits,
        "strips": picker.strips,
        "indices_len": picker.pairs,
        "table": table,
    }
    uses = [Use(names[0]), op.uses[1], Use(names[1]), *op.uses[3:]]
    return replace(op, uses=uses, shape=(table.t, table.rows, op.shape[2]), attrs=attrs)


def _unused_name(constants: Container[str], stem: str, number: int) -> str:
    """Return a name that no constant has: `stem`, or if that is taken `stem.number`, with as many underscores behind it
    as it needs."""
    name = stem
    if stem in constants:
        name = f"{stem}.{number}"
    while name in constants:
        name += "_"
    return name


class CoreGrid:
    """The free cores of a chip. Each row is a number whose bits are its free cores."""

    def __init__(self, rows: int, columns: int) -> None:
        self._rows = [(1 << columns) - 1] * rows
        self._columns = columns

    def take(self, grid: tuple[int, int]) -> tuple[int, int] | None:
        """Mark the first free rectangle of `grid` rows and columns, row by row, as used, and return its upper left
        core; None, with nothing changed, where there is none."""
        at = next(self._free_places(grid), None)
        if at is not None:
            self.block(at, grid)
        return at

    def block(self, at: tuple[int, int], grid: tuple[int, int]) -> None:
        """Mark the cores of a rectangle of `grid` rows and columns with the upper left core `at` as used."""
        mask = (1 << grid[1]) - 1
        for row in range(at[0], at[0] + grid[0]):
            self._rows[row] &= ~(mask << at[1])

    def release(self, at: tuple[int, int], grid: tuple[int, int]) -> None:
        """Mark the cores of a rectangle of `grid` rows and columns with the upper left core `at` as free again."""
        mask = (1 << grid[1]) - 1
        for row in range(at[0], at[0] + grid[0]):
            self._rows[row] |= mask << at[1]

    def places(self, grid: tuple[int, int]) -> list[tuple[int, int]]:
        """List the upper left cores of all rectangles of `grid` rows and columns whose cores are all free, row by
        row."""
        return list(self._free_places(grid))

    def _free_places(self, grid: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """Yield the upper left core of each rectangle of `grid` rows and columns whose cores are all free, row by
        row."""
        height, width = grid
        mask = (1 << width) - 1
        for top in range(len(self._rows) - height + 1):
            free = ~0
            for row in self._rows[top : top + height]:
                free &= row
            for left in range(self._columns - width + 1):
                if (free >> left) & mask == mask:
                    yield top, left

    @property
    def free(self) -> int:
        """The number of free cores."""
        return sum(row.bit_count() for row in self._rows)
