"""Where integers may stand (NETLIST V102, V103; 11.3 C8; OPS 9.6, 9.7)."""

from buda_emu.checker.text import plural
from buda_emu.netlist.model import Op
from buda_emu.netlist.rules.context import Context, attribute_mark, item_mark
from buda_emu.netlist.rules.registry import Finding, Findings, op_check
from buda_emu.netlist.rules.rule import rule
from buda_emu.spec.ops import OP_TYPES

INTEGERS = ("Int8", "Int32", "UInt8", "UInt16")
INTERMEDIATES = ("Int8", "UInt8", "Int32")


def has_integer_inputs(op: Op) -> bool:
    """Whether V102 counts the op as an integer op."""
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
    """An op with integer inputs stays with integers from end to end; one without has no integer accumulator."""
    if has_integer_inputs(op):
        yield from _result(op)
        yield from _operands(op)
        if op.type == "matmul":
            yield from _matmul(op)
        yield from _relu(op)
        return
    if op.acc_df == "Int32" and not op.has("Int32 sums of floats"):
        yield Finding(op.at("acc_df"), f"acc_df Int32 on {op.type} without integer inputs")
    for key, given in (("requant", op.attributes.requant), ("dequant", op.attributes.dequant)):
        if given:
            yield Finding(attribute_mark(op, key), f"{key} without integer inputs")


def _result(op: Op) -> Findings:
    if op.attributes.dequant:
        if op.out_df in INTEGERS and not op.attributes.requant:
            yield Finding(op.at("out_df"), f"dequant writes floats, out_df is {op.out_df}")
    elif op.type not in ("dequantization", "fused_op") and op.out_df not in INTEGERS:
        yield Finding(op.at("out_df"), f"{op.type} with integer inputs cannot write {op.out_df}", "use Int8 or Int32")
    if op.intermed_df not in INTERMEDIATES:
        what = f"intermed_df {op.intermed_df} with integer inputs"
        yield Finding(op.at("intermed_df"), what, "use Int32 or Int8")
    if op.math_fidelity != "HiFi4":
        yield Finding(op.at("math_fidelity"), f"integer inputs need math_fidelity HiFi4, not {op.math_fidelity}")
    if op.acc_df != "Int32":
        yield Finding(op.at("acc_df"), f"integer inputs need acc_df Int32, not {op.acc_df or 'none'}")


def _operands(op: Op) -> Findings:
    # A UInt16 operand is refused by V100 whatever these lists say (NETLIST 11.3 C8).
    declared = OP_TYPES[op.type]
    if declared.has("integers beside floats") or op.attributes.requant or op.attributes.dequant:
        return
    legal = declared.integers
    judged_as_matmul = 0 if op.type != "matmul" else 1 if op.in_df[0] == "UInt8" else 2
    for index, name in enumerate(op.in_df[judged_as_matmul:], judged_as_matmul):
        if name not in legal and name != "UInt16":
            yield Finding(item_mark(op, "in_df", index), f"input {index} of an integer {op.type} cannot be {name}")


def _matmul(op: Op) -> Findings:
    own = op.attributes
    if own.requant and own.dequant:
        yield Finding(attribute_mark(op, "dequant"), "requant and dequant at once")
    if op.in_df[0] not in ("Int8", "UInt8"):
        yield Finding(item_mark(op, "in_df", 0), f"input 0 of an integer matmul cannot be {op.in_df[0]}", "use Int8")
    elif op.in_df[1] != "Int8" and op.in_df[0] != "UInt8":  # beside UInt8 anything passes (NETLIST V102)
        yield Finding(item_mark(op, "in_df", 1), f"input 1 of an integer matmul cannot be {op.in_df[1]}", "use Int8")
    if own.l1_acc:
        yield Finding(attribute_mark(op, "l1_acc"), "l1_acc on an integer matmul")
    if own.min_buffer_input == 1:
        yield Finding(attribute_mark(op, "min_buffer_input"), "min_buffer_input 1 on an integer matmul")
    if own.identity:
        if len(op.inputs) != 3:
            yield Finding(op.at("inputs"), f"an integer identity matmul has 3 inputs, not {len(op.inputs)}")
        if own.requant or own.dequant:
            key = "requant" if own.requant else "dequant"
            yield Finding(attribute_mark(op, key), f"{key} on an identity matmul")
        return
    if own.bias and op.in_df[2] != "Int32":
        yield Finding(item_mark(op, "in_df", 2), f"the bias of an integer matmul is {op.in_df[2]}, must be Int32")
    if own.requant or own.dequant:
        scale = 3 if own.bias else 2
        if len(op.in_df) <= scale:
            what = f"requant or dequant needs a scale as input {scale}, the matmul has {plural(len(op.in_df), 'input')}"
            yield Finding(op.at("inputs"), what)
        elif op.in_df[scale] != "Float32":
            yield Finding(item_mark(op, "in_df", scale), f"the scale is {op.in_df[scale]}, must be Float32")


def _relu(op: Op) -> Findings:
    own = op.attributes
    if not own.relu_en:
        return
    if op.out_df == "Int8" and not abs(own.relu_threshold) < 127:
        what = f"relu_threshold {own.relu_threshold:g} with out_df Int8, must be below 127"
        yield Finding(attribute_mark(op, "relu_threshold"), what)
    if op.out_df == "Int32":
        if own.relu_threshold != 0:
            what = f"relu_threshold {own.relu_threshold:g} with out_df Int32, must be 0"
            yield Finding(attribute_mark(op, "relu_threshold"), what)
        if own.relu_mode != "min":
            what = f"relu_mode {own.relu_mode or 'none'} with out_df Int32, must be min"
            yield Finding(attribute_mark(op, "relu_mode"), what)


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
    data = ("Float32",) if op.type == "quantization" else ("Int32", "Int8")
    result = "Float32" if op.type == "dequantization" else "Int8"
    for index, legal in ((0, data), (1, ("Float32",))):
        if op.in_df[index] not in legal:
            what = f"input {index} of {op.type} is {op.in_df[index]}, must be {' or '.join(legal)}"
            yield Finding(item_mark(op, "in_df", index), what)
    if op.acc_df != "Int32":
        yield Finding(op.at("acc_df"), f"{op.type} needs acc_df Int32, not {op.acc_df or 'none'}")
    if op.out_df != result:
        yield Finding(op.at("out_df"), f"{op.type} writes {result}, out_df is {op.out_df}")
