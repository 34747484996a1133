"""Tile-dim rules: which operands may have tiles other than 32x32 (NETLIST 2, V055-V066; 11.1 A2, A15)."""

from buda_emu.netlist.model import Op
from buda_emu.netlist.rules.context import Context, attribute_mark, item_mark, tms_mark, transposes
from buda_emu.netlist.rules.registry import Finding, Findings, op_check
from buda_emu.netlist.rules.rule import rule
from buda_emu.spec.blocking import FULL_TILE
from buda_emu.spec.ops import OP_TYPES, SFPU_TYPES
from buda_emu.support.checker.fix import putting

SMALL_TILES = ((2, 32), (4, 32), (8, 32), (16, 32), (32, 16))


@op_check(
    rule(
        "V055",
        "P",
        "a 1x32 tile on an operand that cannot take it",
        "1x32 tiles go into every input of a dense matmul, input 1 of an identity matmul, and copies, binary, "
        "sfpu ops and tilizer.",
        "a reduce of a queue with tile_dim: [1, 32]",
        "a nop of a queue with tile_dim: [1, 32]",
        "NETLIST 2, 11.1 A15",
    )
)
def row_tiles(_: Context, op: Op) -> Findings:
    """Refuse 1x32 tiles except for every input of a dense matmul, input 1 of an identity matmul, and element-wise
    ops."""
    for index, dims in enumerate(op.input_tile_dims):
        if dims == (1, 32) and not _takes_small_tiles(op, index, bias=True):
            yield Finding(item_mark(op, "inputs", index), f"input {index} of {op.type} cannot have tiles of [1, 32]")


@op_check(
    rule(
        "V056",
        "P",
        "a small tile on an operand that cannot take it",
        "2x32, 4x32, 8x32, 16x32 and 32x16 tiles go into input 0 and 1 of a dense matmul, input 1 of an identity "
        "matmul, and copies, binary, sfpu ops and tilizer; the bias of a matmul has 32x32 or 1x32.",
        "a matmul whose bias has tile_dim: [16, 32]",
        "a matmul whose input 0 has tile_dim: [16, 32]",
        "NETLIST 2, 11.1 A15",
    )
)
def small_tiles(_: Context, op: Op) -> Findings:
    """Refuse the other small tiles where 1x32 is refused, and for the bias of a matmul."""
    for index, dims in enumerate(op.input_tile_dims):
        if dims in SMALL_TILES and not _takes_small_tiles(op, index, bias=False):
            message = f"input {index} of {op.type} cannot have tiles of {list(dims)}"
            yield Finding(item_mark(op, "inputs", index), message)


@op_check(
    rule(
        "V058",
        "P",
        "a small tile together with an integer format",
        "Int8 and Int32 are computed on 32x32 tiles only.",
        "{in_df: [Int8, Int8], tile_dim: [16, 32]}",
        "{in_df: [Int8, Int8], tile_dim: [32, 32]}",
    )
)
def integer_tiles(_: Context, op: Op) -> Findings:
    """Refuse Int8 and Int32 in tiles other than 32x32."""
    formats = {*op.in_df, op.out_df} & {"Int8", "Int32"}
    small = [dims for dims in (*op.input_tile_dims, op.blocking.tile_dim) if dims != FULL_TILE]
    if formats and small:
        yield Finding(op.at("tile_dim", "inputs"), f"tiles of {list(small[0])} together with {min(formats)}")


@op_check(
    rule(
        "V059",
        "P",
        "the vector mode does not cover the input tile",
        "The SFPU works on rows (r), columns (c) or whole tiles (rc). A tile of less than 32 rows needs r, a "
        "32x16 tile c. It is the tile of input 0 that counts; without `vector` the right mode is taken.",
        "an exp of 16x32 tiles with vector: rc",
        "an exp of 16x32 tiles with vector: r",
        "NETLIST 1.5, 11.1 A2",
    ),
    "vector unit",
)
def vector_covers_tile(_: Context, op: Op) -> Findings:
    """Refuse a vector mode other than the one for the tile of input 0; the output's tile does not count (NETLIST
    11.1 A2)."""
    dims = op.input_tile_dims[0]
    need = {FULL_TILE: "", (32, 16): "c"}.get(dims, "r")
    if need and op.vector != need:
        message = f"vector {op.vector} on input tiles of {list(dims)}"
        hint = putting(f"write `vector: {need}`, or leave it out", "vector", need)
        yield Finding(attribute_mark(op, "vector"), message, hint)


@op_check(
    rule(
        "V060",
        "P",
        "the two operands of a binary op have different tiles",
        "Tiles are combined element by element.",
        "add of 16x32 and 32x32 tiles",
        "add of 16x32 and 16x32 tiles",
    ),
    "binary",
    "quantization",
)
def equal_tiles(_: Context, op: Op) -> Findings:
    """Refuse two operands of a binary op with different tiles: they walk together."""
    first, second = op.input_tile_dims[:2]
    if first != second:
        yield Finding(op.at("inputs"), f"input 0 has tiles of {list(first)}, input 1 of {list(second)}")


@op_check(
    rule(
        "V061",
        "P",
        "a 32x16 tile on one side of the op only",
        "Element-wise ops and tilizer may drop rows of a tile, but not columns.",
        "a nop of 32x16 tiles that writes 32x32",
        "a nop of 32x16 tiles that writes 32x16",
        "NETLIST 2, 11.1 A15",
    ),
    "keeps shape",
)
def half_width_result(_: Context, op: Op) -> Findings:
    """Refuse a result of another width than half-width tiles of input 0."""
    yield from _half_width(op, 0)


