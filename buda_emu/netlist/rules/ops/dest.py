"""Rules on what a core keeps of one op: ublocks in dest, operands that repeat (NETLIST 2: V040, V045, V046)."""

from buda_emu.netlist.model import Op
from buda_emu.netlist.rules.context import Context, attribute_mark
from buda_emu.netlist.rules.registry import Finding, Findings, op_check
from buda_emu.netlist.rules.rule import rule
from buda_emu.spec.archs import Arch

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
