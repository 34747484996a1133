"""Rules on the inside of schedules: formats, lives of intermediate buffers, block sizes, TMs (OPS 8.3)."""

from collections.abc import Container

from buda_emu.netlist.rules.context import Context, tms_mark
from buda_emu.netlist.rules.fused_use import Dims, FusedUse, SubOpStep, broadcast_factor, broadcasts
from buda_emu.netlist.rules.ops.formats import A_FORMATS
from buda_emu.netlist.rules.registry import Finding as RuleFinding
from buda_emu.netlist.rules.registry import Findings, fused_check, rule
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
    """Refuse results in dest of the quantisation family, maximum and Int32 add, and that family without acc_df Int32
    (OPS 8.3.7)."""
    for step in use.steps:
        if step.sub.output == "dest" and (step.quantizes or step.sub.type == "maximum" or use.adds_int32(step)):
            if step.sub.type == "add":
                subject = "an Int32 add"
            else:
                subject = step.sub.type
            yield step.at(f"{subject} cannot write dest", "output", hint="write an intermed")
        if step.quantizes and use.op.acc_df != "Int32":
            yield step.at(f"{step.sub.type} needs acc_df Int32 on op {use.op.name}", "type")


@fused_check("V141")
def integer_schedule(_: Context, use: FusedUse) -> Findings:
    """Refuse formats and ops that are not legal in an integer fused op; acc_df Int32 makes the whole fused op one
    (OPS 8.3.8)."""
    if use.op.acc_df != "Int32":
        return
    if use.steps[-1].sub.type == "dequantization":
        legal = ("Float32",)
    else:
        legal = ("Int8", "Int32")
    if use.op.out_df not in legal:
        message = f"is the last sub-op, op {use.op.name} must have out_df {' or '.join(legal)}, not {use.op.out_df}"
        yield use.steps[-1].at(message, "type")
    for step in use.steps:
        if step.sub.type == "quantization":
            yield from _check_quantization(use, step)
        elif step.quantizes:
            yield from _check_scale(use, step)
        elif step.family in ("binary", "unary", "ethernet"):
            yield from _check_plain(use, step)
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
        source="NETLIST 2",
    )
)
def reduced_inputs(_: Context, use: FusedUse) -> Findings:
    """Refuse a reduce with acc_df Float32 if any input of the op has an A format (NETLIST 2)."""
    a_formats = [name for name in use.op.in_df if name in A_FORMATS]
    for step in use.steps:
        if step.sub.has("reduces") and use.op.acc_df == "Float32" and a_formats:
            yield step.at(f"a reduce with acc_df Float32, op {use.op.name} reads {a_formats[0]}", "type")


def _check_quantization(use: FusedUse, step: SubOpStep) -> Findings:
    """Refuse a quantization whose first two operands are not both inputs of the fused op, and of format Float32."""
    for name in step.sub.inputs[:2]:
        if not name.startswith("input") or use.format_of(name) != "Float32":
            yield step.at(f"quantization reads {_describe(use, name)}, must be an inputN of Float32", "inputs")


def _check_scale(use: FusedUse, step: SubOpStep) -> Findings:
    """Check data and scale of a requantization or dequantization (OPS 8.3.8). Where it reads dest, as input 1, the
    scale is input 0.
    """
    data, scale = step.sub.inputs[:2]
    if data == "dest":
        yield step.at(f"{step.sub.type} cannot have dest as input 0", "inputs")
    elif scale == "dest":
        # The operands change roles: input 0 is the scale (OPS 8.1).
        if step.sub.ublock[0] * step.sub.ublock[1] > 2:
            yield step.at(f"{step.sub.type} of dest with ublock {list(step.sub.ublock)}, at most 2 tiles", "ublock")
        if not data.startswith("input") or use.format_of(data) != "Float32":
            yield step.at(f"the scale next to dest is {_describe(use, data)}, must be an inputN of Float32", "inputs")
    else:
        if use.format_of(data) not in COPIED:
            yield step.at(f"{step.sub.type} reads {_describe(use, data)}, must be Int8 or Int32", "inputs")
        if use.format_of(scale) != "Float32":
            yield step.at(f"the scale is {_describe(use, scale)}, must be Float32", "inputs")


