"""Data-format rules of floating-point ops (NETLIST 2: V031, V039, V090-V101)."""

from buda_emu.netlist.model import Op
from buda_emu.netlist.rules.context import Context, attribute_mark, has_transpose_tm, item_mark, tms_mark
from buda_emu.netlist.rules.registry import Finding, Findings, op_check, rule
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker.fix import putting

# The parser's own lists (NETLIST V039, V090): Lf8 has a 5-bit exponent, but is in neither.
A_FORMATS = ("Float16", "Bfp8", "Bfp4", "Bfp2")
B_FORMATS = ("Float16_b", "Bfp8_b", "Bfp4_b", "Bfp2_b")
COARSE = ("Bfp4", "Bfp4_b", "Bfp2", "Bfp2_b")
L1_ACCUMULATORS = ("Float32", "Int32", "Float16_b")


@op_check(
    rule(
        "V031",
        "P",
        "gradient_op is not available for this op on grayskull",
        "There only matmul, multiply, nop and datacopy read their old result back.",
        "{type: add, gradient_op: true} on grayskull",
        "{type: multiply, gradient_op: true} on grayskull",
        source="NETLIST 2",
    )
)
def grayskull_gradient(ctx: Context, op: Op) -> Findings:
    """Refuse gradient ops of types that do not accumulate on grayskull."""
    if op.gradient_op and ctx.arch.name == "grayskull" and not op.has("sums gradients on grayskull"):
        yield Finding(
            op.at("gradient_op"), f"grayskull accumulates gradients in matmul, multiply and nop, not {op.type}"
        )


@op_check(
    rule(
        "V039",
        "P",
        "a Float32 reduce reads a format with a 5-bit exponent",
        "With a 32-bit dest a reduce unpacks 8-bit exponents only: not Float16, Bfp8, Bfp4, Bfp2.",
        "{type: reduce, acc_df: Float32, in_df: [Float16]}",
        "{type: reduce, acc_df: Float32, in_df: [Float16_b]}",
        "NETLIST 2, OPS 9.5",
    ),
    "reduce",
)
def reduced_format(_: Context, op: Op) -> Findings:
    """Refuse a reduce of a format with a 5-bit exponent into a Float32 accumulator."""
    if op.acc_df == "Float32" and op.in_df[0] in A_FORMATS:
        yield Finding(item_mark(op, "in_df", 0), f"a reduce with acc_df Float32 cannot read {op.in_df[0]}")


@op_check(
    rule(
        "V090",
        "P",
        "a format combination that grayskull does not have",
        "Grayskull has no 32-bit dest, runs the SFPU on the math thread only, and while it accumulates "
        "(gradient_op, or m_k above 1) out_df and intermed_df need the same exponent width, or Float32 with an "
        "8-bit one.",
        "acc_df: Float32 on grayskull",
        "acc_df: Float16_b on grayskull",
        "NETLIST 2, OPS 9.3",
    )
)
def grayskull_formats(ctx: Context, op: Op) -> Findings:
    """Refuse formats that grayskull does not have: a 32-bit dest, the SFPU beside the packer, and two exponent
    widths while accumulating (NETLIST 2)."""
    if ctx.arch.name != "grayskull":
        return
    if op.acc_df in ("Float32", "Int32"):
        yield Finding(op.at("acc_df"), f"grayskull has no acc_df {op.acc_df}")
    thread = op.attributes.sfpu_execution_thread
    if thread not in ("", "math"):
        yield Finding(attribute_mark(op, "sfpu_execution_thread"), f"grayskull runs the SFPU on math, not on {thread}")
    accumulates = op.gradient_op or op.attributes.m_k > 1
    if accumulates and not _can_accumulate_on_grayskull(op):
        message = f"grayskull cannot accumulate in {op.intermed_df} and write {op.out_df}"
        yield Finding(op.at("intermed_df"), message, "both need the same exponent width")


def _can_accumulate_on_grayskull(op: Op) -> bool:
    """Return whether grayskull can accumulate in the op's intermediate format and write its output format: both have
    the same exponent width, or the result is widened to Float32 (NETLIST 2)."""
    pair = {op.out_df, op.intermed_df}
    widened = op.out_df == "Float32" and op.intermed_df in B_FORMATS
    return len(pair) == 1 or pair <= {*A_FORMATS} or pair <= {*B_FORMATS} or widened


