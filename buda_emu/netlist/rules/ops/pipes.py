"""Rules of the device's pipe compiler on operands and results (NETLIST 2, V076-V083, V085, V178; stage N).

Scatter granularity (V081) and multicast inputs of fused ops (V084) are not checked, because the tables for them are
not known.
"""

from buda_emu.netlist.model import Op, Queue
from buda_emu.netlist.rules.context import Context, item_mark
from buda_emu.netlist.rules.registry import Finding, Findings, op_check, queue_check, rule
from buda_emu.support.checker.fix import replacing
from buda_emu.support.checker.text import plural


@queue_check(
    rule(
        "V076",
        "N",
        "a gradient op and its queue are blocked differently",
        "The accumulator is read back into the op block by block: grid_size, mblock, ublock and t are equal, and "
        "there are no TMs.",
        "gradient op {grid_size: [2, 1]}, its ram {grid_size: [1, 1]}",
        "gradient op {grid_size: [2, 1]}, its ram {grid_size: [2, 1]}",
        source="NETLIST 2",
    )
)
def gradient_queue(ctx: Context, queue: Queue) -> Findings:
    """Refuse a queue that has TMs or is cut otherwise than its gradient op, which reads the accumulator back block
    by block."""
    op = _producer(ctx, queue)
    if op is None or not op.gradient_op:
        return
    for key in ("grid_size", "mblock", "ublock", "t"):
        size = getattr(queue.blocking, key)
        other = getattr(op.blocking, key)
        if size != other:
            yield Finding(queue.at(key), f"{key} {_size_text(size)}, gradient op {op.name} has {_size_text(other)}")
    if queue.input_tms:
        yield Finding(queue.at("input_tms"), f"TMs on the queue of gradient op {op.name}")


@queue_check(
    rule(
        "V077",
        "N",
        "an untilizing op and its queue have different shapes",
        "Rows are written to their place in the whole tensor: tile rows, tile columns and t are equal, and there "
        "are no TMs.",
        "op of 4 x 2 tiles, queue {mblock: [2, 2], ublock: [1, 1]}",
        "op of 4 x 2 tiles, queue {mblock: [4, 2], ublock: [1, 1]}",
        source="NETLIST 2",
    )
)
def untilized_queue(ctx: Context, queue: Queue) -> Findings:
    """Refuse TMs and another shape on the queue of an untilizing op: rows are written to their place in the whole
    tensor."""
    op = _producer(ctx, queue)
    if op is None or not op.untilize_output:
        return
    if queue.input_tms:
        yield Finding(queue.at("input_tms"), f"TMs on the queue of untilizing op {op.name}")
    if queue.blocking.shape != op.blocking.shape:
        message = f"(t, tile rows, tile columns) is {queue.blocking.shape}, op {op.name} writes {op.blocking.shape}"
        yield Finding(queue.at("mblock"), message)


@queue_check(
    rule(
        "V078",
        "N",
        "a buffer of a queue would be filled by several cores",
        "Tiles of one buffer come from one core, so that their order is known. Only untilized results are gathered.",
        "op {grid_size: [2, 1]}, queue {grid_size: [1, 1]}",
        "op {grid_size: [2, 1]}, queue {grid_size: [2, 1]}",
        source="NETLIST 2",
    ),
    unless=("V076",),
)
def one_core_for_each_buffer(ctx: Context, queue: Queue) -> Findings:
    """Refuse a buffer that gathers tiles of several cores, which only untilized results may."""
    op = _producer(ctx, queue)
    if op is None or op.untilize_output or queue.input_tms or queue.blocking.shape != op.blocking.shape:
        return
    for name, queue_tiles, core_tiles in (
        ("rows", queue.blocking.block_rows, op.blocking.block_rows),
        ("columns", queue.blocking.block_cols, op.blocking.block_cols),
    ):
        if core_tiles % queue_tiles:
            message = f"a buffer holds {queue_tiles} tile {name}, a core of op {op.name} writes {core_tiles}"
            hint = "several cores would fill one buffer: give queue and op the same grid_size"
            yield Finding(queue.at("grid_size"), message, hint)


@op_check(
    rule(
        "V178",
        "N",
        "a reduce's or depthwise's ublock_order is not r though an op reads it",
        "Both kernels produce their ublocks row by row, and the op that reads them must know.",
        "{type: reduce, ublock_order: c} read by another op",
        "{type: reduce, ublock_order: r} read by another op",
        "NETLIST 2, V026",
    ),
    "reduce",
    "depthwise",
)
def produced_order(ctx: Context, op: Op) -> Findings:
    """Refuse ublock_order c of an op that feeds another op, which takes the ublocks as they come."""
    if op.blocking.ublock_order != "r" and op.name in ctx.readers:
        yield Finding(op.at("ublock_order"), f"a {op.type} that feeds an op needs ublock_order r")


@op_check(
    rule(
        "V079",
        "N",
        "in_df or out_df differs from the neighbour's format",
        "Tiles travel as they are. in_df says how they are unpacked and must be the format in which they were "
        "packed. Values of the emulator do not depend on it.",
        "queue {df: Float16}, op {in_df: [Float16_b]}",
        "queue {df: Float16_b}, op {in_df: [Float16_b]}",
        source="NETLIST 2",
    )
)
def input_formats(ctx: Context, op: Op) -> Findings:
    """Refuse an in_df other than the format of the producer: tiles are not converted on their way."""
    for index, source in ctx.sources(op):
        if isinstance(source, Queue):
            held = source.df
        else:
            held = source.out_df
        if op.in_df[index] != held:
            message = f"in_df of input {index} is {op.in_df[index]}, {source.name} holds {held}"
            hint = replacing(f"write {held}", op.in_df[index], held, safe=False)
            yield Finding(item_mark(op, "in_df", index), message, hint)