def _check_plain(use: FusedUse, step: SubOpStep) -> Findings:
    """Refuse operands of a binary or unary op in an integer fused op that are in dest or not in an integer format
    of its type.
    """
    legal = OP_TYPES[step.sub.type].integers_in_fused
    for name in step.sub.inputs[: 2 if step.family == "binary" else 1]:
        if name == "dest":
            yield step.at(f"{step.sub.type} cannot read dest in an integer fused op", "inputs")
        elif name.startswith("input") and use.format_of(name) not in legal:
            yield step.at(f"{step.sub.type} reads {_describe(use, name)}, must be {' or '.join(legal)}", "inputs")


def _describe(use: FusedUse, name: str) -> str:
    """Return an operand with its format for a message."""
    return f"{name} ({use.format_of(name)})"


ENDERS = ("matmul", "reduce")


@fused_check(
    rule(
        "V138",
        "F",
        "an intermediate is used outside its life",
        "An intermed is written, read, popped, and only then written again; none is left at the end. Results "
        "of a schedule that ends in a matmul or reduce are gone after it, except the result of that matmul "
        "or reduce and results of mblock [1, 1].",
        "[a: {output: intermed0}, b: {inputs: [intermed0], output: output}]",
        "[a: {output: intermed0}, b: {inputs: [intermed0], pop: [intermed0], output: output}]",
        "OPS 8.3, NETLIST 11.1 A6, 11.3 C6",
    ),
    unless=("V134",),
)
def life(_: Context, use: FusedUse) -> Findings:
    """Check that an intermediate buffer is written, read, popped, and only then written again. The last character of
    its name identifies the buffer."""
    ends = {step.schedule: step.sub.type for step in use.steps if step.last}
    live: dict[str, SubOpStep] = {}
    for step in use.steps:
        inputs = dict.fromkeys(step.sub.inputs)
        for name in inputs:
            if name.startswith("intermed"):
                yield from _check_read(step, name, live.get(name[-1]), ends)
        yield from _pop_intermediates(step, live, inputs)
        if step.sub.output.startswith("intermed"):
            holder = live.get(step.sub.output[-1])
            if holder is not None:
                message = f"writes {step.sub.output}, which still holds the result of {holder.sub.name}"
                yield step.at(message, "output", hint="pop it first")
            live[step.sub.output[-1]] = step
    for step in live.values():
        yield step.at(f"{step.sub.output} is never popped", "output")


def _pop_intermediates(step: SubOpStep, live: dict[str, SubOpStep], inputs: Container[str]) -> Findings:
    """Remove the intermediates that a step pops from those that hold something, `live`, and yield the ones that held
    nothing. What the step reads, too, is left to the finding about its reading."""
    for name in (*step.sub.pop, *step.sub.pop_last):
        if name.startswith("intermed") and live.pop(name[-1], None) is None and name not in inputs:
            yield step.at(f"pops {name}, which holds nothing", "pop_last")


def _check_read(step: SubOpStep, name: str, writer: SubOpStep | None, ends: dict[int, str]) -> Findings:
    """Refuse a read of an intermediate that holds nothing, was written under another name, or is gone since its
    schedule ended. `writer` is the scheduled op that wrote the buffer, None if it is empty; `ends` holds the type
    of the last op of each schedule.
    """
    if writer is None:
        yield step.at(f"reads {name}, which holds nothing", "inputs")
    elif writer.sub.output != name:
        yield step.at(f"reads {name}, written as {writer.sub.output}", "inputs", hint="use one name for the buffer")
    elif writer.schedule != step.schedule and ends[writer.schedule] in ENDERS and not _outlives(writer):
        message = f"reads {name}, which {writer.sub.name} wrote in a schedule that ends in a {ends[writer.schedule]}"
        yield step.at(message, "inputs", hint="only matmul, reduce or a result of mblock [1, 1] outlives its schedule")