@op_check(
    rule(
        "V091",
        "P",
        "intermed_df is too coarse for accumulation",
        "Partial sums of a matmul (m_k above 1, or a bias) and gradients are not kept in Bfp4 or Bfp2.",
        "{type: matmul, intermed_df: Bfp4_b, attributes: {m_k: 2, u_kt: 1}}",
        "{type: matmul, intermed_df: Bfp8_b, attributes: {m_k: 2, u_kt: 1}}",
        "NETLIST 2, OPS 9.4",
    )
)
def coarse_intermediates(_: Context, op: Op) -> Findings:
    """Refuse Bfp4 and Bfp2 as intermed_df of gradient ops, and of a matmul that keeps partial sums."""
    partial = op.type == "matmul" and (op.attributes.m_k > 1 or op.attributes.bias)
    if op.intermed_df in COARSE and (op.gradient_op or partial):
        yield Finding(op.at("intermed_df"), f"intermed_df {op.intermed_df} is too coarse to accumulate in")


@op_check(
    rule(
        "V092",
        "P",
        "accumulation in a format other than acc_df",
        "A matmul that accumulates in L1 adds 32-bit numbers to what lies there: intermed_df must be acc_df.",
        "{acc_df: Float32, intermed_df: Float16_b, attributes: {l1_acc: true}}",
        "{acc_df: Float32, intermed_df: Float32, attributes: {l1_acc: true}}",
        "NETLIST 2, 11.3 C10",
    ),
    "matmul",
)
def accumulator_format(ctx: Context, op: Op) -> Findings:
    """Refuse partial sums of a 32-bit accumulator in another intermed_df (NETLIST 2; not for depthwise, 11.3 C10)."""
    attributes = op.attributes
    if ctx.arch.name == "grayskull":
        accumulates = attributes.m_k > 1
    else:
        accumulates = attributes.l1_acc
    if accumulates and op.acc_df in ("Float32", "Int32") and op.intermed_df != op.acc_df:
        message = f"partial sums of acc_df {op.acc_df} cannot be kept in intermed_df {op.intermed_df}"
        hint = putting(f"write `intermed_df: {op.acc_df}`", "intermed_df", op.acc_df, safe=False)
        yield Finding(op.at("intermed_df"), message, hint)


@op_check(
    rule(
        "V093",
        "P",
        "Float32 accumulation on wormhole A0 needs a Float32 input",
        "On the obsolete first part (`wormhole`) copies and sfpu ops bring the input to dest as it is.",
        "{type: exp, in_df: [Float16_b], acc_df: Float32} on wormhole",
        "{type: exp, in_df: [Float32], acc_df: Float32} on wormhole",
        "NETLIST 2, OPS 9.4",
    ),
    "sfpu",
    "unary",
)
def wormhole_a0_float32(ctx: Context, op: Op) -> Findings:
    """Refuse acc_df Float32 with another format of input 0 on architecture wormhole, the obsolete first chip
    (NETLIST 2, OPS 9.4)."""
    if ctx.arch.name == "wormhole" and op.acc_df == "Float32" and not op.gradient_op and op.in_df[0] != "Float32":
        message = f"{op.type} with acc_df Float32 reads {op.in_df[0]}, must be Float32 on wormhole"
        yield Finding(item_mark(op, "in_df", 0), message)


@op_check(
    rule(
        "V094",
        "P",
        "stochastic rounding does not go with the formats",
        "Modes fpu and all round into a 16-bit dest, so not with acc_df Float32; modes pack and all round in the "
        "packer, but not to Bfp8.",
        "{acc_df: Float32, attributes: {stoch_rnd_mode: fpu}}",
        "{acc_df: Float16_b, attributes: {stoch_rnd_mode: fpu}}",
        "NETLIST 2, OPS 9.4",
    )
)
def stochastic_rounding(_: Context, op: Op) -> Findings:
    """Refuse stochastic rounding into a Float32 accumulator (modes fpu and all), and of packed Bfp8 (pack and all)."""
    mode = op.attributes.stoch_rnd_mode
    if mode == "none":
        return
    mark = attribute_mark(op, "stoch_rnd_mode" if "stoch_rnd_mode" in op.attributes.given else "srnd_fpu_en")
    if op.acc_df == "Float32" and mode in ("fpu", "all"):
        yield Finding(mark, f"stochastic rounding '{mode}' with acc_df Float32")
    for key, name in (("intermed_df", op.intermed_df), ("out_df", op.out_df)):
        if name in ("Bfp8", "Bfp8_b") and mode in ("pack", "all"):
            yield Finding(mark, f"stochastic rounding '{mode}' with {key} {name}")


