"""Rules on fused ops: the definition, its sub-ops and their operands (NETLIST V040, V043, V130-V135, V140; OPS 8.3).

Only definitions that an op uses are checked (NETLIST 11.3 C13).
"""

from functools import partial
from itertools import chain

from buda_emu.netlist.model import Op
from buda_emu.netlist.rules.context import Context, attribute_mark, item_mark
from buda_emu.netlist.rules.fused_use import FusedUse, buffer_number
from buda_emu.netlist.rules.ops.shapes import dest_message, dest_tiles
from buda_emu.netlist.rules.registry import Finding, Findings, fused_check, op_check, rule
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural

MAX_INTERMEDIATES = 8  # V130 (NETLIST 2)


@op_check(
    rule(
        "V043",
        "P",
        "a fused_op does not match its definition",
        "fused_op_id names an entry of `fused_ops`; the op has as many inputs as the entry declares, and "
        "scheduled ops read inputN with N below that.",
        "{type: fused_op, inputs: [a], attributes: {fused_op_id: 0}} where 0 declares inputs: 2",
        "{type: fused_op, inputs: [a, b], attributes: {fused_op_id: 0}}",
        "NETLIST 2, 11.1 A9",
    ),
    "fused_op",
    basic=True,
)
def definition_fits(ctx: Context, op: Op) -> Findings:
    """Check that the definition exists and has as many inputs as the op (NETLIST 2); ids are compared as text
    (CENSUS 2)."""
    name = op.attributes.fused_op_id
    definition = ctx.netlist.fused_ops.get(name)
    if definition is None:
        if name:
            message = f"fused_op_id '{name}' is not defined"
        else:
            message = "fused_op_id is missing"
        yield Finding(attribute_mark(op, "fused_op_id"), message, partial(near, name, ctx.netlist.fused_ops))
    elif 0 <= definition.inputs != len(op.inputs):
        message = f"has {plural(len(op.inputs), 'input')}, fused_op {name} declares {definition.inputs}"
        yield Finding(op.at("inputs"), message)


@fused_check(
    rule(
        "V130",
        "F",
        "a fused op is malformed",
        "A definition has inputs, intermediates (0 to 8) and schedules: a list of lists of scheduled ops, none of"
        " them empty.",
        "{inputs: 2, intermediates: 9, schedules: [[]]}",
        "{inputs: 2, intermediates: 1, schedules: [[{op: {...}}]]}",
        "NETLIST 2, 11.3 C13",
    ),
    basic=True,
)
def definition_complete(_: Context, use: FusedUse) -> Findings:
    """Refuse definitions without inputs, intermediates or schedules, with more than 8 intermediates, or an empty
    schedule.
    """
    definition = use.definition
    for key, value in (("inputs", definition.inputs), ("intermediates", definition.intermediates)):
        if value < 0:
            yield Finding(definition.at(key), f"{key} is missing or negative")
    if definition.intermediates > MAX_INTERMEDIATES:
        message = f"{definition.intermediates} intermediates, at most {MAX_INTERMEDIATES}"
        yield Finding(definition.at("intermediates"), message)
    if not definition.schedules:
        yield Finding(definition.at("schedules"), "has no schedules")
    elif not all(definition.schedules):
        yield Finding(definition.at("schedules"), "has an empty schedule")


@fused_check(
    rule(
        "V131",
        "F",
        "a scheduled op is malformed",
        "It has a name that is unique in the fused op, a type other than fused_op, inputs, an output, mblock and "
        "ublock. pop names inputs of it, pop_last any intermed; no buffer twice.",
        "{type: add, inputs: [input0, input1], output: intermed0}",
        "{type: add, inputs: [input0, input1], output: intermed0, mblock: [2, 2], ublock: [1, 2]}",
        "NETLIST 2, 11.1 A7, 11.3 C14",
    ),
    basic=True,
)
def sub_op_complete(_: Context, use: FusedUse) -> Findings:
    """Check the fields of scheduled ops (NETLIST 2, 11.1 A7). Names must be unique in the whole fused op (11.3 C14)."""
    names: set[str] = set()
    for step in use.steps:
        sub = step.sub
        if sub.name in names:
            yield step.at("a second sub-op of that name in this fused op")
        names.add(sub.name)
        for key, value in (("name", sub.name), ("type", sub.type), ("inputs", sub.inputs), ("output", sub.output)):
            if not value:
                yield step.at(f"{key} is missing", key)
        if sub.has("sub-ops"):
            yield step.at("a fused op inside a fused op", "type")
        for key, pair in (("mblock", sub.mblock), ("ublock", sub.ublock)):
            if min(pair) < 1:
                if pair == (-1, -1):
                    problem = "is missing"
                else:
                    problem = f"is {list(pair)}, both must be at least 1"
                yield step.at(f"{key} {problem}", key)