def _outlives(writer: SubOpStep) -> bool:
    """Return whether the result of a scheduled op stays after a schedule that ends in a matmul or reduce."""
    return writer.sub.type in ENDERS or writer.sub.mblock == (1, 1)


@fused_check(
    rule(
        "V139",
        "F",
        "sizes of scheduled ops do not fit together",
        "Operands that a scheduled op wrote have known sizes: times their broadcast they fill the result, or, for"
        " matmul and reduce, the m_k and u_kt written on the scheduled op itself. Only element-wise ops, matmul "
        "and reduce over r or c can be scheduled.",
        "a: {output: intermed0, mblock: [2, 1]}, b: {inputs: [intermed0], mblock: [2, 2]}",
        "a: {output: intermed0, mblock: [2, 1]}, b: {inputs: [intermed0], input_0_tms: [broadcast: {c: 2}], "
        "mblock: [2, 2]}",
        "OPS 8.3, NETLIST 11.1 A5, A10",
    ),
    unless=("V040", "V133", "V134", "V135", "V137", "V138"),
)
def sizes_fit(_: Context, use: FusedUse) -> Findings:
    """Check that inputs which earlier sub-ops wrote fill the result or, where they are reduced, the m_k and u_kt of the
    sub-op itself; sizes of other inputs are unknown. Reports types that cannot be scheduled."""
    for step in use.steps:
        declaration = OP_TYPES.get(step.sub.type)
        if declaration is not None and declaration.has("tile by tile"):
            for index in range(declaration.inputs[0]):
                yield from _check_elementwise(step, index)
        elif step.family == "reduce":
            yield from _check_reduce(step)
        elif step.family == "matmul":
            yield from _check_matmul(step)
        else:
            yield step.at(f"type '{step.sub.type}' cannot be scheduled", "type")


def _check_elementwise(step: SubOpStep, index: int) -> Findings:
    """Check that an input of an element-wise op, times its broadcast, fills the result in rows and columns."""
    dims = step.input_dims[index]
    if dims is None:
        return
    for axis, name in ((0, "rows"), (1, "columns")):
        factor = broadcast_factor(step, index, "rc"[axis])
        blocks = (dims[axis], dims[axis + 2])
        result_blocks = (step.dims[axis], step.dims[axis + 2])
        if (
            blocks[0] * blocks[1] * factor != result_blocks[0] * result_blocks[1]
            or blocks[0] > result_blocks[0]
            or blocks[1] > result_blocks[1]
        ):
            if factor != 1:
                repeated = f" broadcast {factor} times"
            else:
                repeated = ""
            has = f"{step.sub.inputs[index]} has {blocks[0]} * {blocks[1]} tile {name}{repeated}"
            yield step.at(f"{has}, the result {result_blocks[0]} * {result_blocks[1]}", "mblock")


def _check_reduce(step: SubOpStep) -> Findings:
    """Check the dimension of a scheduled reduce, that its result has one tile there, and the size of its input."""
    attributes = step.sub.attributes
    if attributes.dim not in ("r", "c"):
        if attributes.dim:
            message = f"a scheduled reduce cannot reduce over {attributes.dim}"
        else:
            message = "a scheduled reduce needs its own dim"
        yield step.at(message, "attributes")
        return
    axis = 0 if attributes.dim == "r" else 1
    if (step.dims[axis], step.dims[axis + 2]) != (1, 1):
        message = f"a reduce over {attributes.dim} writes one tile {('row', 'column')[axis]}"
        yield step.at(f"{message}, has {step.dims[axis]} * {step.dims[axis + 2]}", "mblock")
        return
    yield from _check_inner(step, 0, axis)
    yield from _check_outer(step, 0, 1 - axis)