@op_check(
    rule(
        "V095",
        "P",
        "a gradient op has formats or TMs that cannot accumulate",
        "A gradient op adds to its own result: intermed_df and out_df are equal, acc_df is not Int32, maximum "
        "cannot be one, and only matmul and copies may transpose.",
        "{gradient_op: true, intermed_df: Float16_b, out_df: Float32}",
        "{gradient_op: true, intermed_df: Float32, out_df: Float32}",
        "NETLIST 2, OPS 6.12",
    )
)
def gradient_formats(_: Context, op: Op) -> Findings:
    """Refuse gradient ops whose intermed_df is not out_df, integer accumulators, types without gradients, and
    transposes in types that cannot have one there.
    """
    if not op.gradient_op:
        return
    if op.intermed_df != op.out_df:
        yield Finding(op.at("intermed_df"), f"a gradient op has intermed_df {op.intermed_df} and out_df {op.out_df}")
    if op.acc_df == "Int32":
        yield Finding(op.at("acc_df"), "a gradient op cannot have acc_df Int32")
    declared = OP_TYPES[op.type]
    if declared.has("no gradient"):
        yield Finding(op.at("gradient_op"), f"{op.type} cannot be a gradient op")
    for index in range(len(op.input_tms)):
        if has_transpose_tm(op, index) and not declared.has("gradient transposes"):
            yield Finding(tms_mark(op, index), f"a gradient {op.type} cannot transpose its input {index}")


@op_check(
    rule(
        "V096",
        "P",
        "an untilized output of an op that accumulates",
        "Partial results are read back as tiles: no untilize_output on a matmul with m_k other than 1 or a reduce"
        " over z.",
        "{type: matmul, untilize_output: true, attributes: {m_k: 2, u_kt: 1}}",
        "{type: matmul, untilize_output: true, attributes: {m_k: 1, u_kt: 2}}",
        "NETLIST 2, OPS 9.5",
    ),
    "matmul",
    "reduce",
)
def untilized_partial_sums(_: Context, op: Op) -> Findings:
    """Refuse untilize_output where partial results are written, which are tiles (NETLIST 2)."""
    if not op.untilize_output:
        return
    if op.type == "matmul" and op.attributes.m_k != 1:
        yield Finding(attribute_mark(op, "m_k"), f"untilize_output needs m_k 1, has {op.attributes.m_k}")
    if op.type == "reduce" and op.attributes.dim == "z":
        yield Finding(attribute_mark(op, "dim"), "untilize_output of a reduce over z")


@op_check(
    rule(
        "V097",
        "P",
        "a reduce over z changes the format",
        "Slices are compared with the content of the output buffer: input, intermed_df and out_df are equal.",
        "{type: reduce, in_df: [Float16_b], out_df: Float32, attributes: {dim: z, type: max, z: 2}}",
        "{type: reduce, in_df: [Float32], intermed_df: Float32, out_df: Float32}",
        "NETLIST 2, OPS 9.5",
    ),
    "reduce",
)
def reduced_in_place(_: Context, op: Op) -> Findings:
    """Refuse a reduce over z whose input, intermed_df and out_df are not equal."""
    formats = (op.in_df[0], op.intermed_df, op.out_df)
    if op.attributes.dim == "z" and len({*formats}) > 1:
        message = (
            f"a reduce over z has input {formats[0]}, intermed_df {formats[1]}, out_df {formats[2]}: must be equal"
        )
        yield Finding(op.at("in_df"), message)


@op_check(
    rule(
        "V098",
        "P",
        "splice inputs have different formats",
        "Pieces are moved, not converted.",
        "{type: splice, in_df: [Float16_b, Float16]}",
        "{type: splice, in_df: [Float16_b, Float16_b]}",
        "NETLIST 2, OPS 9.5",
    ),
    "splice",
)
def spliced_formats(_: Context, op: Op) -> Findings:
    """Refuse a splice whose inputs have different formats; the first that differs is reported."""
    for index, name in enumerate(op.in_df):
        if name != op.in_df[0]:
            yield Finding(item_mark(op, "in_df", index), f"splice input {index} is {name}, input 0 is {op.in_df[0]}")
            return


