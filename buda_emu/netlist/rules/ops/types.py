"""Rules on what one op type needs: matmul, reduce, depthwise, embedding, tilizer, topk (NETLIST 2, 11)."""

from buda_emu.netlist.model import Op
from buda_emu.netlist.rules.context import Context, attribute_mark, item_mark, tms_mark
from buda_emu.netlist.rules.missing import missing
from buda_emu.netlist.rules.registry import Finding, Findings, op_check, rule
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker.fix import putting
from buda_emu.support.checker.text import plural


@op_check(
    rule(
        "V026",
        "P",
        "a matmul's ublock_order is not r",
        "The matmul kernel produces its ublocks row by row.",
        "{type: matmul, ublock_order: c}",
        "{type: matmul, ublock_order: r}",
        source="NETLIST 2",
    ),
    "matmul",
)
def matmul_order(_: Context, op: Op) -> Findings:
    """Refuse a matmul that does not write its ublocks row by row."""
    if op.blocking.ublock_order != "r":
        hint = putting("write `ublock_order: r`", "ublock_order", "r", safe=False)
        yield Finding(op.at("ublock_order"), "a matmul needs ublock_order r", hint)


@op_check(
    rule(
        "V033",
        "P",
        "a matmul lacks m_k or u_kt, or mixes accumulate with identity",
        "The inner dimension is worked off in m_k steps of u_kt tiles; their product is the number of tile "
        "columns of input 0. A sparse matmul has no z slices to accumulate.",
        "attributes: {m_k: 4}",
        "attributes: {m_k: 4, u_kt: 1}",
        source="NETLIST 2",
    ),
    "matmul",
)
def matmul_attributes(ctx: Context, op: Op) -> Findings:
    """Refuse m_k and u_kt below 1, as the inner dimension is m_k ublocks of u_kt tiles, and accumulate with identity
    (NETLIST 2)."""
    for key, value in zip(("m_k", "u_kt"), op.attributes.inner, strict=True):
        if value < 1:
            message = f"{key} is missing"
            hint = "m_k * u_kt is the number of tile columns of input 0"
            if key in op.attributes.given:
                message = f"{key} is {value}, must be at least 1"
            elif op.attributes.given:
                hint = missing(ctx, op, key, hint)
            yield Finding(attribute_mark(op, key), message, hint)
    if op.attributes.accumulate and op.attributes.identity:
        yield Finding(attribute_mark(op, "accumulate"), "accumulate does not go with identity")


@op_check(
    rule(
        "V034",
        "P",
        "a reduce lacks dim or type",
        "dim is r, c, z or rc: the dimension that disappears. The only type is max.",
        "attributes: {dim: r}",
        "attributes: {dim: r, type: max}",
        "NETLIST 2, 11.3 C15",
    ),
    "reduce",
)
def reduce_attributes(_: Context, op: Op) -> Findings:
    """Refuse a reduce without dim or type (NETLIST 2); `z` may be absent (11.3 C15). The reader reports unknown
    words."""
    if not op.attributes.dim:
        yield Finding(op.at("attributes"), "reduce needs dim: r, c, z or rc")
    if not op.attributes.type:
        yield Finding(op.at("attributes"), "reduce needs type: max")


@op_check(
    rule(
        "V047",
        "P",
        "embedding sizes do not match num_indices",
        "A core of the grid picks num_indices rows of the table, 32 for each tile row of its mblock of one-tile "
        "ublocks.",
        "{mblock: [2, 2], ublock: [1, 2], attributes: {num_indices: 60}}",
        "{mblock: [2, 2], ublock: [1, 2], attributes: {num_indices: 64}}",
        "NETLIST 2, OPS 6.9",
    ),
    "embedding",
)
def embedding_sizes(_: Context, op: Op) -> Findings:
    """Refuse an embedding with several ublock rows, or whose cores do not pick 32 rows for each tile row of the
    mblock (OPS 6.9)."""
    indices = op.attributes.num_indices
    if op.blocking.ublock[0] != 1:
        yield Finding(op.at("ublock"), f"an embedding needs one ublock row, has {op.blocking.ublock[0]}")
    if indices % 32:
        yield Finding(attribute_mark(op, "num_indices"), f"num_indices is {indices}, must be a multiple of 32")
    elif indices // 32 != op.blocking.mblock[0]:
        yield Finding(
            attribute_mark(op, "num_indices"),
            f"num_indices {indices} are {indices // 32} tile rows, mblock has {op.blocking.mblock[0]}",
        )


