"""Do operands have the shape that their op works on (OPS 2, table; OPS 7 for the TMs; stage N), and may they have tiles
other than 32x32 (NETLIST 2, V055-V066; 11.1 A2, A15).

The reference notices wrong shapes at run time or not at all. Splice, embedding, fused ops and the sparse operands of an
identity matmul are judged when they run.
"""

from collections.abc import Iterator, Mapping

from buda_emu.netlist.model import Op, Pad, Queue, Tm
from buda_emu.netlist.rules.context import Context, attribute_mark, has_transpose_tm, item_mark, tms_mark
from buda_emu.netlist.rules.registry import Finding, Findings, op_check, queue_check, rule
from buda_emu.spec.archs import Arch
from buda_emu.spec.blocking import FULL_TILE, Shape
from buda_emu.spec.ops import OP_TYPES, SFPU_TYPES
from buda_emu.support.checker.fix import putting

Expected = tuple[int | None, int | None, int | None]
"""(t, tile rows, tile columns) of an operand; None is any."""


@op_check(
    rule(
        "V179",
        "N",
        "an operand or queue has another shape than its op",
        "After unpad, TMs and pad an operand has the t, tile rows and tile columns that the op's own t, mblock, "
        "ublock and grid ask for (a matmul: m_k * u_kt along the inner dimension, which with identity are the tile "
        "rows of one t of the activations, since strips are numbered m_k * t + s); a queue has those of the op "
        "that feeds it. The reference fails when it runs, or computes on without a word.",
        "op {mblock: [2, 2], ublock: [1, 2]} reading a queue {mblock: [2, 1], ublock: [1, 2]}",
        "op {mblock: [2, 2], ublock: [1, 2], input_0_tms: [broadcast: {c: 2}]} reading a queue {mblock: [2, 1], "
        "ublock: [1, 2]}",
        "OPS 2",
    )
)
def operand_shapes(ctx: Context, op: Op) -> Findings:
    """Refuse inputs whose shape, after unpad, TMs in order and pad, is not the one that the op type needs.

    Where the inputs fit each other and the op in all but the inner dimension, the finding is about m_k or u_kt.
    """
    shapes: dict[int, Shape] = {}
    for index, source in ctx.sources(op):
        try:
            shapes[index] = _shape_read(op, index, source.blocking.shape)
        except ValueError as error:
            yield Finding(item_mark(op, "inputs", index), f"input {index}: {error}")
    expected = dict(enumerate(_expected_shapes(op, *op.attributes.inner)))
    wrong = [index for index, shape in shapes.items() if not _fits(shape, expected.get(index))]
    inner = _fitting_inner(op, shapes) if wrong else None
    if inner is not None:
        yield _wrong_inner(op, shapes[0], inner)
        return
    for index in wrong:
        have = shape_text(shapes[index])
        need = shape_text(expected[index])
        message = f"input {index} has {have} after its TMs, {op.type} needs {need}"
        yield Finding(item_mark(op, "inputs", index), message, "numbers are t, tile rows, tile columns")


@queue_check("V179", unless=("V076", "V077"))
def queue_shape(ctx: Context, queue: Queue) -> Findings:
    """Refuse a queue whose shape is not that of its op's result after the queue's TMs."""
    op = None if queue.host_fed else ctx.ops.get(queue.input)
    if op is None:
        return
    shape = op.blocking.shape
    try:
        for tm in queue.input_tms:
            shape = after(tm, shape)
    except ValueError as error:
        yield Finding(queue.at("input_tms"), str(error))
        return
    if shape != queue.blocking.shape:
        message = f"holds {shape_text(queue.blocking.shape)}, op {op.name} writes {shape_text(shape)}"
        yield Finding(queue.at("mblock"), message, "numbers are t, tile rows, tile columns")


def _shape_read(op: Op, index: int, shape: Shape) -> Shape:
    """Return the shape that an op reads as input `index` of a producer's shape: unpad, TMs in order, pad.

    Raises ValueError for a TM that does not divide the shape.
    """
    if index < len(op.input_unpad):
        shape = unpad_shape(shape, op.input_unpad[index])
    if index < len(op.input_tms):
        for tm in op.input_tms[index]:
            shape = after(tm, shape)
    if index < len(op.input_pad):
        shape = pad_shape(shape, op.input_pad[index])
    return shape