@fused_check("V131", basic=True)
def pops(_: Context, use: FusedUse) -> Findings:
    """Refuse pops of a buffer twice, of what is no input of the scheduled op (`pop`), or of no intermed
    (`pop_last`), and more pops than inputs.
    """
    for step in use.steps:
        sub = step.sub
        inputs = {*step.sub.inputs}
        for key, names in (("pop", sub.pop), ("pop_last", sub.pop_last)):
            if len({*names}) != len(names):
                yield step.at(f"{key} names a buffer twice", key)
        for name in sub.pop:
            if name not in inputs:
                yield step.at(f"pops {name}, which is not an input of it", "pop")
        for name in sub.pop_last:
            if not name.startswith("intermed"):
                yield step.at(f"pop_last of {name}, which is not an intermed", "pop_last")
        if in_two_lists := {*sub.pop} & {*sub.pop_last}:
            yield step.at(f"{min(in_two_lists)} is in pop and in pop_last", "pop_last")
        if len(sub.pop) > len(sub.inputs):
            yield step.at(f"{plural(len(sub.pop), 'pop')} for {plural(len(sub.inputs), 'input')}", "pop")


@fused_check(
    rule(
        "V174",
        "F",
        "a scheduled op has too few inputs",
        "Binary ops and matmul read two operands, all others one; more are accepted and ignored.",
        "{type: add, inputs: [input0]}",
        "{type: add, inputs: [input0, input1]}",
        "NETLIST 11.1 A9",
    ),
    basic=True,
)
def sub_op_inputs(_: Context, use: FusedUse) -> Findings:
    """Refuse scheduled ops with too few inputs; extra inputs are accepted (NETLIST 11.1 A9)."""
    for step in use.steps:
        declaration = OP_TYPES.get(step.sub.type)
        if declaration is not None:
            least = declaration.inputs[0]
        else:
            least = 1
        if 0 < len(step.sub.inputs) < least:
            yield step.at(f"{step.sub.type} needs {plural(least, 'input')}, has {len(step.sub.inputs)}", "inputs")


@fused_check(
    rule(
        "V175",
        "F",
        "a scheduled op reads something that is not a buffer",
        "Operands are inputN, intermedN (not intermN) and dest.",
        "inputs: [interm0]",
        "inputs: [intermed0]",
        "NETLIST 11.1 A9",
    ),
    basic=True,
)
def operand_names(_: Context, use: FusedUse) -> Findings:
    """Refuse operands of scheduled ops that are neither inputN, intermedN nor dest."""
    for step in use.steps:
        for index, name in enumerate(step.sub.inputs):
            numbered = name.startswith(("input", "intermed")) and buffer_number(name) >= 0
            if not numbered and not name.startswith("dest"):
                mark = item_mark(step.sub, "inputs", index)
                yield step.about(mark, f"reads '{name}'", "buffers are inputN, intermedN and dest")


@fused_check("V043", basic=True)
def external_operands(_: Context, use: FusedUse) -> Findings:
    """Refuse operands inputN whose N is not below the number of the op's inputs (NETLIST 11.1 A9)."""
    for step in use.steps:
        for index, name in enumerate(step.sub.inputs):
            if name.startswith("input") and buffer_number(name) >= len(use.op.inputs):
                mark = item_mark(step.sub, "inputs", index)
                yield step.about(mark, f"reads {name}, op {use.op.name} has {plural(len(use.op.inputs), 'input')}")


