"""Rules on fused ops (NETLIST 2 "Fused ops", OPS 8.3). Only definitions that an op uses are judged."""

from buda_emu.netlist.rules.rule import rule

RULES = (
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
    rule(
        "V132",
        "F",
        "a matmul or reduce stands at the wrong place of a schedule",
        "Both collect results over the whole schedule, so they end it, and with m_k above 1 they collect in an "
        "intermed.",
        "{type: matmul, output: output, attributes: {m_k: 2, u_kt: 1}}",
        "{type: matmul, output: intermed0, attributes: {m_k: 2, u_kt: 1}}",
        "OPS 8.3",
    ),
    rule(
        "V133",
        "F",
        "an operand buffer that the scheduled op cannot read",
        "Input 1 of a matmul is an inputN unless its own m_k is 1. matmul, reduce and maximum do not read dest; "
        "grayskull reads dest as input 0 only.",
        "{type: maximum, inputs: [dest, input1]}",
        "{type: maximum, inputs: [intermed0, input1]}",
        "OPS 8.3, NETLIST 11.1 A5",
    ),
    rule(
        "V134",
        "F",
        "dest is not passed from one scheduled op to the next",
        "What an op leaves in dest must be read by the op after it, and only by that one, in the same schedule.",
        "[a: {output: dest}, b: {inputs: [input1]}]",
        "[a: {output: dest}, b: {inputs: [dest, input1]}]",
        "OPS 8.3",
    ),
    rule(
        "V135",
        "F",
        "the scheduled op that writes output has other sizes than the op",
        "Its mblock and ublock are those of the fused op; t and ublock_order are inherited.",
        "op {mblock: [2, 2], ublock: [1, 2]}, scheduled op {mblock: [1, 2], ublock: [2, 2], output: output}",
        "op {mblock: [2, 2], ublock: [1, 2]}, scheduled op {mblock: [2, 2], ublock: [1, 2], output: output}",
        "OPS 8.3",
    ),
    rule(
        "V136",
        "F",
        "a TM that scheduled ops do not have",
        "Inside a fused op there is no odd number of transposes, no pad and no broadcast of z. tile_broadcast "
        "works on input 1 of add, subtract and multiply, and not of Int32.",
        "{type: add, input_0_tms: [tile_broadcast: r]}",
        "{type: add, input_1_tms: [tile_broadcast: r]}",
        "NETLIST 2, 11.2 B5, 11.3 C7",
    ),
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
    rule(
        "V138",
        "F",
        "an intermediate is used outside its life",
        "An intermed is written, read, popped, and only then written again; none is left at the end. What a "
        "schedule that ends in a matmul or reduce wrote is gone after it, but for the result of that matmul or "
        "reduce and results of mblock [1, 1].",
        "[a: {output: intermed0}, b: {inputs: [intermed0], output: output}]",
        "[a: {output: intermed0}, b: {inputs: [intermed0], pop: [intermed0], output: output}]",
        "OPS 8.3, NETLIST 11.1 A6, 11.3 C6",
    ),
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
    rule(
        "V140",
        "F",
        "relu is set twice, differently",
        "The relu of the op is applied by the scheduled op that writes output; if that has one of its own, they "
        "must agree.",
        "op {relu_en: true, relu_threshold: 1.0}, scheduled op {relu_en: true}",
        "op {relu_en: true, relu_threshold: 1.0}, scheduled op without relu",
        "NETLIST 1.5, 2",
    ),
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
    ),
    rule(
        "V142",
        "F",
        "a Float32 fused reduce reads a format with a 5-bit exponent",
        "As V039; any input of the fused op counts.",
        "{in_df: [Float16], acc_df: Float32} with a scheduled reduce",
        "{in_df: [Float16_b], acc_df: Float32} with a scheduled reduce",
    ),
    rule(
        "V174",
        "F",
        "a scheduled op has too few inputs",
        "Binary ops and matmul read two operands, all others one; more are accepted and not looked at.",
        "{type: add, inputs: [input0]}",
        "{type: add, inputs: [input0, input1]}",
        "NETLIST 11.1 A9",
    ),
    rule(
        "V175",
        "F",
        "a scheduled op reads something that is no buffer",
        "Operands are inputN, intermedN (not intermN) and dest.",
        "inputs: [interm0]",
        "inputs: [intermed0]",
        "NETLIST 11.1 A9",
    ),
    rule(
        "V176",
        "F",
        "an intermediate that the fused op does not have",
        "intermedN is read with N below `intermediates`.",
        "{intermediates: 1} and inputs: [intermed1]",
        "{intermediates: 2} and inputs: [intermed1]",
        "NETLIST 11.1 A6",
    ),
    rule(
        "V190",
        "F",
        "unknown field of a scheduled op",
        "Fields are type, inputs, output, mblock, ublock, pop, pop_last, zero_point, input_N_tms and attributes.",
        "s0: {type: add, in_df: [Int8]}",
        "s0: {type: add}",
        "NETLIST 2",
    ),
    rule(
        "V191",
        "F",
        "an attribute is not legal for the scheduled op type",
        "dim and type belong to reduce, p and seed to dropout, slope to lrelu, exp to power; m_k, u_kt, vector "
        "and relu_* to any type. There are no others.",
        "{type: exp, attributes: {approximate_mode: true}}",
        "{type: exp, attributes: {vector: r}}",
        "NETLIST 11.1 A8",
    ),
    rule(
        "V192",
        "G",
        "scheduled ops do not read every input of their fused op",
        "Each of the inputs that the definition declares is read by a scheduled op, as inputN, and by one name.",
        "{inputs: 2, schedules: [[{s0: {type: exp, inputs: [input0], output: output}}]]}",
        "{inputs: 1, schedules: [[{s0: {type: exp, inputs: [input0], output: output}}]]}",
        "OPS 8.3, 12",
    ),
)
