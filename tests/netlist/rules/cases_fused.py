"""Cases of the rules on fused ops."""

from netlist.rules import bases as b
from netlist.rules.cases import Case

CASES = (
    Case(
        "V043",
        b.FUSED,
        (("fz", "fused_op_id: f1", "fused_op_id: f2"),),
        "f2",
        near=(("fz", "fused_op_id: f1", "fused_op_id: 'f1'"),),
    ),
    Case("V043", b.FUSED, (("", "inputs: 3", "inputs: 2"),), "[a, b, c]"),
    Case(
        "V043",
        b.FUSED,
        (("s5", "inputs: [input0", "inputs: [input3"),),
        "input3",
        near=(("s5", "inputs: [input0", "inputs: [input_2"), ("s4", "input2", "input_2")),
    ),
    Case(
        "V192",
        b.FUSED,
        (("s4", "inputs: [intermed1, input2]", "inputs: [intermed1, input1]"),),
        "3",
        near=(("s1", "input1", "input2"), ("s4", "input2", "input1")),
    ),
    Case("V192", b.FUSED_REDUCE, (("r2", "inputs: [input0", "inputs: [input_0"),), "1"),
    Case(
        "V130",
        b.FUSED,
        (("", "intermediates: 2", "intermediates: 9"),),
        "9",
        near=(("", "intermediates: 2", "intermediates: 8"),),
    ),
    Case("V130", b.FUSED_REDUCE, (("", "    intermediates: 1\n", "    intermediates: -1\n"),), "-1"),
    Case(
        "V130",
        b.FUSED_REDUCE,
        (("", "    inputs: 1\n", ""),),
        "7",
        near=(("", "    inputs: 1\n", "    more: 3\n    inputs: 1\n"),),
    ),
    Case("V131", b.FUSED, (("s2", "- s2: ", "- s1: "),), "s1", near=(("s2", "- s2: ", "- s9: "),)),
    Case("V131", b.FUSED, (("s2", "type: exp, ", ""),), "s2", near=(("s2", "type: exp", "type: datacopy"),)),
    Case("V131", b.FUSED, (("s2", "mblock: [2", "mblock: [0"),), "[0, 2]"),
    Case(
        "V131",
        b.FUSED,
        (("s3", "pop: [intermed0]", "pop: [intermed0, intermed0]"),),
        "[intermed0, intermed0]",
        near=(("s3", "pop: [intermed0]", "pop: [intermed0, dest]"),),
    ),
    Case("V131", b.FUSED, (("s4", "pop_last: [intermed1]", "pop_last: [intermed1, input2]"),), "[intermed1, input2]"),
    Case("V131", b.FUSED, (("s3", "output: intermed1", "pop_last: [intermed0], output: intermed1"),), "[intermed0]"),
    Case("V132", b.FUSED, (("s4", "output: intermed0", "output: dest"),), "dest"),
    Case(
        "V133", b.FUSED, (("s4", "inputs: [intermed1, input2]", "inputs: [input2, intermed1]"),), "[input2, intermed1]"
    ),
    Case(
        "V133",
        b.FUSED,
        (("s3", "inputs: [dest, intermed0]", "inputs: [intermed0, dest]"),),
        "[intermed0, dest]",
        near=(("s3", "inputs: [dest", "pop: [], inputs: [dest"),),
        arch="grayskull",
    ),
    Case(
        "V133",
        b.FUSED,
        (("s3", "type: multiply", "type: maximum"),),
        "[dest, intermed0]",
        near=(("s3", "type: multiply", "type: subtract"),),
    ),
    Case(
        "V134",
        b.FUSED,
        (("s3", "inputs: [dest", "inputs: [input1"),),
        "[input1, intermed0]",
        near=(("s3", "intermed0]", "dest, intermed0]"),),
    ),
    Case("V134", b.FUSED, (("s1", "inputs: [input0", "inputs: [dest"),), "[dest, input1]"),
    Case(
        "V135",
        b.FUSED_REDUCE,
        (("r2", "2], ublock: [1, 2]", "4], ublock: [1, 1]"),),
        "[2, 4]",
        near=(
            ("r2", "output: output, mblock: [2, 2], ublock: [1, 2]", "output: result, mblock: [2, 4], ublock: [1, 1]"),
        ),
    ),
    Case(
        "V136",
        b.FUSED,
        (("s2", "type: exp,", "type: exp, input_0_tms: [transpose],"),),
        "[transpose]",
        near=(("s2", "type: exp,", "type: exp, input_0_tms: [transpose, transpose],"),),
    ),
    Case(
        "V136",
        b.FUSED,
        (("s1", "type: add,", "type: add, input_0_tms: [tile_broadcast: r],"),),
        "[tile_broadcast: r]",
        near=(("s1", "type: add,", "type: add, input_1_tms: [tile_broadcast: r],"),),
    ),
    Case(
        "V136", b.FUSED, (("s1", "type: add,", "type: add, input_0_tms: [broadcast: {z: 2}],"),), "[broadcast: {z: 2}]"
    ),
    Case("V136", b.FUSED, (("s1", "type: add,", "type: add, input_0_tms: [pad: [0, 0, 0.0]],"),), "[pad: [0, 0, 0.0]]"),
    Case(
        "V137", b.FUSED, (("s1", "type: add,", "type: add, input_0_tms: [broadcast: {c: 1}],"),), "[broadcast: {c: 1}]"
    ),
    Case(
        "V137",
        b.FUSED_REDUCE,
        (("r2", "}", "}, broadcast: {r: 1}"),),
        "[broadcast: {c: 4}, broadcast: {r: 1}, tile_broadcast: c]",
    ),
    Case(
        "V137",
        b.FUSED_REDUCE,
        (("r2", "c: 4", "r: 1"),),
        "[broadcast: {r: 1}, tile_broadcast: c]",
        near=(("r2", "c: 4", "c: 2}, broadcast: {c: 4"),),
    ),
    Case("V138", b.FUSED, (("s2", "inputs: [intermed0]", "inputs: [intermed1]"),), "[intermed1]"),
    Case(
        "V138",
        b.FUSED,
        (("s5", "pop: [intermed0], ", ""),),
        "intermed0",
        near=(("s5", "pop: [intermed0]", "pop_last: [intermed0]"),),
    ),
    Case(
        "V138",
        b.FUSED_REDUCE,
        (("r1", "output: intermed0", "output: intermed00"),),
        "[input0, intermed0]",
        near=(
            ("r1", "output: intermed0", "output: intermed00"),
            ("r2", "intermed0], pop: [intermed0]", "intermed00], pop: [intermed00]"),
        ),
    ),
    Case("V139", b.FUSED, (("s2", "mblock: [2", "mblock: [1"),), "[1, 2]"),
    Case("V139", b.FUSED, (("s4", "u_kt: 2", "u_kt: 1"),), "{m_k: 2, u_kt: 1}"),
    Case("V139", b.FUSED_REDUCE, (("r1", "dim: c", "dim: r"),), "[2, 1]"),
    Case("V139", b.FUSED_REDUCE, (("r1", "dim: c", "dim: rc"),), "{type: max, dim: rc, m_k: 2, u_kt: 2}"),
    Case("V139", b.FUSED_REDUCE, (("r2", "c: 4", "c: 2"),), "[2, 2]"),
    Case("V139", b.FUSED, (("s2", "type: exp", "type: tilizer"),), "tilizer", near=(("s2", "type: exp", "type: nop"),)),
    Case(
        "V140",
        b.FUSED_REDUCE,
        (
            (
                "",
                "attributes: {relu_en: true, relu_mode: min, relu_threshold: 1.0}}\n",
                "attributes: {relu_en: true, relu_mode: min, relu_threshold: 2.0}}\n",
            ),
        ),
        "{relu_en: true, relu_mode: min, relu_threshold: 2.0}",
        near=(
            (
                "",
                "attributes: {relu_en: true, relu_mode: min, relu_threshold: 1.0}}\n",
                "attributes: {relu_en: false, relu_mode: min, relu_threshold: 2.0}}\n",
            ),
        ),
    ),
    Case("V141", b.FUSED_INT, (("f1", "type: add", "type: exp"),), "exp", near=(("f1", "type: add", "type: maximum"),)),
    Case(
        "V141",
        b.FUSED_INT,
        (("fz", "out_df: Float32", "out_df: Int8"),),
        "dequantization",
        near=(
            ("fz", "out_df: Float32", "out_df: Int8"),
            ("f2", "type: dequantization", "type: requantization"),
            ("o", "df: Float32", "df: Int8"),
        ),
    ),
    Case(
        "V141",
        b.FUSED_INT,
        (("f2", "inputs: [intermed0, input2]", "inputs: [input2, intermed0]"),),
        "[input2, intermed0]",
    ),
    Case(
        "V141",
        b.FUSED_INT,
        (
            ("f1", "output: intermed0", "output: dest"),
            ("f2", "inputs: [intermed0, input2], pop: [intermed0]", "inputs: [dest, input2]"),
        ),
        "[dest, input2]",
        near=(
            ("f1", "output: intermed0", "output: dest"),
            ("f2", "inputs: [intermed0, input2], pop: [intermed0]", "inputs: [input2, dest]"),
        ),
    ),
    Case("V141", b.FUSED, (("s3", "type: multiply", "type: requantization"),), "requantization"),
    Case(
        "V142",
        b.FUSED_REDUCE,
        (
            ("fz", "in_df: [Float16_b]", "in_df: [Float16]"),
            ("a", "df: Float16_b", "df: Float16"),
            ("fz", "acc_df: Float16_b", "acc_df: Float32"),
        ),
        "reduce",
        near=(("fz", "acc_df: Float16_b", "acc_df: Float32"),),
    ),
    Case("V040", b.FUSED_REDUCE, (("r1", "mblock: [2, 1], ublock: [1", "mblock: [1, 1], ublock: [9"),), "[9, 1]"),
    Case(
        "V174",
        b.FUSED,
        (("s1", "inputs: [input0, input1]", "inputs: [input0]"),),
        "[input0]",
        near=(("s1", "input1]", "input1, input0]"),),
    ),
    Case("V175", b.FUSED, (("s1", "input1]", "in1]"),), "in1", near=(("s1", "input1]", "input_1]"),)),
    Case("V176", b.FUSED, (("", "intermediates: 2", "intermediates: 1"),), "intermed1"),
)