@queue_check("V079")
def output_format(ctx: Context, queue: Queue) -> Findings:
    """Refuse a queue whose format is not the out_df of the op that fills it."""
    op = _producer(ctx, queue)
    if op is not None and op.out_df != queue.df:
        yield Finding(queue.at("df"), f"df is {queue.df}, op {op.name} writes {op.out_df}")


@op_check(
    rule(
        "V080",
        "N",
        "buf_size_mb does not divide t",
        "Above one mblock the output buffer is double, so its size is even; half of it holds a number of mblocks "
        "that divides t or is a multiple of it. Operand and result of a copy over Ethernet are the same bytes: one of "
        "their sizes in tiles divides the other.",
        "{t: 3, buf_size_mb: 4}",
        "{t: 4, buf_size_mb: 4}",
        source="NETLIST 2",
    )
)
def output_buffer(_: Context, op: Op) -> Findings:
    """Refuse an output buffer of an odd number of mblocks above 1, as it is double, and one whose single part
    neither divides t nor is a multiple of it."""
    size = op.buf_size_mb
    if size == 0 or (size > 1 and size % 2):
        yield Finding(op.at("buf_size_mb"), f"buf_size_mb is {size}", "use 1 or an even number")
        return
    single = max(1, size // 2)
    if op.blocking.t % single and single % op.blocking.t:
        message = (
            f"buf_size_mb {size} buffers {single} mblocks at a time, t is {op.blocking.t}: neither divides the other"
        )
        yield Finding(op.at("buf_size_mb"), message)


@op_check(
    rule(
        "V082",
        "N",
        "embedding or tilizer operands are not where the device needs them",
        "Both read flat rows from a queue in DRAM; an embedding has a table and indices.",
        "{type: tilizer, inputs: [another_op]}",
        "{type: tilizer, inputs: [queue_in_dram]}",
        source="NETLIST 2",
    ),
    "reads flat data",
)
def flat_operands(ctx: Context, op: Op) -> Findings:
    """Refuse flat operands that are not read from a queue in DRAM, and an embedding with more than two inputs."""
    source = ctx.source(op.inputs[0])
    if op.type == "embedding" and len(op.inputs) > 2:
        yield Finding(op.at("inputs"), f"an embedding has 2 inputs, not {len(op.inputs)}")
    if not isinstance(source, Queue) or source.loc != "dram":
        yield Finding(item_mark(op, "inputs", 0), f"input 0 of {op.type} must be a queue in DRAM")


@op_check(
    rule(
        "V083",
        "N",
        "a matmul or depthwise has more inputs than its attributes use",
        "A third input is a bias or, with requant or dequant, a scale; a fourth the scale in addition to a "
        "bias. A sparse"
        " matmul has three inputs and a bias.",
        "{type: matmul, inputs: [x, w, b]}",
        "{type: matmul, inputs: [x, w, b], attributes: {bias: true}}",
        source="NETLIST 2",
    ),
    "inner dimension",
)
def unread_inputs(_: Context, op: Op) -> Findings:
    """Refuse more inputs than the attributes use: a third operand is a bias or a scale, a fourth the scale in
    addition to a bias (NETLIST 2)."""
    if _has_unread_inputs(op):
        yield Finding(
            op.at("inputs"),
            f"{plural(len(op.inputs), 'input')}, but its attributes use fewer",
            "bias: true, requant or dequant",
        )


def _has_unread_inputs(op: Op) -> bool:
    """Return whether the op has an input beside its operands that no attribute of it reads."""
    attributes = op.attributes
    count = len(op.inputs)
    if op.type == "depthwise":
        return count > 2 and not attributes.bias
    if attributes.identity:
        return count > 3 and not attributes.bias
    scaled = attributes.requant or attributes.dequant
    inputs_beside_operands = min(count, 4) - 2  # of more inputs this rule says nothing
    return inputs_beside_operands > int(attributes.bias) + int(scaled)


@op_check(
    rule(
        "V085",
        "N",
        "the number of inputs has no input buffers on the device",
        "Element-wise kernels have buffers for two operands.",
        "{type: add, inputs: [a, b, c]}",
        "{type: add, inputs: [a, b]}",
        source="NETLIST 2",
    ),
    "binary",
    "quantization",
)
def input_buffers(_: Context, op: Op) -> Findings:
    """Refuse an element-wise op with more than two inputs: its kernel has buffers for two operands."""
    if len(op.inputs) > 2:
        yield Finding(op.at("inputs"), f"{op.type} has input buffers for 2 operands, not for {len(op.inputs)}")


def _producer(ctx: Context, queue: Queue) -> Op | None:
    """Return the op that fills a queue, None if the host does."""
    return None if queue.host_fed else ctx.ops.get(queue.input)


def _size_text(value: int | tuple[int, int]) -> str:
    """Return a size as it is written in a netlist."""
    if isinstance(value, int):
        return str(value)
    return str(list(value))