def _check_matmul(step: SubOpStep) -> Findings:
    """Check the sizes of both inputs of a scheduled matmul; a broadcast along c of input 0 fills the inner
    dimension.
    """
    yield from _check_outer(step, 0, 0)
    yield from _check_outer(step, 1, 1)
    factor = broadcast_factor(step, 0, "c")
    dims = step.input_dims[0]
    if dims is not None and factor != 1:
        inner = step.sub.attributes.inner_tiles
        if dims[1] * dims[3] * factor != inner:
            has = f"{step.sub.inputs[0]} has {dims[1]} * {dims[3]} tile columns broadcast {factor} times"
            yield step.at(f"{has}, m_k * u_kt is {inner}", "attributes")
    else:
        yield from _check_inner(step, 0, 1)
    yield from _check_inner(step, 1, 0)


def _check_inner(step: SubOpStep, index: int, axis: int) -> Findings:
    """Check that the reduced dimension of an input is m_k mblocks of u_kt tiles. `axis` is 0 if rows are reduced,
    else 1.
    """
    attributes = step.sub.attributes
    dims: Dims | None = step.input_dims[index]
    if dims is not None and (dims[axis], dims[axis + 2]) != attributes.inner:
        written = [
            f"{key} {value}"
            for key, value in zip(("m_k", "u_kt"), attributes.inner, strict=True)
            if key in attributes.given
        ]
        yield step.at(
            f"{step.sub.inputs[index]} has {dims[axis]} * {dims[axis + 2]} tiles along the inner dimension, "
            f"the sub-op gives {' and '.join(written) or 'neither m_k nor u_kt'}",
            "attributes",
            hint=f"write m_k: {dims[axis]}, u_kt: {dims[axis + 2]}",
        )


def _check_outer(step: SubOpStep, index: int, axis: int) -> Findings:
    """Check that an input has as many mblocks and tiles as the result along an axis that is not reduced, 0 for rows
    and 1 for columns.
    """
    dims = step.input_dims[index]
    if dims is not None and (dims[axis], dims[axis + 2]) != (step.dims[axis], step.dims[axis + 2]):
        has = f"{step.sub.inputs[index]} has {dims[axis]} * {dims[axis + 2]} tile {('rows', 'columns')[axis]}"
        yield step.at(f"{has}, the result {step.dims[axis]} * {step.dims[axis + 2]}", "mblock")


@fused_check(
    rule(
        "V136",
        "F",
        "a TM that scheduled ops do not have",
        "Inside a fused op there is no odd number of transposes, no pad and no broadcast of z. tile_broadcast "
        "works on input 1 of add, subtract and multiply, and not of Int32.",
        "{type: add, input_0_tms: [tile_broadcast: r]}",
        "{type: add, input_1_tms: [tile_broadcast: r]}",
        "NETLIST 2, 11.2 B5, 11.3 C7",
    )
)
def legal_tms(_: Context, use: FusedUse) -> Findings:
    """Refuse TMs that sub-ops cannot apply: they work on ublocks, turn no tiles and add none."""
    for step in use.steps:
        for index, tms in enumerate(step.sub.input_tms):
            yield from _illegal_tms(use, step, index, [tm.name for tm in tms])


def _illegal_tms(use: FusedUse, step: SubOpStep, index: int, names: list[str]) -> Findings:
    """Yield a finding for each TM of one input that its sub-op cannot apply. `names` are those of the input's TMs."""
    if names.count("transpose") % 2:
        yield _tm_finding(step, index, "a fused op cannot transpose")
    if "pad" in names:
        yield _tm_finding(step, index, "a fused op cannot pad")
    if any(tm.args[0] == "z" for tm in broadcasts(step, index)):
        yield _tm_finding(step, index, "a fused op cannot broadcast z")
    legal = step.sub.type in ("add", "subtract", "multiply") and index == 1 and not use.adds_int32(step)
    if "tile_broadcast" in names and not legal:
        message = "tile_broadcast works on input 1 of add, subtract and multiply, not of Int32"
        yield _tm_finding(step, index, message)