@op_check(
    rule(
        "V099",
        "P",
        "l1_acc where it is not available",
        "The packer of wormhole and later adds to L1 in Float32, Int32 and Float16_b; grayskull's does not add.",
        "{intermed_df: Float16, attributes: {l1_acc: true}}",
        "{intermed_df: Float16_b, attributes: {l1_acc: true}}",
        source="NETLIST 2",
    ),
    "inner dimension",
)
def l1_accumulation(ctx: Context, op: Op) -> Findings:
    """Refuse l1_acc on grayskull, and with an intermed_df in which L1 cannot accumulate (NETLIST 2). On other op
    types the attribute itself is refused (V032)."""
    if not op.attributes.l1_acc:
        return
    if ctx.arch.name == "grayskull":
        yield Finding(attribute_mark(op, "l1_acc"), "grayskull has no l1_acc")
    elif op.intermed_df not in L1_ACCUMULATORS:
        message = f"l1_acc with intermed_df {op.intermed_df}"
        yield Finding(op.at("intermed_df"), message, f"use {', '.join(L1_ACCUMULATORS)}")


@op_check(
    rule(
        "V100",
        "P",
        "UInt16 where it is not available",
        "UInt16 exists for the indices of topk: its input 1, and its output with sort: argmax, which has the "
        "format of the indices. It is not a format of intermediates or of dest.",
        "{type: nop, in_df: [UInt16]}",
        "{type: topk, in_df: [Float16_b, UInt16]}",
        "NETLIST 2, OPS 6.11",
    )
)
def uint16(_: Context, op: Op) -> Findings:
    """Refuse UInt16 except for the indices of topk (NETLIST 2, OPS 6.11)."""
    topk = op.has("result indices")
    yield from _uint16_elsewhere(op, topk=topk)
    if topk:
        yield from _uint16_of_topk(op)


def _uint16_elsewhere(op: Op, *, topk: bool) -> Findings:
    """Yield a finding for each field of an op that is UInt16, except the indices that a topk reads and writes (`topk`
    is set for one)."""
    for index, name in enumerate(op.in_df):
        if name == "UInt16" and not (topk and index == 1):
            yield Finding(item_mark(op, "in_df", index), f"input {index} of {op.type} cannot be UInt16")
    for key, name in (("intermed_df", op.intermed_df), ("acc_df", op.acc_df)):
        if name == "UInt16":
            yield Finding(op.at(key), f"{key} cannot be UInt16")
    if op.out_df == "UInt16" and not topk:
        yield Finding(op.at("out_df"), f"out_df of {op.type} cannot be UInt16")


def _uint16_of_topk(op: Op) -> Findings:
    """Yield findings about what contradicts UInt16 indices of a topk: acc_df Float32, and for argmax a result of
    another format than the indices."""
    if op.acc_df == "Float32" and "UInt16" in (*op.in_df, op.out_df):
        yield Finding(op.at("acc_df"), "topk with UInt16 indices cannot have acc_df Float32")
    if op.attributes.sort == "argmax" and len(op.in_df) > 1 and op.in_df[1] != op.out_df:
        message = f"topk argmax writes indices: out_df {op.out_df} must equal the indices' {op.in_df[1]}"
        yield Finding(op.at("out_df"), message)


@op_check(
    rule(
        "V101",
        "P",
        "UInt8 where it is not available",
        "The quantisation ops and reduce work on signed numbers.",
        "{type: dequantization, in_df: [UInt8, Float32]}",
        "{type: dequantization, in_df: [Int8, Float32]}",
        "NETLIST 2, OPS 9.7",
    ),
    "quantization",
    "reduce",
)
def uint8(_: Context, op: Op) -> Findings:
    """Refuse UInt8 as input or result of quantization ops and reduces."""
    for index, name in enumerate(op.in_df):
        if name == "UInt8":
            yield Finding(item_mark(op, "in_df", index), f"{op.type} cannot read UInt8")
    if op.out_df == "UInt8":
        yield Finding(op.at("out_df"), f"{op.type} cannot write UInt8")
