"""Formats inside a schedule: integer fused ops and reduce (NETLIST V141, V142; OPS 8.3.7-8.3.9)."""

from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.fused_use import FusedUse, Step
from buda_emu.netlist.rules.ops.formats import A_FORMATS
from buda_emu.netlist.rules.registry import Findings, fused_check
from buda_emu.netlist.rules.rule import rule
from buda_emu.spec.ops import OP_TYPES

COPIED = ("Int8", "Int32")


@fused_check(
    rule(
        "V141",
        "F",
        "an integer fused op has operands it cannot take",
        "acc_df Int32 makes a fused op an integer one: binary ops and datacopy only, external operands Int8 (add,"
        " maximum and datacopy also Int32), scales Float32, out_df Float32 after a last dequantization and Int8 "
        "or Int32 otherwise. Only requantization and dequantization read dest there. The quantisation ops, "
        "maximum and adds of Int32 never write dest.",
        "{type: subtract, inputs: [input0, input1]} with in_df: [Int32, Int8]",
        "{type: add, inputs: [input0, input1]} with in_df: [Int32, Int8]",
        "OPS 8.3",
    )
)
def dest_results(_: Context, use: FusedUse) -> Findings:
    """OPS 8.3.7, and the quantisation family outside of integer fused ops."""
    for step in use.steps:
        if step.sub.output == "dest" and (step.quantizes or step.sub.type == "maximum" or use.adds_int32(step)):
            what = "an Int32 add" if step.sub.type == "add" else step.sub.type
            yield step.at(f"{what} cannot write dest", "output", hint="write an intermed")
        if step.quantizes and use.op.acc_df != "Int32":
            yield step.at(f"{step.sub.type} needs acc_df Int32 on op {use.op.name}", "type")


@fused_check("V141")
def integer_schedule(_: Context, use: FusedUse) -> Findings:
    """OPS 8.3.8: acc_df Int32 makes the whole fused op an integer one."""
    if use.op.acc_df != "Int32":
        return
    legal = ("Float32",) if use.steps[-1].sub.type == "dequantization" else ("Int8", "Int32")
    if use.op.out_df not in legal:
        what = f"is the last sub-op, op {use.op.name} must have out_df {' or '.join(legal)}, not {use.op.out_df}"
        yield use.steps[-1].at(what, "type")
    for step in use.steps:
        if step.sub.type == "quantization":
            yield from _quantization(use, step)
        elif step.quantizes:
            yield from _scaled(use, step)
        elif step.family in ("binary", "unary", "ethernet"):
            yield from _plain(use, step)
        else:
            hint = "only binary ops and datacopy work on integers"
            yield step.at(f"{step.sub.type} in an integer fused op", "type", hint=hint)


@fused_check(
    rule(
        "V142",
        "F",
        "a Float32 fused reduce reads a format with a 5-bit exponent",
        "As V039; any input of the fused op counts.",
        "{in_df: [Float16], acc_df: Float32} with a scheduled reduce",
        "{in_df: [Float16_b], acc_df: Float32} with a scheduled reduce",
    )
)
def reduced_inputs(_: Context, use: FusedUse) -> Findings:
    """NETLIST 2: any input of the base op."""
    found = [name for name in use.op.in_df if name in A_FORMATS]
    for step in use.steps:
        if step.sub.has("reduces") and use.op.acc_df == "Float32" and found:
            yield step.at(f"a reduce with acc_df Float32, op {use.op.name} reads {found[0]}", "type")


def _quantization(use: FusedUse, step: Step) -> Findings:
    for name in step.sub.inputs[:2]:
        if not name.startswith("input") or use.format_of(name) != "Float32":
            yield step.at(f"quantization reads {_described(use, name)}, must be an inputN of Float32", "inputs")


def _scaled(use: FusedUse, step: Step) -> Findings:
    data, scale = step.sub.inputs[:2]
    if data == "dest":
        yield step.at(f"{step.sub.type} cannot have dest as input 0", "inputs")
    elif scale == "dest":
        # The operands change roles: input 0 is the scale (OPS 8.1).
        if step.sub.ublock[0] * step.sub.ublock[1] > 2:
            yield step.at(f"{step.sub.type} of dest with ublock {list(step.sub.ublock)}, at most 2 tiles", "ublock")
        if not data.startswith("input") or use.format_of(data) != "Float32":
            yield step.at(f"the scale next to dest is {_described(use, data)}, must be an inputN of Float32", "inputs")
    else:
        if use.format_of(data) not in COPIED:
            yield step.at(f"{step.sub.type} reads {_described(use, data)}, must be Int8 or Int32", "inputs")
        if use.format_of(scale) != "Float32":
            yield step.at(f"the scale is {_described(use, scale)}, must be Float32", "inputs")


def _plain(use: FusedUse, step: Step) -> Findings:
    legal = OP_TYPES[step.sub.type].integers_in_fused
    for name in step.sub.inputs[: 2 if step.family == "binary" else 1]:
        if name == "dest":
            yield step.at(f"{step.sub.type} cannot read dest in an integer fused op", "inputs")
        elif name.startswith("input") and use.format_of(name) not in legal:
            yield step.at(f"{step.sub.type} reads {_described(use, name)}, must be {' or '.join(legal)}", "inputs")


def _described(use: FusedUse, name: str) -> str:
    return f"{name} ({use.format_of(name)})"