@fused_check(
    rule(
        "V137",
        "F",
        "a broadcast that scheduled ops cannot do",
        "Only an intermed can be repeated, in one direction, and one tile row (r) or column (c) of it at a time: "
        "mblock and ublock are 1 there. A matmul repeats c on input 0 only, from 1 or m_k mblock columns. Not for"
        " the quantisation ops, maximum and adds of Int32.",
        "{inputs: [input0, input1], input_1_tms: [broadcast: {c: 4}]}",
        "{inputs: [input0, intermed0], input_1_tms: [broadcast: {c: 4}]}",
        "OPS 8.3, NETLIST 11.3 C5",
    ),
    unless=("V134",),
)
def broadcasts_possible(_: Context, use: FusedUse) -> Findings:
    """Refuse broadcasts whose repeated block the core does not hold as a whole."""
    for step in use.steps:
        for index, name in enumerate(step.sub.inputs):
            directions = {str(tm.args[0]) for tm in broadcasts(step, index)} & {"r", "c"}
            if directions:
                yield from _impossible_broadcast(use, step, (index, name), directions)


def _impossible_broadcast(use: FusedUse, step: SubOpStep, operand: tuple[int, str], directions: set[str]) -> Findings:
    """Yield the finding on an operand, by index and name, that the core cannot repeat in these directions, if any."""
    index, name = operand
    if not name.startswith("intermed"):
        yield _tm_finding(step, index, f"broadcasts {name}", "only an intermed can be broadcast r or c")
    elif step.quantizes or step.sub.type == "maximum" or use.adds_int32(step):
        yield _tm_finding(step, index, f"{step.sub.type} cannot broadcast its inputs here")
    elif len(directions) == 2:
        yield _tm_finding(step, index, "broadcasts both r and c on one input")
    elif reason := _shape_forbids(step, index, directions.pop()):
        yield _tm_finding(step, index, reason)


def _matmul_forbids(step: SubOpStep, index: int, direction: str) -> str:
    """Return why an input's block of a matmul cannot be broadcast in a direction, r or c; "" if it can."""
    if direction == "r":
        return "a matmul cannot broadcast r"
    if index != 0:
        return "a matmul broadcasts c on input 0 only"
    dims = step.input_dims[index]
    if dims is None:
        return ""  # a buffer that nothing wrote: V138
    columns = dims[1]
    if columns in (1, step.sub.attributes.m_k):
        return ""
    return f"broadcast c of {columns} mblock columns on a matmul: must be 1 or m_k"


def _shape_forbids(step: SubOpStep, index: int, direction: str) -> str:
    """Return why an input's block cannot be broadcast in a direction, r or c; "" if it can."""
    dims = step.input_dims[index]
    if step.sub.type == "matmul":
        return _matmul_forbids(step, index, direction)
    if dims is None:
        return ""  # a buffer that nothing wrote: V138
    rows, columns, ublock_rows, ublock_columns = dims
    if direction == "c":
        legal = columns == ublock_columns == 1
        if legal:
            return ""
        return f"broadcast c of {columns} mblock and {ublock_columns} ublock columns: both must be 1"
    if rows != 1 or ublock_rows != 1:
        return f"broadcast r of {rows} mblock and {ublock_rows} ublock rows: both must be 1"
    if step.sub.mblock[0] != 1 and columns != 1:
        return f"broadcast r of {columns} mblock columns into {step.sub.mblock[0]} mblock rows: one of them must be 1"
    return ""


def _tm_finding(step: SubOpStep, index: int, message: str, hint: str = "") -> RuleFinding:
    """Return the finding about the TMs of an input."""
    return step.about(tms_mark(step.sub, index), f"{message} (input {index})", hint)