def after(tm: Tm, shape: Shape) -> Shape:
    """Return the shape (t, tile rows, tile columns) after one TM. Raises ValueError where the TM does not divide the
    shape."""
    t, rows, columns = shape
    if tm.name == "transpose":
        return t, columns, rows
    if tm.name == "pad":
        return t, rows + int(tm.args[0]), columns + int(tm.args[1])
    if tm.name == "broadcast":
        factor = int(tm.args[1])
        factors = {"z": (factor, 1, 1), "r": (1, factor, 1), "c": (1, 1, factor)}[str(tm.args[0])]
        return t * factors[0], rows * factors[1], columns * factors[2]
    count = int(tm.args[0]) if tm.args else 1
    if tm.name == "hstack" and count == 0:
        count = t
    cut = {"hslice": columns, "vslice": rows, "hstack": t, "vstack": t}.get(tm.name, 0)
    if count < 1 or cut % count:
        raise ValueError(f"{tm.name} {count} does not divide {cut}")
    return {
        "hslice": (t * count, rows, columns // count),
        "vslice": (t * count, rows // count, columns),
        "hstack": (t // count, rows, columns * count),
        "vstack": (t // count, rows * count, columns),
    }.get(tm.name, shape)


def _fits(shape: Shape, expected: Expected | None) -> bool:
    """Return whether a shape has the sizes that are expected; sizes that may have any value fit, and so does no
    expectation.
    """
    return expected is None or all(want in (None, have) for want, have in zip(expected, shape, strict=True))


def _fitting_inner(op: Op, shapes: Mapping[int, Shape]) -> tuple[int, int] | None:
    """Return the m_k and u_kt with which all inputs would fit; None if no numbers would help, or if the op's own are
    right. `shapes` holds the shape of each known input after its TMs."""
    attributes = op.attributes
    if len(shapes) < len(op.inputs) or attributes.identity or attributes.m_k < 1 or attributes.u_kt < 1:
        return None
    inner = _inner_tiles(op, shapes.get(0))
    if inner is None:
        return None
    if op.type == "depthwise" or inner % attributes.u_kt == 0:
        candidate = inner // attributes.u_kt, attributes.u_kt
    elif inner % attributes.m_k == 0:
        candidate = attributes.m_k, inner // attributes.m_k
    else:
        candidate = inner, 1
    if _fit_all(op, shapes, candidate):
        return candidate
    return None


def _fit_all(op: Op, shapes: Mapping[int, Shape], inner: tuple[int, int]) -> bool:
    """Return whether all inputs whose shape is known fit an op with these m_k and u_kt."""
    expected = enumerate(_expected_shapes(op, *inner))
    return all(_fits(shapes[index], want) for index, want in expected if index in shapes)


def _inner_tiles(op: Op, first: Shape | None) -> int | None:
    """Return the tiles that m_k and u_kt of an op multiply to, by the shape of its first input; None if that is not
    known or cannot be divided so, and for an op without such a loop."""
    cuts = {"matmul": 1, "depthwise": op.blocking.block_cols, "topk": op.blocking.grid_size[1]}
    along = 2
    parts = cuts.get(op.type, 0)
    if op.type == "reduce":
        along = 1 if op.attributes.dim == "r" else 2
        parts = op.blocking.grid_size[along - 1]
    if first is None or parts < 1 or first[along] % parts:
        return None
    return first[along] // parts


def _wrong_inner(op: Op, first: Shape, right: tuple[int, int]) -> Finding:
    """Return the finding about m_k or u_kt of an op whose inputs fit with the values `right`. `first` is the shape
    of input 0 after its TMs.
    """
    attributes = op.attributes
    names = "m_k" if op.type == "depthwise" else "m_k * u_kt"
    have = attributes.inner_tiles
    need = right[0] * right[1]
    key = "m_k" if right[0] != attributes.m_k else "u_kt"
    message = (
        f"{names} is {have}, by the shapes of the inputs it is {need}: input 0 has {shape_text(first)} after its TMs"
    )
    both_wrong = right[0] != attributes.m_k and right[1] != attributes.u_kt
    if both_wrong:
        values = f"m_k: {right[0]}, u_kt: {right[1]}"
    else:
        values = f"{key}: {right[key == 'u_kt']}"
    hint = f"write `{values}`; numbers are t, tile rows, tile columns"
    if both_wrong:
        exact = hint
    else:
        exact = putting(hint, key, str(right[key == "u_kt"]), safe=False)
    return Finding(attribute_mark(op, key), message, exact)


def _expected_shapes(op: Op, m_k: int, u_kt: int) -> Iterator[Expected]:
    """Yield the shape that each input of an op needs, with these values in place of its own m_k and u_kt; none for
    op types whose operands are judged when they run.
    """
    t, rows, columns = op.blocking.shape
    inner = m_k * u_kt
    if op.has("keeps shape"):
        yield from [(t, rows, columns)] * len(op.inputs)
    elif op.type == "matmul":
        yield from _matmul_shapes(op, inner)
    elif op.type == "depthwise":
        yield (t, rows, op.blocking.block_cols * m_k)
        yield (t, m_k, columns)
        yield from [(t, rows, columns)] * (len(op.inputs) - 2)
    elif op.type == "reduce":
        yield from _reduce_shapes(op, inner)
    elif op.type == "topk":
        yield from [(t, rows, op.blocking.grid_size[1] * inner or None)] * len(op.inputs)


def _matmul_shapes(op: Op, inner: int) -> Iterator[Expected]:
    """Yield the shapes that the inputs of a matmul need, with an inner dimension of `inner` tiles. Sparse tiles of
    an identity matmul may have any shape.
    """
    attributes = op.attributes
    t, rows, columns = op.blocking.shape
    if attributes.identity:
        yield (None, None, None)
        yield (None, inner, columns)  # strips are numbered m_k * t + s: the same integer for each t
        return
    slices = t * attributes.z if attributes.accumulate else t
    yield (slices, rows, inner)
    yield (slices, inner, columns)
    yield from [(t, rows, columns)] * (len(op.inputs) - 2)


def _reduce_shapes(op: Op, inner: int) -> Iterator[Expected]:
    """Yield the shape that the input of a reduce needs; `inner` is the number of tiles that a core reduces along r
    or c, 0 where it is not written.
    """
    attributes = op.attributes
    t, rows, columns = op.blocking.shape
    grid_rows, grid_columns = op.blocking.grid_size
    if attributes.dim == "r":
        yield (t, grid_rows * inner if inner else None, columns)
    elif attributes.dim == "c":
        yield (t, rows, grid_columns * inner if inner else None)
    elif attributes.dim == "z" and attributes.z > 0:
        yield (t * attributes.z, rows, columns)


def unpad_shape(shape: Shape, pad: Pad) -> Shape:
    """Return the shape without the tiles that an unpad takes away."""
    return shape[0], shape[1] - pad.rt, shape[2] - pad.ct


def pad_shape(shape: Shape, pad: Pad) -> Shape:
    """Return the shape with the tiles that a pad appends."""
    return shape[0], shape[1] + pad.rt, shape[2] + pad.ct


def shape_text(shape: Expected) -> str:
    """Return a shape as text for messages; sizes that may have any value are "any"."""
    return f"[{', '.join('any' if size is None else str(size) for size in shape)}]"


WIDE_ACCUMULATORS = ("Float32", "Int32")


def dest_tiles(arch: Arch, acc_df: str) -> int:
    """Return the tiles that half of dest holds (NETLIST V040): a 32-bit accumulator takes two places."""
    if acc_df in WIDE_ACCUMULATORS:
        return arch.dest_tiles // 2
    return arch.dest_tiles


def dest_message(subject: str, tiles: int, arch: Arch, acc_df: str) -> str:
    """Return the message of V040 about `subject`, such as "ublock [4, 4]", which has more tiles than half of dest
    holds.
    """
    if acc_df in WIDE_ACCUMULATORS:
        wide = f" with acc_df {acc_df}"
    else:
        wide = ""
    return f"{subject} has {tiles} tiles, half of dest holds {dest_tiles(arch, acc_df)}{wide}"


def kernel_broadcasts(op: Op) -> list[tuple[str, int, int]]:
    """Return attribute, input and factor of every kernel_broadcast of an op; single_tile is a factor of 1 (OPS
    6.14)."""
    attributes = op.attributes
    pairs = [("kernel_broadcast", index, factor) for index, factor in attributes.kernel_broadcast]
    pairs += [("kernel_broadcast_per_t", index, factor) for index, factor in attributes.kernel_broadcast_per_t]
    return pairs + [("single_tile", index, 1) for index in attributes.single_tile]


@op_check(
    rule(
        "V040",
        "P",
        "a ublock does not fit half of dest",
        "Results pass through half of the dest register: 8 tiles, 4 with acc_df Float32 or Int32 (wormhole A0: "
        "four times that). The ublock of every op and scheduled op must fit; for topk also [ublock rows, u_kt].",
        "{ublock: [4, 4], acc_df: Float16_b}",
        "{ublock: [2, 4], acc_df: Float16_b}",
        "NETLIST 2, OPS 9.2",
    )
)
def ublock_in_dest(ctx: Context, op: Op) -> Findings:
    """Refuse a ublock of more tiles than half of dest holds; of a topk also [ublock rows, u_kt]."""
    limit = dest_tiles(ctx.arch, op.acc_df)
    if (tiles := op.blocking.ublock[0] * op.blocking.ublock[1]) > limit:
        yield Finding(op.at("ublock"), dest_message(f"ublock {list(op.blocking.ublock)}", tiles, ctx.arch, op.acc_df))
    pair = (op.blocking.ublock[0], op.attributes.u_kt)
    if op.type == "topk" and (tiles := pair[0] * pair[1]) > limit:
        message = f"[ublock rows, u_kt] {list(pair)}"
        yield Finding(attribute_mark(op, "u_kt"), dest_message(message, tiles, ctx.arch, op.acc_df))


@op_check(
    rule(
        "V045",
        "P",
        "kernel_broadcast on an input that is not broadcast",
        "The attribute says that the operand repeats after this many tiles, so that a core keeps only those. It can"
        " only repeat if a broadcast TM repeats it.",
        "{attributes: {kernel_broadcast: {input_1: 4}}}",
        "{input_1_tms: [broadcast: {r: 4}], attributes: {kernel_broadcast: {input_1: 4}}}",
        "OPS 6.15",
    )
)
def kernel_broadcast_needs_broadcast(_: Context, op: Op) -> Findings:
    """Refuse a kernel_broadcast of an input without a broadcast TM: an operand repeats only when a TM repeats it
    (OPS 6.15)."""
    for key, index, factor in kernel_broadcasts(op):
        if index < len(op.input_tms):
            names = {tm.name for tm in op.input_tms[index]}
        else:
            names = set[str]()
        if factor > 0 and "broadcast" not in names:
            yield Finding(attribute_mark(op, key), f"{key} on input {index}, which has no broadcast TM")


@op_check(
    rule(
        "V046",
        "P",
        "kernel_broadcast does not fit the ublock",
        "From wormhole on the matmul kernel reads whole ublocks: a factor above 1 of input 0 is a multiple of "
        "ublock rows * u_kt where ublock columns < rows, one of input 1 a multiple of ublock columns otherwise.",
        "{ublock: [1, 2], attributes: {kernel_broadcast: {input_1: 3}}}",
        "{ublock: [1, 2], attributes: {kernel_broadcast: {input_1: 4}}}",
        "NETLIST 2, OPS 6.15",
    ),
    "inner dimension",
)
def broadcast_fits_ublock(ctx: Context, op: Op) -> Findings:
    """Refuse a kernel_broadcast factor that is no multiple of the tiles that the kernel keeps of the operand (OPS
    6.15, from wormhole on)."""
    if ctx.arch.name == "grayskull":
        return
    rows, columns = op.blocking.ublock
    for key, index, factor in kernel_broadcasts(op):
        unit = 1
        if index == 0 and columns < rows:
            unit = rows * op.attributes.u_kt
        elif index == 1 and columns >= rows:
            unit = columns
        if factor > 1 and unit > 0 and factor % unit:
            yield Finding(
                attribute_mark(op, key),
                f"{key} {factor} of input {index} does not divide by {unit}",
                "input 0 needs multiples of ublock rows * u_kt where ublock columns < rows, "
                "input 1 multiples of ublock columns otherwise",
            )


SMALL_TILES = ((2, 32), (4, 32), (8, 32), (16, 32), (32, 16))  # V056 (NETLIST 2)


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
    """Refuse tiles smaller than 32x32, other than 1x32, where 1x32 is refused, too, and for the bias of a matmul."""
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
        source="NETLIST 2",
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
        source="NETLIST 2",
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
    """Refuse an element-wise op with 32x16 tiles in only one of input 0 and the output."""
    yield from _check_half_width(op, 0)


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
        source="NETLIST 2",
    ),
    "matmul",
    unless=("V066",),
)
def matmul_half_width(_: Context, op: Op) -> Findings:
    """Refuse a matmul with 32x16 tiles in only one of input 1, whose columns the product has, and the output."""
    yield from _check_half_width(op, 1)


@op_check(
    rule(
        "V065",
        "P",
        "a reduce cannot produce this tile",
        "A reduce over r writes rows of full width, a reduce over c columns of full height.",
        "{type: reduce, attributes: {dim: r, type: max}, tile_dim: [32, 16]}",
        "{type: reduce, attributes: {dim: r, type: max}, tile_dim: [1, 32]}",
        source="NETLIST 2",
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
        if has_transpose_tm(op, index) and dims not in (FULL_TILE, (16, 32)):
            message = f"a matmul transposes tiles of [32, 32] or [16, 32], input {index} has {list(dims)}"
            yield Finding(tms_mark(op, index), message)


def _takes_small_tiles(op: Op, index: int, *, bias: bool) -> bool:
    """Return whether an input may have tiles smaller than 32x32. `bias` tells whether those of a matmul behind
    input 1 may.
    """
    declaration = OP_TYPES[op.type]
    if declaration.family == "matmul":
        if op.attributes.identity:
            return index == 1
        return bias or index < 2
    return declaration.has("keeps shape")


def _check_half_width(op: Op, index: int) -> Findings:
    """Yield a finding if only one of the two, input `index` or the output, has 32x16 tiles."""
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
