"""Do operands have the shape that their op works on (OPS 2, table; OPS 7 for the TMs; stage N).

The reference notices at run time or not at all. Splice, embedding, fused ops and the sparse operands of an identity
matmul are judged when they run.
"""

from collections.abc import Iterator, Mapping

from buda_emu.netlist.model import Op, Pad, Queue, Tm
from buda_emu.netlist.rules.context import Context, attribute_mark, item_mark
from buda_emu.netlist.rules.registry import Finding, Findings, op_check, queue_check
from buda_emu.netlist.rules.rule import rule
from buda_emu.spec.archs import Arch
from buda_emu.spec.blocking import Shape
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
    """Unpad, TMs in order, pad, and then what the kernel expects.

    Where the inputs fit each other and the op in all but the inner dimension, m_k or u_kt is wrong.
    """
    shapes: dict[int, Shape] = {}
    for index, source in ctx.sources(op):
        shape = unpadded(source.blocking.shape, op.input_unpad[index] if index < len(op.input_unpad) else Pad())
        try:
            for tm in op.input_tms[index] if index < len(op.input_tms) else ():
                shape = after(tm, shape)
        except ValueError as error:
            yield Finding(item_mark(op, "inputs", index), f"input {index}: {error}")
            continue
        shapes[index] = padded(shape, op.input_pad[index] if index < len(op.input_pad) else Pad())
    expected = dict(enumerate(_expected(op, op.attributes.m_k, op.attributes.u_kt)))
    wrong = [index for index, shape in shapes.items() if not _fits(shape, expected.get(index))]
    inner = _inner_of(op, shapes) if wrong else None
    if inner is not None:
        yield _wrong_inner(op, shapes[0], inner)
        return
    for index in wrong:
        have = shape_text(shapes[index])
        need = shape_text(expected[index])
        what = f"input {index} has {have} after its TMs, {op.type} needs {need}"
        yield Finding(item_mark(op, "inputs", index), what, "numbers are t, tile rows, tile columns")


@queue_check("V179", unless=("V076", "V077"))
def queue_shape(ctx: Context, queue: Queue) -> Findings:
    """A queue holds what its op writes, after its own TMs."""
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
        what = f"holds {shape_text(queue.blocking.shape)}, op {op.name} writes {shape_text(shape)}"
        yield Finding(queue.at("mblock"), what, "numbers are t, tile rows, tile columns")


def after(tm: Tm, shape: Shape) -> Shape:
    """Shape after one TM. Raises ValueError where it does not divide."""
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
    return expected is None or all(want in (None, have) for want, have in zip(expected, shape, strict=True))


