"""Data-format rules of floating-point ops (NETLIST 2: V031, V039, V090-V101)."""

from buda_emu.netlist.model import Op
from buda_emu.netlist.rules.context import Context, attribute_mark, item_mark, tms_mark, transposes
from buda_emu.netlist.rules.registry import Finding, Findings, op_check
from buda_emu.spec.ops import OP_TYPES

# The parser's own lists (NETLIST V039, V090): Lf8 has a 5-bit exponent, but is in neither.
A_FORMATS = ("Float16", "Bfp8", "Bfp4", "Bfp2")
B_FORMATS = ("Float16_b", "Bfp8_b", "Bfp4_b", "Bfp2_b")
COARSE = ("Bfp4", "Bfp4_b", "Bfp2", "Bfp2_b")
L1_ACCUMULATORS = ("Float32", "Int32", "Float16_b")


@op_check("V031")
def grayskull_gradient(ctx: Context, op: Op) -> Findings:
    """NETLIST 2."""
    if op.gradient_op and ctx.arch.name == "grayskull" and not OP_TYPES[op.type].has("sums gradients on grayskull"):
        yield Finding(
            op.at("gradient_op"), f"grayskull accumulates gradients in matmul, multiply and nop, not {op.type}"
        )


@op_check("V039", "reduce")
def reduced_format(_: Context, op: Op) -> Findings:
    """NETLIST 2."""
    if op.acc_df == "Float32" and op.in_df[0] in A_FORMATS:
        yield Finding(item_mark(op, "in_df", 0), f"a reduce with acc_df Float32 cannot read {op.in_df[0]}")


@op_check("V090")
def grayskull_formats(ctx: Context, op: Op) -> Findings:
    """NETLIST 2: no 32-bit dest, no SFPU beside the packer, one exponent width while accumulating."""
    if ctx.arch.name != "grayskull":
        return
    if op.acc_df in ("Float32", "Int32"):
        yield Finding(op.at("acc_df"), f"grayskull has no acc_df {op.acc_df}")
    thread = op.attributes.sfpu_execution_thread
    if thread not in ("", "math"):
        yield Finding(attribute_mark(op, "sfpu_execution_thread"), f"grayskull runs the SFPU on math, not on {thread}")
    if op.out_df != op.intermed_df and (op.gradient_op or op.attributes.m_k > 1):
        pair = {op.out_df, op.intermed_df}
        widened = op.out_df == "Float32" and op.intermed_df in B_FORMATS
        if not (pair <= {*A_FORMATS} or pair <= {*B_FORMATS} or widened):
            what = f"grayskull cannot accumulate in {op.intermed_df} and write {op.out_df}"
            yield Finding(op.at("intermed_df"), what, "both need the same exponent width")


@op_check("V091")
def coarse_intermediates(_: Context, op: Op) -> Findings:
    """NETLIST 2."""
    partial = op.type == "matmul" and (op.attributes.m_k > 1 or op.attributes.bias)
    if op.intermed_df in COARSE and (op.gradient_op or partial):
        yield Finding(op.at("intermed_df"), f"intermed_df {op.intermed_df} is too coarse to accumulate in")


@op_check("V092", "matmul")
def accumulator_kept(ctx: Context, op: Op) -> Findings:
    """NETLIST 2; 11.3 C10: not for depthwise."""
    own = op.attributes
    accumulates = own.m_k > 1 if ctx.arch.name == "grayskull" else own.l1_acc
    if accumulates and op.acc_df in ("Float32", "Int32") and op.intermed_df != op.acc_df:
        what = f"partial sums of acc_df {op.acc_df} cannot be kept in intermed_df {op.intermed_df}"
        yield Finding(op.at("intermed_df"), what, f"write `intermed_df: {op.acc_df}`")


@op_check("V093", "sfpu", "unary")
def wormhole_a0_float32(ctx: Context, op: Op) -> Findings:
    """NETLIST 2, OPS 9.4: the obsolete first part only."""
    if ctx.arch.name == "wormhole" and op.acc_df == "Float32" and not op.gradient_op and op.in_df[0] != "Float32":
        what = f"{op.type} with acc_df Float32 reads {op.in_df[0]}, must be Float32 on wormhole"
        yield Finding(item_mark(op, "in_df", 0), what)