@op_check(
    rule(
        "V048",
        "P",
        "a tilizer has TMs or changes its ublock",
        "It takes the rows of a flat queue as they lie in memory. With more than one ublock row the ublocks of "
        "input and output must be equal.",
        "{type: tilizer, input_0_tms: [hslice: 2]}",
        "{type: tilizer}",
        "NETLIST 2, OPS 6.10",
    ),
    "tilizer",
)
def tilizer_shape(ctx: Context, op: Op) -> Findings:
    """Refuse TMs of a tilizer, and a ublock other than its input's where one of them has several rows."""
    for index, tms in enumerate(op.input_tms):
        if tms:
            yield Finding(tms_mark(op, index), f"a tilizer takes no TMs, input {index} has {tms[0].name}")
    for index, source in ctx.sources(op):
        read = source.blocking.ublock
        ublock = op.blocking.ublock
        if read != ublock and max(read[0], ublock[0]) > 1:
            message = f"reads ublocks of {list(read)} and writes {list(ublock)}: with several rows they must be equal"
            yield Finding(item_mark(op, "inputs", index), message)


@op_check(
    rule(
        "V049",
        "P",
        "a depthwise needs u_kt 1 and m_k",
        "It multiplies m_k column groups by one tile row of weights each.",
        "attributes: {m_k: 4, u_kt: 2}",
        "attributes: {m_k: 4, u_kt: 1}",
        "NETLIST 2, OPS 6.3",
    ),
    "depthwise",
)
def depthwise_attributes(_: Context, op: Op) -> Findings:
    """Refuse a depthwise whose u_kt is not 1, or without m_k."""
    if op.attributes.u_kt != 1:
        yield Finding(attribute_mark(op, "u_kt"), f"a depthwise needs u_kt 1, has {op.attributes.u_kt}")
    if op.attributes.m_k < 1:
        yield Finding(attribute_mark(op, "m_k"), "a depthwise needs m_k of at least 1")


@op_check(
    rule(
        "V050",
        "P",
        "an identity matmul has the wrong inputs",
        "A sparse matmul reads sparse tiles, activations, and an encoding of raw words, whose first TM, if any, "
        "is a broadcast. It cannot be a gradient op.",
        "{in_df: [Bfp8_b, Float16_b, Int32], attributes: {identity: true}}",
        "{in_df: [Bfp8_b, Float16_b, RawUInt32], attributes: {identity: true}}",
        "NETLIST 2, OPS 6.2",
    ),
    "matmul",
)
def identity_inputs(_: Context, op: Op) -> Findings:
    """Check weights, activations and encoding of an identity matmul (OPS 6.2)."""
    if not op.attributes.identity:
        return
    if len(op.inputs) < 3:
        yield Finding(op.at("inputs"), f"an identity matmul needs 3 inputs, has {len(op.inputs)}")
        return
    if not op.in_df[2].startswith("RawUInt"):
        message = f"the encoding (input 2) is {op.in_df[2]}, must be RawUInt8, RawUInt16 or RawUInt32"
        yield Finding(item_mark(op, "in_df", 2), message)
    if op.gradient_op:
        yield Finding(op.at("gradient_op"), "an identity matmul cannot be a gradient_op")
    tms = op.input_tms[2] if len(op.input_tms) > 2 else ()
    if tms and tms[0].name != "broadcast":
        yield Finding(tms_mark(op, 2), f"the first TM of the encoding must be a broadcast, not {tms[0].name}")