@op_check(
    rule(
        "V062",
        "P",
        "a gradient copy changes the tile",
        "The copy is added to the content of the accumulator, tile by tile.",
        "{type: nop, gradient_op: true} of 16x32 tiles that writes 32x32",
        "{type: nop, gradient_op: true, tile_dim: [16, 32]} of 16x32 tiles",
        "NETLIST 2, 11.1 A15",
    ),
    "unary",
    "ethernet",
)
def gradient_copy(_: Context, op: Op) -> Findings:
    """Refuse a gradient copy between tiles of different sizes: it adds them up."""
    if op.gradient_op and op.input_tile_dims[0] != op.blocking.tile_dim:
        message = f"a gradient copy reads tiles of {list(op.input_tile_dims[0])}, writes {list(op.blocking.tile_dim)}"
        yield Finding(op.at("tile_dim"), message)


@op_check(
    rule(
        "V063",
        "P",
        "a small-tile matmul has sfpu_op or gradient_op",
        "The kernel for small tiles only multiplies. An unknown sfpu_op counts as none.",
        "a matmul of 16x32 tiles with sfpu_op: gelu",
        "a matmul of 16x32 tiles, then a gelu op",
        "NETLIST 2, 11.2 B1",
    ),
    "matmul",
)
def small_matmul(_: Context, op: Op) -> Findings:
    """Refuse sfpu_op and gradient_op on a matmul of small tiles. An unknown sfpu_op counts as none (NETLIST 11.2
    B1)."""
    if op.attributes.identity or {*op.input_tile_dims[:2], op.blocking.tile_dim} == {FULL_TILE}:
        return
    if op.attributes.sfpu_op in SFPU_TYPES:
        message = f"sfpu_op {op.attributes.sfpu_op} on a matmul with small tiles"
        yield Finding(attribute_mark(op, "sfpu_op"), message)
    if op.gradient_op:
        yield Finding(op.at("gradient_op"), "gradient_op on a matmul with small tiles")


@op_check(
    rule(
        "V064",
        "P",
        "a 32x16 tile on one side of a matmul only",
        "The columns of the result are those of input 1.",
        "a matmul whose input 1 has 32x16 tiles that writes 32x32",
        "a matmul whose input 1 has 32x16 tiles that writes 32x16",
    ),
    "matmul",
    unless=("V066",),
)
def matmul_half_width(_: Context, op: Op) -> Findings:
    """Refuse a product of another width than the half-width tiles of input 1, whose columns it has."""
    yield from _half_width(op, 1)


@op_check(
    rule(
        "V065",
        "P",
        "a reduce cannot produce this tile",
        "A reduce over r writes rows of full width, a reduce over c columns of full height.",
        "{type: reduce, attributes: {dim: r, type: max}, tile_dim: [32, 16]}",
        "{type: reduce, attributes: {dim: r, type: max}, tile_dim: [1, 32]}",
    ),
    "reduce",
)
def reduced_tile(_: Context, op: Op) -> Findings:
    """Refuse a reduce over r into tiles of half width, and a reduce over c into tiles that are not of full height."""
    dims = op.blocking.tile_dim
    if op.attributes.dim == "r" and dims == (32, 16):
        yield Finding(op.at("tile_dim"), "reduce over r cannot write tiles of [32, 16]")
    elif op.attributes.dim == "c" and dims not in (FULL_TILE, (32, 16)):
        yield Finding(op.at("tile_dim"), f"reduce over c cannot write tiles of {list(dims)}")


@op_check(
    rule(
        "V066",
        "P",
        "a transpose of a tile that a matmul cannot transpose",
        "The matmul transposes tiles of 32x32 and 16x32 as it reads them.",
        "input_1_tms: [transpose] on a queue with tile_dim: [32, 16]",
        "input_1_tms: [transpose] on a queue with tile_dim: [16, 32]",
        "NETLIST 2, OPS 7.4",
    ),
    "matmul",
)
def transposed_tile(ctx: Context, op: Op) -> Findings:
    """Refuse a transpose of tiles other than 32x32 and 16x32; the tile counts as it is read, before the transpose
    (OPS 7.4)."""
    for index in range(len(op.input_tms)):
        dims = ctx.tile_read(op, index)
        if transposes(op, index) and dims not in (FULL_TILE, (16, 32)):
            message = f"a matmul transposes tiles of [32, 32] or [16, 32], input {index} has {list(dims)}"
            yield Finding(tms_mark(op, index), message)


def _takes_small_tiles(op: Op, index: int, *, bias: bool) -> bool:
    declaration = OP_TYPES[op.type]
    if declaration.family == "matmul":
        if op.attributes.identity:
            return index == 1
        return bias or index < 2
    return declaration.has("keeps shape")


def _half_width(op: Op, index: int) -> Findings:
    read = op.input_tile_dims[index]
    tile = op.blocking.tile_dim
    if (read == (32, 16)) != (tile == (32, 16)):
        message = f"input {index} has tiles of {list(read)}, the output {list(tile)}"
        yield Finding(op.at("tile_dim"), message, "both or none must be [32, 16]")


# Found while a netlist is read, or not checked
rule(
    "V057",
    "P",
    "a tile's size in memory is not a multiple of the alignment",
    "Tiles with their header are rounded up to the alignment, so this cannot happen and is not checked. The "
    "rule stands for the block formats whose small tiles would not fill a unit of their own.",
    "",
    "",
    "NETLIST 1.9, 2",
)