@op_check("V094")
def stochastic_rounding(_: Context, op: Op) -> Findings:
    """NETLIST 2."""
    mode = op.attributes.stoch_rnd_mode
    if mode == "none":
        return
    mark = attribute_mark(op, "stoch_rnd_mode" if "stoch_rnd_mode" in op.attributes.given else "srnd_fpu_en")
    if op.acc_df == "Float32" and mode in ("fpu", "all"):
        yield Finding(mark, f"stochastic rounding '{mode}' with acc_df Float32")
    for key, name in (("intermed_df", op.intermed_df), ("out_df", op.out_df)):
        if name in ("Bfp8", "Bfp8_b") and mode in ("pack", "all"):
            yield Finding(mark, f"stochastic rounding '{mode}' with {key} {name}")


@op_check("V095")
def gradient_formats(_: Context, op: Op) -> Findings:
    """NETLIST 2."""
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
        if transposes(op, index) and not declared.has("gradient transposes"):
            yield Finding(tms_mark(op, index), f"a gradient {op.type} cannot transpose its input {index}")


@op_check("V096", "matmul", "reduce")
def untilized_partial_sums(_: Context, op: Op) -> Findings:
    """NETLIST 2: partial results are tiles."""
    if not op.untilize_output:
        return
    if op.type == "matmul" and op.attributes.m_k != 1:
        yield Finding(attribute_mark(op, "m_k"), f"untilize_output needs m_k 1, has {op.attributes.m_k}")
    if op.type == "reduce" and op.attributes.dim == "z":
        yield Finding(attribute_mark(op, "dim"), "untilize_output of a reduce over z")


@op_check("V097", "reduce")
def reduced_in_place(_: Context, op: Op) -> Findings:
    """NETLIST 2."""
    formats = (op.in_df[0], op.intermed_df, op.out_df)
    if op.attributes.dim == "z" and len({*formats}) > 1:
        what = f"a reduce over z has input {formats[0]}, intermed_df {formats[1]}, out_df {formats[2]}: must be equal"
        yield Finding(op.at("in_df"), what)


@op_check("V098", "splice")
def spliced_formats(_: Context, op: Op) -> Findings:
    """NETLIST 2."""
    for index, name in enumerate(op.in_df):
        if name != op.in_df[0]:
            yield Finding(item_mark(op, "in_df", index), f"splice input {index} is {name}, input 0 is {op.in_df[0]}")
            return


@op_check("V099", "inner dimension")
def l1_accumulation(ctx: Context, op: Op) -> Findings:
    """NETLIST 2; on other types the attribute itself is refused (V032)."""
    if not op.attributes.l1_acc:
        return
    if ctx.arch.name == "grayskull":
        yield Finding(attribute_mark(op, "l1_acc"), "grayskull has no l1_acc")
    elif op.intermed_df not in L1_ACCUMULATORS:
        what = f"l1_acc with intermed_df {op.intermed_df}"
        yield Finding(op.at("intermed_df"), what, f"use {', '.join(L1_ACCUMULATORS)}")


@op_check("V100")
def uint16(_: Context, op: Op) -> Findings:
    """NETLIST 2, OPS 6.11: indices of topk."""
    topk = op.type == "topk"
    for index, name in enumerate(op.in_df):
        if name == "UInt16" and not (topk and index == 1):
            yield Finding(item_mark(op, "in_df", index), f"input {index} of {op.type} cannot be UInt16")
    for key, name in (("intermed_df", op.intermed_df), ("acc_df", op.acc_df)):
        if name == "UInt16":
            yield Finding(op.at(key), f"{key} cannot be UInt16")
    if op.out_df == "UInt16" and not topk:
        yield Finding(op.at("out_df"), f"out_df of {op.type} cannot be UInt16")
    if topk and op.acc_df == "Float32" and "UInt16" in (*op.in_df, op.out_df):
        yield Finding(op.at("acc_df"), "topk with UInt16 indices cannot have acc_df Float32")
    if topk and op.attributes.sort == "argmax" and len(op.in_df) > 1 and op.in_df[1] != op.out_df:
        what = f"topk argmax writes indices: out_df {op.out_df} must equal the indices' {op.in_df[1]}"
        yield Finding(op.at("out_df"), what)


@op_check("V101", "quantization", "reduce")
def uint8(_: Context, op: Op) -> Findings:
    """NETLIST 2."""
    for index, name in enumerate(op.in_df):
        if name == "UInt8":
            yield Finding(item_mark(op, "in_df", index), f"{op.type} cannot read UInt8")
    if op.out_df == "UInt8":
        yield Finding(op.at("out_df"), f"{op.type} cannot write UInt8")