@op_check(
    rule(
        "V172",
        "G",
        "topk without k",
        "k is how many values of each row are kept.",
        "{type: topk, attributes: {sort: max}}",
        "{type: topk, attributes: {sort: max, k: 32}}",
        "NETLIST 11.1 A13",
    ),
    "topk",
)
def topk_count(_: Context, op: Op) -> Findings:
    """Refuse a k of 0; a negative one is accepted (NETLIST 11.1 A13)."""
    if op.attributes.k == 0:
        if "k" in op.attributes.given:
            problem = "k is 0"
        else:
            problem = "k is missing"
        yield Finding(attribute_mark(op, "k"), f"{problem}: nothing to keep")


INTEGERS = ("Int8", "Int32", "UInt8", "UInt16")
INTERMEDIATES = ("Int8", "UInt8", "Int32")


def has_integer_inputs(op: Op) -> bool:
    """Return whether an op counts as an integer op for rule V102: an input has an integer format, and its type does not
    read integers as mere indices."""
    return not op.has("integers are indices") and any(name in INTEGERS for name in op.in_df)


@op_check(
    rule(
        "V102",
        "P",
        "integer and float formats are mixed",
        "An op with an integer input is an integer op: acc_df Int32, intermed_df Int8, UInt8 or Int32, "
        "math_fidelity HiFi4, and an integer result unless it dequantises. A matmul multiplies Int8 (or UInt8), "
        "adds an Int32 bias and scales by Float32. relu keeps within Int8, or is a plain cut at 0 for Int32. "
        "Without integer inputs acc_df Int32 is left to quantization, fused ops and nop.",
        "{type: add, in_df: [Int8, Int8], out_df: Float16_b, acc_df: Float16_b}",
        "{type: add, in_df: [Int8, Int8], out_df: Int8, intermed_df: Int8, acc_df: Int32, math_fidelity: HiFi4}",
        "NETLIST 2, 11.3 C8, OPS 9.6",
    ),
    unless=("V050", "V095", "V100", "V101"),
)
def integer_op(_: Context, op: Op) -> Findings:
    """Check that an op with integer inputs works on integers from end to end, and that other ops have no integer
    accumulator."""
    if has_integer_inputs(op):
        yield from _check_result(op)
        yield from _check_operands(op)
        if op.type == "matmul":
            yield from _check_matmul(op)
        yield from _check_relu(op)
        return
    if op.acc_df == "Int32" and not op.has("Int32 sums of floats"):
        yield Finding(op.at("acc_df"), f"acc_df Int32 on {op.type} without integer inputs")
    for key, is_set in (("requant", op.attributes.requant), ("dequant", op.attributes.dequant)):
        if is_set:
            yield Finding(attribute_mark(op, key), f"{key} without integer inputs")


def _check_result(op: Op) -> Findings:
    """Check formats and fidelity of an op with integer inputs: accumulator, intermediates and result are integers,
    unless it dequantizes.
    """
    if op.attributes.dequant:
        if op.out_df in INTEGERS and not op.attributes.requant:
            yield Finding(op.at("out_df"), f"dequant writes floats, out_df is {op.out_df}")
    elif op.type not in ("dequantization", "fused_op") and op.out_df not in INTEGERS:
        yield Finding(op.at("out_df"), f"{op.type} with integer inputs cannot write {op.out_df}", "use Int8 or Int32")
    if op.intermed_df not in INTERMEDIATES:
        message = f"intermed_df {op.intermed_df} with integer inputs"
        yield Finding(op.at("intermed_df"), message, "use Int32 or Int8")
    if op.math_fidelity != "HiFi4":
        yield Finding(op.at("math_fidelity"), f"integer inputs need math_fidelity HiFi4, not {op.math_fidelity}")
    if op.acc_df != "Int32":
        yield Finding(op.at("acc_df"), f"integer inputs need acc_df Int32, not {op.acc_df or 'none'}")