@fused_check(
    rule(
        "V192",
        "G",
        "scheduled ops do not read every input of their fused op",
        "Each of the inputs that the definition declares is read by a scheduled op, as inputN, and by one name.",
        "{inputs: 2, schedules: [[{s0: {type: exp, inputs: [input0], output: output}}]]}",
        "{inputs: 1, schedules: [[{s0: {type: exp, inputs: [input0], output: output}}]]}",
        "OPS 8.3, 12",
    ),
    unless=("V043", "V174", "V175"),
)
def unread_operands(_: Context, use: FusedUse) -> Findings:
    """Refuse definitions whose sub-ops do not read as many inputs as it declares (OPS 8.3 rule 1 and the corrections
    at its end). Names are counted, whatever their numbers."""
    declared = use.definition.inputs
    operands_of_steps = chain.from_iterable(step.sub.inputs for step in use.steps)
    names = {name for name in operands_of_steps if name.startswith("input")}
    if declared == len(use.op.inputs) and len(names) != declared:
        operands = ", ".join(sorted(names)) or "none of them"
        message = f"declares {plural(declared, 'input')}, its scheduled ops read {operands}"
        yield Finding(use.definition.at("inputs"), message, "declare and connect only operands that are read")


@fused_check(
    rule(
        "V176",
        "F",
        "an intermediate that the fused op does not have",
        "intermedN is read with N below `intermediates`.",
        "{intermediates: 1} and inputs: [intermed1]",
        "{intermediates: 2} and inputs: [intermed1]",
        "NETLIST 11.1 A6",
    ),
    basic=True,
)
def intermediate_operands(_: Context, use: FusedUse) -> Findings:
    """Refuse operands intermedN whose N is not below the declared number (NETLIST 11.1 A6). Outputs are not compared
    with it."""
    declared = use.definition.intermediates
    for step in use.steps:
        for index, name in enumerate(step.sub.inputs):
            if name.startswith("intermed") and buffer_number(name) >= declared >= 0:
                mark = item_mark(step.sub, "inputs", index)
                yield step.about(mark, f"reads {name}, intermediates is {declared}")


@fused_check("V040")
def sub_op_in_dest(ctx: Context, use: FusedUse) -> Findings:
    """Refuse sub-ops with a ublock of more tiles than dest holds: every result passes through dest (NETLIST 2)."""
    acc_df = use.op.acc_df
    for step in use.steps:
        tiles = step.sub.ublock[0] * step.sub.ublock[1]
        if tiles > dest_tiles(ctx.arch, acc_df):
            yield step.at(dest_message(f"ublock {list(step.sub.ublock)}", tiles, ctx.arch, acc_df), "ublock")


@fused_check(
    rule(
        "V132",
        "F",
        "a matmul or reduce is at the wrong place of a schedule",
        "Both collect results over the whole schedule, so they end it, and with m_k above 1 they collect in an "
        "intermed.",
        "{type: matmul, output: output, attributes: {m_k: 2, u_kt: 1}}",
        "{type: matmul, output: intermed0, attributes: {m_k: 2, u_kt: 1}}",
        "OPS 8.3",
    ),
    basic=True,
)
def reductions_end_schedules(_: Context, use: FusedUse) -> Findings:
    """Refuse a matmul or reduce that does not end its schedule, or that sums over several m_k outside an intermed
    (OPS 8.3.3, 8.3.4). Only the sub-op's own m_k counts (NETLIST 11.1 A5)."""
    for step in use.steps:
        sub = step.sub
        if sub.type not in ("matmul", "reduce"):
            continue
        if not step.last:
            yield step.at(f"a {sub.type} must be the last sub-op of its schedule", "type")
        if sub.attributes.m_k > 1 and not sub.output.startswith("intermed"):
            yield step.at(f"with m_k {sub.attributes.m_k} it must write an intermed, not {sub.output}", "output")


@fused_check(
    rule(
        "V133",
        "F",
        "an operand buffer that the scheduled op cannot read",
        "Input 1 of a matmul is an inputN unless its own m_k is 1. matmul, reduce and maximum do not read dest; "
        "grayskull reads dest as input 0 only.",
        "{type: maximum, inputs: [dest, input1]}",
        "{type: maximum, inputs: [intermed0, input1]}",
        "OPS 8.3, NETLIST 11.1 A5",
    )
)
def operand_places(ctx: Context, use: FusedUse) -> Findings:
    """Refuse operands in buffers that a sub-op cannot read (OPS 8.3.4, 8.3.6)."""
    for step in use.steps:
        sub = step.sub
        if sub.type == "matmul" and sub.attributes.m_k != 1 and not sub.inputs[1].startswith("input"):
            yield step.at(f"input 1 of a matmul with m_k other than 1 must be an inputN, not {sub.inputs[1]}", "inputs")
        if "dest" in sub.inputs and sub.type in ("matmul", "reduce", "maximum"):
            yield step.at(f"a {sub.type} cannot read dest", "inputs")
        if "dest" in sub.inputs[1:] and ctx.arch.name == "grayskull":
            yield step.at("grayskull reads dest as input 0 only", "inputs")