def _inner_of(op: Op, shapes: Mapping[int, Shape]) -> tuple[int, int] | None:
    """The m_k and u_kt with which all inputs would fit. None where no numbers would help, or they are right."""
    own = op.attributes
    first = shapes.get(0)
    cuts = {"matmul": 1, "depthwise": op.blocking.block_cols, "topk": op.blocking.grid_size[1]}
    if op.type == "reduce":
        along, parts = (1, op.blocking.grid_size[0]) if own.dim == "r" else (2, op.blocking.grid_size[1])
    else:
        along = 2
        parts = cuts.get(op.type, 0)
    if (
        first is None
        or len(shapes) < len(op.inputs)
        or own.identity
        or own.m_k < 1
        or own.u_kt < 1
        or parts < 1
        or first[along] % parts
    ):
        return None
    inner = first[along] // parts
    if op.type == "depthwise" or inner % own.u_kt == 0:
        found = inner // own.u_kt, own.u_kt
    else:
        found = (own.m_k, inner // own.m_k) if inner % own.m_k == 0 else (inner, 1)
    expected = enumerate(_expected(op, *found))
    return found if all(_fits(shapes[index], want) for index, want in expected if index in shapes) else None


def _wrong_inner(op: Op, first: Shape, right: tuple[int, int]) -> Finding:
    """m_k or u_kt of an op whose inputs are `right` but for these."""
    own = op.attributes
    names = "m_k" if op.type == "depthwise" else "m_k * u_kt"
    have = own.m_k * own.u_kt
    need = right[0] * right[1]
    key = "m_k" if right[0] != own.m_k else "u_kt"
    what = f"{names} is {have}, by the shapes of the inputs it is {need}: input 0 has {shape_text(first)} after its TMs"
    both = right[0] != own.m_k and right[1] != own.u_kt
    values = f"m_k: {right[0]}, u_kt: {right[1]}" if both else f"{key}: {right[key == 'u_kt']}"
    hint = f"write `{values}`; numbers are t, tile rows, tile columns"
    exact = hint if both else putting(hint, key, str(right[key == "u_kt"]), safe=False)
    return Finding(attribute_mark(op, key), what, exact)


def _expected(op: Op, m_k: int, u_kt: int) -> Iterator[Expected]:
    """Of each input of an op with these values in place of its own m_k and u_kt."""
    own = op.attributes
    t, rows, columns = op.blocking.shape
    inner = m_k * u_kt
    if op.has("keeps shape"):
        yield from [(t, rows, columns)] * len(op.inputs)
    elif op.type == "matmul" and own.identity:
        yield (None, None, None)
        yield (None, inner, columns)  # strips are numbered m_k * t + s: of each t the same integer
    elif op.type == "matmul":
        slices = t * own.z if own.accumulate else t
        yield (slices, rows, inner)
        yield (slices, inner, columns)
        yield from [(t, rows, columns)] * (len(op.inputs) - 2)
    elif op.type == "depthwise":
        yield (t, rows, op.blocking.block_cols * m_k)
        yield (t, m_k, columns)
        yield from [(t, rows, columns)] * (len(op.inputs) - 2)
    elif op.type == "reduce" and own.dim in ("r", "c"):
        across = inner or None
        grid_rows, grid_columns = op.blocking.grid_size
        if own.dim == "r":
            yield (t, across and grid_rows * across, columns)
        else:
            yield (t, rows, across and grid_columns * across)
    elif op.type == "reduce" and own.dim == "z" and own.z > 0:
        yield (t * own.z, rows, columns)
    elif op.type == "topk":
        yield from [(t, rows, op.blocking.grid_size[1] * inner or None)] * len(op.inputs)


def unpadded(shape: Shape, pad: Pad) -> Shape:
    """Shape without the tiles that `unpad` takes away."""
    return shape[0], shape[1] - pad.rt, shape[2] - pad.ct


def padded(shape: Shape, pad: Pad) -> Shape:
    """Shape with the tiles that `pad` appends."""
    return shape[0], shape[1] + pad.rt, shape[2] + pad.ct


def shape_text(shape: Expected) -> str:
    """As messages have it."""
    return f"[{', '.join('any' if size is None else str(size) for size in shape)}]"


WIDE_ACCUMULATORS = ("Float32", "Int32")


def dest_tiles(arch: Arch, acc_df: str) -> int:
    """Tiles that half of dest holds (NETLIST V040): a 32-bit accumulator takes two places."""
    return arch.dest_tiles // 2 if acc_df in WIDE_ACCUMULATORS else arch.dest_tiles


def dest_message(what: str, tiles: int, arch: Arch, acc_df: str) -> str:
    """The message of V040."""
    wide = f" with acc_df {acc_df}" if acc_df in WIDE_ACCUMULATORS else ""
    return f"{what} has {tiles} tiles, half of dest holds {dest_tiles(arch, acc_df)}{wide}"


def kernel_broadcasts(op: Op) -> list[tuple[str, int, int]]:
    """(attribute, input, factor) of every kernel_broadcast; single_tile is a factor of 1 (OPS 6.14)."""
    own = op.attributes
    pairs = [("kernel_broadcast", index, factor) for index, factor in own.kernel_broadcast]
    pairs += [("kernel_broadcast_per_t", index, factor) for index, factor in own.kernel_broadcast_per_t]
    return pairs + [("single_tile", index, 1) for index in own.single_tile]


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
    limit = dest_tiles(ctx.arch, op.acc_df)
    if (tiles := op.blocking.ublock[0] * op.blocking.ublock[1]) > limit:
        yield Finding(op.at("ublock"), dest_message(f"ublock {list(op.blocking.ublock)}", tiles, ctx.arch, op.acc_df))
    pair = (op.blocking.ublock[0], op.attributes.u_kt)
    if op.type == "topk" and (tiles := pair[0] * pair[1]) > limit:
        what = f"[ublock rows, u_kt] {list(pair)}"
        yield Finding(attribute_mark(op, "u_kt"), dest_message(what, tiles, ctx.arch, op.acc_df))


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
def broadcast_of_broadcast(_: Context, op: Op) -> Findings:
    """OPS 6.15: an operand repeats only when a TM repeats it."""
    for key, index, factor in kernel_broadcasts(op):
        names = {tm.name for tm in op.input_tms[index]} if index < len(op.input_tms) else set[str]()
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
    """OPS 6.15, from wormhole on."""
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