def _check_operands(op: Op) -> Findings:
    """Refuse inputs in formats that an integer op of the type cannot read. Inputs 0 and 1 of a matmul are judged in
    `_check_matmul`, except for input 1 beside UInt8, and UInt16 by V100.
    """
    # A UInt16 operand is refused by V100 whatever these lists say (NETLIST 11.3 C8).
    declared = OP_TYPES[op.type]
    if declared.has("integers beside floats") or op.attributes.requant or op.attributes.dequant:
        return
    legal = declared.integers
    first = 0  # `_check_matmul` checks input 0 of a matmul, and input 1 unless input 0 is UInt8
    if op.type == "matmul":
        first = 1 if op.in_df[0] == "UInt8" else 2
    for index, name in enumerate(op.in_df[first:], first):
        if name not in legal and name != "UInt16":
            yield Finding(item_mark(op, "in_df", index), f"input {index} of an integer {op.type} cannot be {name}")


def _check_matmul(op: Op) -> Findings:
    """Check operands and attributes of an integer matmul: Int8 or UInt8 as input 0, Int8 beside Int8, and no
    accumulation in L1.
    """
    attributes = op.attributes
    if attributes.requant and attributes.dequant:
        yield Finding(attribute_mark(op, "dequant"), "requant and dequant at once")
    if op.in_df[0] not in ("Int8", "UInt8"):
        yield Finding(item_mark(op, "in_df", 0), f"input 0 of an integer matmul cannot be {op.in_df[0]}", "use Int8")
    elif op.in_df[1] != "Int8" and op.in_df[0] != "UInt8":  # beside UInt8 anything passes (NETLIST V102)
        yield Finding(item_mark(op, "in_df", 1), f"input 1 of an integer matmul cannot be {op.in_df[1]}", "use Int8")
    if attributes.l1_acc:
        yield Finding(attribute_mark(op, "l1_acc"), "l1_acc on an integer matmul")
    if attributes.min_buffer_input == 1:
        yield Finding(attribute_mark(op, "min_buffer_input"), "min_buffer_input 1 on an integer matmul")
    if attributes.identity:
        yield from _check_identity_matmul(op)
    else:
        yield from _check_bias_and_scale(op)


def _check_identity_matmul(op: Op) -> Findings:
    """Refuse an integer identity matmul with other than three inputs, or with requant or dequant."""
    attributes = op.attributes
    if len(op.inputs) != 3:
        yield Finding(op.at("inputs"), f"an integer identity matmul has 3 inputs, not {len(op.inputs)}")
    if attributes.requant or attributes.dequant:
        key = "requant" if attributes.requant else "dequant"
        yield Finding(attribute_mark(op, key), f"{key} on an identity matmul")


def _check_bias_and_scale(op: Op) -> Findings:
    """Check the last inputs of an integer matmul: a bias in Int32 and, for requant or dequant, a scale in Float32."""
    attributes = op.attributes
    if attributes.bias and op.in_df[2] != "Int32":
        yield Finding(item_mark(op, "in_df", 2), f"the bias of an integer matmul is {op.in_df[2]}, must be Int32")
    if attributes.requant or attributes.dequant:
        scale = 3 if attributes.bias else 2
        if len(op.in_df) <= scale:
            message = (
                f"requant or dequant needs a scale as input {scale}, the matmul has {plural(len(op.in_df), 'input')}"
            )
            yield Finding(op.at("inputs"), message)
        elif op.in_df[scale] != "Float32":
            yield Finding(item_mark(op, "in_df", scale), f"the scale is {op.in_df[scale]}, must be Float32")


def _check_relu(op: Op) -> Findings:
    """Refuse a relu that an integer result cannot have: a threshold of 127 or more in Int8, any but a cut at 0 in
    Int32.
    """
    attributes = op.attributes
    if not attributes.relu_en:
        return
    if op.out_df == "Int8" and not abs(attributes.relu_threshold) < 127:
        message = f"relu_threshold {attributes.relu_threshold:g} with out_df Int8, must be below 127"
        yield Finding(attribute_mark(op, "relu_threshold"), message)
    if op.out_df == "Int32":
        if attributes.relu_threshold != 0:
            message = f"relu_threshold {attributes.relu_threshold:g} with out_df Int32, must be 0"
            yield Finding(attribute_mark(op, "relu_threshold"), message)
        if attributes.relu_mode != "min":
            message = f"relu_mode {attributes.relu_mode or 'none'} with out_df Int32, must be min"
            yield Finding(attribute_mark(op, "relu_mode"), message)


