"""Untilized results leave the chip: they go to one queue and nowhere else (NETLIST V029, V030, V071, V072)."""

from buda_emu.netlist.model import Op, Queue
from buda_emu.netlist.rules.context import Context, item_mark
from buda_emu.netlist.rules.registry import Finding, Findings, op_check

FLAT_FORMATS = ("Float16", "Float16_b", "Float32")
FLAT_INTEGERS = ("Int8", "Int32")


@op_check("V029")
def untilized_order(_: Context, op: Op) -> Findings:
    """NETLIST 2."""
    if op.untilize_output and op.blocking.ublock_order != "r":
        yield Finding(op.at("ublock_order"), "untilize_output needs ublock_order r")


@op_check("V030")
def untilized_format(ctx: Context, op: Op) -> Findings:
    """NETLIST 2: formats with a plain form in memory."""
    legal = FLAT_FORMATS if ctx.arch.name == "grayskull" else FLAT_FORMATS + FLAT_INTEGERS
    if op.untilize_output and op.out_df not in legal:
        hint = f"use {', '.join(legal)}"
        yield Finding(op.at("out_df"), f"out_df {op.out_df} cannot be untilized on {ctx.arch.name}", hint)


@op_check("V071")
def one_output_queue(ctx: Context, op: Op) -> Findings:
    """NETLIST 2."""
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


@op_check("V072")
def untilized_operands(ctx: Context, op: Op) -> Findings:
    """NETLIST 2."""
    for index, name in enumerate(op.inputs):
        source = ctx.queues.get(name)
        producer = ctx.ops.get(source.input if source is not None else name)
        if producer is not None and producer.untilize_output and not _host_fed(source):
            way = f"through {name}, " if source is not None else ""
            what = f"input {index} reads {way}the untilized result of op {producer.name}"
            yield Finding(item_mark(op, "inputs", index), what, "only the host can read untilized data")


def _host_fed(queue: Queue | None) -> bool:
    return queue is not None and queue.host_fed