@fused_check(
    rule(
        "V134",
        "F",
        "dest is not passed from one scheduled op to the next",
        "A result that an op leaves in dest must be read by the next op in the same schedule, and only by that one.",
        "[a: {output: dest}, b: {inputs: [input1]}]",
        "[a: {output: dest}, b: {inputs: [dest, input1]}]",
        "OPS 8.3",
    )
)
def dest_handed_on(_: Context, use: FusedUse) -> Findings:
    """Check that a result in dest is read by the next sub-op of the same schedule, and only by that one (OPS 8.3.6)."""
    in_dest = ""
    for step in use.steps:
        if step.first:
            in_dest = ""
        reads = "dest" in step.sub.inputs
        if in_dest and not reads:
            yield step.at(f"must read dest, which {in_dest} wrote", "inputs")
        if reads and not in_dest:
            yield step.at("reads dest, which the sub-op before it in this schedule does not write", "inputs")
        in_dest = step.sub.name if step.sub.output == "dest" else ""


@fused_check(
    rule(
        "V135",
        "F",
        "the scheduled op that writes output has other sizes than the op",
        "Its mblock and ublock are those of the fused op; t and ublock_order are inherited.",
        "op {mblock: [2, 2], ublock: [1, 2]}, scheduled op {mblock: [1, 2], ublock: [2, 2], output: output}",
        "op {mblock: [2, 2], ublock: [1, 2]}, scheduled op {mblock: [2, 2], ublock: [1, 2], output: output}",
        "OPS 8.3",
    )
)
def output_blocking(_: Context, use: FusedUse) -> Findings:
    """Refuse a sub-op that writes the output of the fused op with another mblock or ublock than the op's (OPS
    8.3.13).
    """
    base = use.op.blocking
    for step in use.steps:
        if step.sub.output == "output" and step.dims != (*base.mblock, *base.ublock):
            sizes = f"mblock {list(step.sub.mblock)} and ublock {list(step.sub.ublock)}"
            message = f"writes output with {sizes}, op {use.op.name} has {list(base.mblock)} and {list(base.ublock)}"
            yield step.at(message, "mblock")


@fused_check(
    rule(
        "V140",
        "F",
        "relu is set twice, differently",
        "The relu of the op is applied by the scheduled op that writes output; if that has one of its own, they "
        "must agree.",
        "op {relu_en: true, relu_threshold: 1.0}, scheduled op {relu_en: true}",
        "op {relu_en: true, relu_threshold: 1.0}, scheduled op without relu",
        "NETLIST 1.5, 2",
    )
)
def relu_once(_: Context, use: FusedUse) -> Findings:
    """Refuse a sub-op that writes output with a relu other than the op's, which applies to the same result (NETLIST
    1.5)."""
    base = use.op.attributes
    for step in use.steps:
        relu = step.sub.attributes.relu
        has_two_relus = step.sub.output == "output" and base.relu is not None and relu is not None
        if has_two_relus and relu != base.relu:
            yield step.at(f"its relu differs from the relu of op {use.op.name}", "attributes")


# Found while a netlist is read, or not checked
rule(
    "V190",
    "F",
    "unknown field of a scheduled op",
    "Fields are type, inputs, output, mblock, ublock, pop, pop_last, zero_point, input_N_tms and attributes.",
    "s0: {type: add, in_df: [Int8]}",
    "s0: {type: add}",
    "NETLIST 2",
)
rule(
    "V191",
    "F",
    "an attribute is not legal for the scheduled op type",
    "dim and type belong to reduce, p and seed to dropout, slope to lrelu, exp to power; m_k, u_kt, vector "
    "and relu_* to any type. There are no others.",
    "{type: exp, attributes: {approximate_mode: true}}",
    "{type: exp, attributes: {vector: r}}",
    "NETLIST 11.1 A8",
)