@op_check(
    rule(
        "V103",
        "P",
        "formats of a quantization, requantization or dequantization",
        "quantization: Float32 and Float32 to Int8. requantization: Int32 or Int8 and Float32 to Int8. "
        "dequantization: Int32 or Int8 and Float32 to Float32. All with acc_df Int32.",
        "{type: quantization, in_df: [Float32, Float16_b], out_df: Int8}",
        "{type: quantization, in_df: [Float32, Float32], out_df: Int8, acc_df: Int32}",
        "NETLIST 2, OPS 9.7",
    ),
    "quantization",
    unless=("V090", "V101", "V102"),
)
def quantized_formats(_: Context, op: Op) -> Findings:
    """Refuse formats of data, scale, accumulator and result that an op of the quantization family does not have."""
    if op.type == "quantization":
        data = ("Float32",)
    else:
        data = ("Int32", "Int8")
    if op.type == "dequantization":
        result = "Float32"
    else:
        result = "Int8"
    for index, legal in ((0, data), (1, ("Float32",))):
        if op.in_df[index] not in legal:
            message = f"input {index} of {op.type} is {op.in_df[index]}, must be {' or '.join(legal)}"
            yield Finding(item_mark(op, "in_df", index), message)
    if op.acc_df != "Int32":
        yield Finding(op.at("acc_df"), f"{op.type} needs acc_df Int32, not {op.acc_df or 'none'}")
    if op.out_df != result:
        yield Finding(op.at("out_df"), f"{op.type} writes {result}, out_df is {op.out_df}")


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
        source="NETLIST 2",
    )
)
def untilized_order(_: Context, op: Op) -> Findings:
    """Refuse an untilized result whose ublocks are not written row by row."""
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
        source="NETLIST 2",
    )
)
def untilized_format(ctx: Context, op: Op) -> Findings:
    """Refuse untilized results in formats without a plain form in memory (NETLIST 2)."""
    if ctx.arch.name == "grayskull":
        legal = FLAT_FORMATS
    else:
        legal = FLAT_FORMATS + FLAT_INTEGERS
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
        source="NETLIST 2",
    )
)
def one_output_queue(ctx: Context, op: Op) -> Findings:
    """Refuse an untilizing op that does not feed exactly one queue, or one that is spread over several buffers."""
    if not op.untilize_output:
        return
    queues = ctx.fed.get(op.name, ())
    if len(queues) != 1:
        names = ", ".join(queue.name for queue in queues) or "none"
        yield Finding(op.at("untilize_output"), f"an untilizing op feeds exactly one queue, this one feeds {names}")
    for queue in queues:
        if queue.blocking.grid_size != (1, 1) and queue.name not in ctx.broken:
            message = (
                f"an untilizing op feeds a queue of grid [1, 1], {queue.name} has {list(queue.blocking.grid_size)}"
            )
            yield Finding(queue.at("grid_size"), message)


@op_check(
    rule(
        "V072",
        "P",
        "untilized data is used as an op input",
        "Ops read tiles. Untilized data can only be read by the host.",
        "inputs: [output_queue] where output_queue is fed by an untilizing op",
        "read the op that untilizes through a copy of its input instead",
        source="NETLIST 2",
    )
)
def untilized_operands(ctx: Context, op: Op) -> Findings:
    """Refuse an untilized result as input of an op, directly or through a queue."""
    for index, name in enumerate(op.inputs):
        source = ctx.queues.get(name)
        producer = ctx.ops.get(source.input if source is not None else name)
        if producer is not None and producer.untilize_output and not (source is not None and source.host_fed):
            detour = f"through {name}, " if source is not None else ""
            message = f"input {index} reads {detour}the untilized result of op {producer.name}"
            yield Finding(item_mark(op, "inputs", index), message, "only the host can read untilized data")
