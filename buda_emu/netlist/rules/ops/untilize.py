"""Untilized results leave the chip: they go to one queue and nowhere else (NETLIST V029, V030, V071, V072)."""

from buda_emu.checker.fix import putting
from buda_emu.netlist.model import Op
from buda_emu.netlist.rules.context import Context, item_mark
from buda_emu.netlist.rules.registry import Finding, Findings, op_check
from buda_emu.netlist.rules.rule import rule

_BY_ROWS = putting("write `ublock_order: r`", "ublock_order", "r", safe=False)
FLAT_FORMATS = ("Float16", "Float16_b", "Float32")
FLAT_INTEGERS = ("Int8", "Int32")


@op_check(
    rule(
        "V029",
        "P",
        "an untilized output needs ublock_order r",
        "Rows of the tensor are written one after the other as the packer produces them.",
        "{untilize_output: true, ublock_order: c}",
        "{untilize_output: true, ublock_order: r}",
    )
)
def untilized_order(_: Context, op: Op) -> Findings:
    if op.untilize_output and op.blocking.ublock_order != "r":
        yield Finding(op.at("ublock_order"), "untilize_output needs ublock_order r", _BY_ROWS)


@op_check(
    rule(
        "V030",
        "P",
        "out_df cannot be untilized",
        "Outside of tiles only plain numbers exist: Float16, Float16_b and Float32, and from wormhole on Int8 and"
        " Int32. Block formats share exponents inside a tile.",
        "{untilize_output: true, out_df: Bfp8_b}",
        "{untilize_output: true, out_df: Float16_b}",
    )
)
def untilized_format(ctx: Context, op: Op) -> Findings:
    """NETLIST 2: formats with a plain form in memory."""
    legal = FLAT_FORMATS if ctx.arch.name == "grayskull" else FLAT_FORMATS + FLAT_INTEGERS
    if op.untilize_output and op.out_df not in legal:
        hint = f"use {', '.join(legal)}"
        yield Finding(op.at("out_df"), f"out_df {op.out_df} cannot be untilized on {ctx.arch.name}", hint)


@op_check(
    rule(
        "V071",
        "P",
        "an untilizing op must feed exactly one queue of grid [1, 1]",
        "Its cores write their rows side by side into one buffer.",
        "{untilize_output: true} feeding a queue with grid_size: [1, 2]",
        "{untilize_output: true} feeding one queue with grid_size: [1, 1]",
    )
)
def one_output_queue(ctx: Context, op: Op) -> Findings:
    if not op.untilize_output:
        return
    queues = ctx.fed.get(op.name, ())
    if len(queues) != 1:
        names = ", ".join(queue.name for queue in queues) or "none"
        yield Finding(op.at("untilize_output"), f"an untilizing op feeds exactly one queue, this one feeds {names}")
    for queue in queues:
        if queue.blocking.grid_size != (1, 1) and queue.name not in ctx.broken:
            what = f"an untilizing op feeds a queue of grid [1, 1], {queue.name} has {list(queue.blocking.grid_size)}"
            yield Finding(queue.at("grid_size"), what)


@op_check(
    rule(
        "V072",
        "P",
        "untilized data is used as an op input",
        "Ops read tiles. Untilized data can only be read by the host.",
        "inputs: [output_queue] where output_queue is fed by an untilizing op",
        "read the op that untilizes through a copy of its input instead",
    )
)
def untilized_operands(ctx: Context, op: Op) -> Findings:
    for index, name in enumerate(op.inputs):
        source = ctx.queues.get(name)
        producer = ctx.ops.get(source.input if source is not None else name)
        if producer is not None and producer.untilize_output and not (source is not None and source.host_fed):
            way = f"through {name}, " if source is not None else ""
            what = f"input {index} reads {way}the untilized result of op {producer.name}"
            yield Finding(item_mark(op, "inputs", index), what, "only the host can read untilized data")
