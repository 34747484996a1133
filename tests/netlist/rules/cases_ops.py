"""Cases of the rules on ops and graphs."""

from netlist.rules import bases as b
from netlist.rules.cases import Case

CASES = (
    Case("V017", b.COPY, (("cp", "inputs: [a]", "inputs: [aa]"),), "aa"),
    Case("V017", b.ON_DEVICES, (("a", "target_device: [0, 1]", "target_device: [0, 2]"),), "a"),
    Case(
        "V021",
        b.COPY,
        (("", "input_count: 1", "input_count: 0"),),
        "0",
        near=(("", "input_count: 1", "input_count: 2"),),
    ),
    Case(
        "V021",
        b.COPY,
        (("", "    target_device: 0\n", ""),),
        "g",
        near=(("", "    target_device: 0\n", "    target_device: 3\n"),),
    ),
    Case("V024", b.COPY, (("cp", "t: 1", "t: 0"),), "0"),
    Case(
        "V024", b.COPY, (("cp", "ublock_order: r, ", ""),), "cp", near=(("cp", "ublock_order: r", "ublock_order: c"),)
    ),
    Case("V024", b.COPY, (("cp", "ublock: [1", "ublock: [0"),), "[0, 2]"),
    Case("V024", b.COPY, (("cp", "mblock: [2, 2], ", ""),), "cp"),
    Case(
        "V025",
        b.COPY,
        (("cp", "out_df: Float16_b, ", ""),),
        "cp",
        near=(("cp", "out_df: Float16_b", "out_df: Float32, out_df: Float16_b"),),
    ),
    Case(
        "V025",
        b.COPY,
        (("cp", "math_fidelity: HiFi4, ", ""),),
        "cp",
        near=(("cp", "math_fidelity: HiFi4", "math_fidelity: HiFi2_A"),),
    ),
    Case(
        "V025",
        b.COPY,
        (("cp", "intermed_df: Float16_b, ", ""),),
        "cp",
        near=(("cp", "intermed_df: Float16_b", "acc_df: Float16_b, intermed_df: Float16_b"),),
    ),
    Case(
        "V025",
        b.COPY,
        (("cp", "buf_size_mb: 2", "buf_size_mb: -2"),),
        "-2",
        near=(("cp", "buf_size_mb: 2", "buf_size_mb: 1"),),
    ),
    Case("V026", b.MATMUL, (("mm", "ublock_order: r", "ublock_order: c"),), "c"),
    Case(
        "V027",
        b.COPY,
        (("cp", "grid_loc: [0, 0]", "grid_loc: [0]"),),
        "[0]",
        near=(("cp", "grid_loc: [0, 0]", "grid_loc: [3, 4]"),),
    ),
    Case(
        "V027",
        b.COPY,
        (("cp", "grid_loc: [0, 0], ", ""),),
        "cp",
        near=(
            ("cp", "grid_loc: [0, 0], ", ""),
            ("cp", "type: nop", "type: ethernet_datacopy"),
        ),
    ),
    Case("V027", b.COPY, (("cp", "1]", "0]"),), "[1, 0]"),
    Case("V028", b.ADD, (("ad", "in_df: [Float16_b, Float16_b]", "in_df: [Float16_b]"),), "[Float16_b]"),
    Case(
        "V028",
        b.COPY,
        (("cp", "in_df: [Float16_b]", "forked_dram_inputs: [{a: cp}, {o: cp}], in_df: [Float16_b]"),),
        "[{a: cp}, {o: cp}]",
        near=(("cp", "in_df: [Float16_b]", "forked_dram_inputs: [{a: cp}, {a: cp}], in_df: [Float16_b]"),),
    ),
    Case(
        "V033",
        b.MATMUL,
        (("mm", "m_k: 3, ", ""),),
        "{u_kt: 2, bias: true}",
        near=(("mm", "m_k: 3", "bias: false, m_k: 3"),),
    ),
    Case("V033", b.MATMUL, (("mm", "u_kt: 2", "u_kt: 0"),), "0"),
    Case(
        "V033",
        b.IDENTITY,
        (("im", "identity: true", "identity: true, accumulate: true"),),
        "true",
        near=(("im", "identity: true", "identity: true, accumulate: false"),),
    ),
    Case("V034", b.REDUCE, (("rd", "dim: c, ", ""),), "{type: max, m_k: 2, u_kt: 2}"),
    Case("V034", b.REDUCE, (("rd", "type: max, ", ""),), "{dim: c, m_k: 2, u_kt: 2}"),
    Case(
        "V040",
        b.COPY,
        (("cp", "2], ublock: [1, 2]", "1], ublock: [3, 3]"),),
        "[3, 3]",
        near=(("cp", "mblock: [2, 2], ublock: [1, 2]", "mblock: [1, 1], ublock: [2, 4]"),),
    ),
    Case(
        "V040",
        b.COPY,
        (
            ("cp", "acc_df: Float16_b", "acc_df: Float32"),
            ("cp", "mblock: [2, 2], ublock: [1, 2]", "mblock: [1, 1], ublock: [1, 5]"),
        ),
        "[1, 5]",
        near=(
            ("cp", "acc_df: Float16_b", "acc_df: Float32"),
            ("cp", "2], ublock: [1, 2]", "1], ublock: [1, 4]"),
        ),
    ),
    Case("V040", b.TOPK, (("tk", "u_kt: 2", "u_kt: 9"),), "9", near=(("tk", "u_kt: 2", "u_kt: 8"),)),
    Case(
        "V040",
        b.COPY,
        (("cp", "mblock: [2, 2], ublock: [1, 2]", "mblock: [1, 1], ublock: [3, 11]"),),
        "[3, 11]",
        near=(("cp", "mblock: [2, 2], ublock: [1, 2]", "mblock: [1, 1], ublock: [4, 8]"),),
        arch="wormhole",
    ),
    Case(
        "V041",
        b.TWO_CHIPS,
        (
            ("", "  g1:\n    target_device: 1\n    input_count: 1\n", ""),
            ("", "    - execute:\n        graph_name: g1\n        queue_settings:\n\n", ""),
        ),
        "[0, 0]",
        near=(
            ("", "  g1:\n    target_device: 1\n    input_count: 1\n", ""),
            ("", "    - execute:\n        graph_name: g1\n        queue_settings:\n\n", ""),
            ("k1", ", 0]", ", 1]"),
        ),
    ),
    Case(
        "V042",
        b.TWO_CHIPS,
        (
            ("", "target_device: 1\n", "target_device: 0\n"),
            ("o", "target_device: 1", "target_device: 0"),
        ),
        "k0",
    ),
    Case(
        "V044",
        b.COPY,
        (("cp", "in_df: [Float16_b]", "forked_dram_inputs: [{o: cp}], in_df: [Float16_b]"),),
        "[{o: cp}]",
        near=(("cp", "in_df: [Float16_b]", "forked_dram_inputs: [{a: cp}], in_df: [Float16_b]"),),
    ),
    Case(
        "V044",
        b.COPY,
        (("cp", "in_df: [Float16_b]", "forked_dram_inputs: [{a: cq}], in_df: [Float16_b]"),),
        "[{a: cq}]",
    ),
    Case(
        "V045",
        b.MATMUL,
        (("mm", "bias: true", "bias: true, kernel_broadcast: {input_1: 4}"),),
        "{input_1: 4}",
        near=(("mm", "bias: true", "bias: true, kernel_broadcast: {input_2: 4}"),),
    ),
    Case(
        "V045",
        b.MATMUL,
        (("mm", "bias: true", "bias: true, single_tile: [0]"),),
        "[0]",
        near=(("mm", "bias: true", "bias: true, single_tile: [2]"),),
    ),
    Case(
        "V046",
        b.MATMUL,
        (
            ("mm", "input_2_tms", "input_1_tms: [broadcast: {r: 1}], input_2_tms"),
            ("mm", "bias: true", "bias: true, kernel_broadcast: {input_1: 3}"),
        ),
        "{input_1: 3}",
        near=(
            ("mm", "input_2_tms", "input_1_tms: [broadcast: {r: 1}], input_2_tms"),
            ("mm", "bias: true", "bias: true, kernel_broadcast: {input_1: 4}"),
        ),
    ),
    Case("V047", b.EMBEDDING, (("em", "num_indices: 64", "num_indices: 60"),), "60"),
    Case("V047", b.EMBEDDING, (("em", "num_indices: 64", "num_indices: 96"),), "96"),
    Case(
        "V048",
        b.TILIZER,
        (("ti", "untilize_output: false", "untilize_output: false, input_0_tms: [hslice: 1]"),),
        "[hslice: 1]",
        near=(("ti", "untilize_output: false", "untilize_output: false, input_0_tms: []"),),
    ),
    Case(
        "V048",
        b.TILIZER,
        (("a", "mblock: [2, 2], ublock: [1", "mblock: [1, 2], ublock: [2"),),
        "a",
        near=(("a", "2], ublock: [1, 2]", "4], ublock: [1, 1]"),),
    ),
    Case("V049", b.DEPTHWISE, (("dw", "u_kt: 1", "u_kt: 2"),), "2"),
    Case("V049", b.DEPTHWISE, (("dw", "m_k: 4, ", ""),), "{u_kt: 1}"),
    Case("V050", b.IDENTITY, (("im", "RawUInt32]", "Bfp8_b]"),), "Bfp8_b", near=(("im", "RawUInt32]", "RawUInt8]"),)),
    Case(
        "V050",
        b.IDENTITY,
        (("im", "input_2_tms: [broadcast: {c: 1}]", "input_2_tms: [hslice: 1]"),),
        "[hslice: 1]",
        near=(("im", "}]", "}, hslice: 1]"),),
    ),
    Case("V051", b.COPY, (("cp", "type: nop", "type: relu"),), "relu", near=(("cp", "type: nop", "type: tanh"),)),
    Case(
        "V051", b.COPY, (("cp", "type: nop", "type: buffer"),), "buffer", near=(("cp", "type: nop", "type: datacopy"),)
    ),
    Case(
        "V051",
        b.COPY,
        (("cp", "inputs: [a], in_df: [Float16_b]", "inputs: [a, a], in_df: [Float16_b, Float16_b]"),),
        "[a, a]",
        near=(
            ("cp", "inputs: [a], in_df: [Float16_b]", "inputs: [a, a], in_df: [Float16_b, Float16_b]"),
            ("cp", "type: nop", "type: add"),
        ),
    ),
    Case(
        "V170",
        b.COPY,
        (
            ("cp", "inputs: [a]", "inputs: [cp]"),
            ("", "          a: {rd_ptr_local: $lp, rd_ptr_global: $gp}\n", ""),
        ),
        "[cp]",
    ),
    Case(
        "V170",
        b.COPY,
        (
            ("cp", "inputs: [a]", "inputs: [o]"),
            ("", "          a: {rd_ptr_local: $lp, rd_ptr_global: $gp}\n", ""),
        ),
        "[o]",
        near=(
            ("cp", "inputs: [a]", "inputs: [o]"),
            ("", "          a: {rd_ptr_local: $lp, rd_ptr_global: $gp}\n", ""),
            ("o", "type: queue", "type: ram"),
        ),
    ),
    Case(
        "V170",
        b.COPY,
        (
            (
                "",
                "  a: {input",
                (
                    "  HOST: {input: HOST, type: queue, entries: 2, grid_size: [1, 1], t: 1, df: Float16_b, "
                    "target_device: 0, mblock: [1, 1], ublock: [1, 1], loc: dram, dram: [[3, "
                    "0x30000000]]}\n  a: {input"
                ),
            ),
        ),
        "HOST",
        near=(
            (
                "",
                "  a: {input",
                (
                    "  HOST: {input: HOST, type: ram, entries: 2, grid_size: [1, 1], t: 1, df: Float16_b, "
                    "target_device: 0, mblock: [1, 1], ublock: [1, 1], loc: dram, dram: [[3, "
                    "0x30000000]]}\n  a: {input"
                ),
            ),
        ),
    ),
    Case(
        "V170",
        b.COPY,
        (
            ("cp", "    cp: ", "    o: "),
            ("o", "input: cp", "input: o"),
        ),
        "o",
    ),
    Case("V171", b.COPY, (("cp", "type: nop", "type: add"),), "[a]"),
    Case(
        "V171",
        b.MATMUL,
        (
            ("mm", "w, b], in_df: [Float16_b, Float16_b", "w], in_df: [Float16_b"),
            ("mm", "input_2_tms: [broadcast: {r: 2}], ", ""),
            ("", "          b: {prologue: true, rd_ptr_global: $z, wr_ptr_global: $z}\n", ""),
        ),
        "[x, w]",
        near=(
            ("mm", "w, b], in_df: [Float16_b, Float16_b", "w], in_df: [Float16_b"),
            ("mm", "input_2_tms: [broadcast: {r: 2}], ", ""),
            ("", "          b: {prologue: true, rd_ptr_global: $z, wr_ptr_global: $z}\n", ""),
            ("mm", ", bias: true", ""),
        ),
    ),
    Case("V172", b.TOPK, (("tk", "k: 32, ", ""),), "{m_k: 1, u_kt: 2, sort: max}", near=(("tk", "k: 32", "k: -1"),)),
    Case("V172", b.TOPK, (("tk", "k: 32", "k: 0"),), "0"),
    Case(
        "V173",
        b.TWO_CHIPS,
        (("", "target_device: 1\n    input_count: 1", "target_device: 1\n    input_count: 2"),),
        "2",
        near=(
            ("", "target_device: 1\n    input_count: 1", "target_device: 1\n    input_count: 2"),
            ("", "target_device: 0\n    input_count: 1", "target_device: 0\n    input_count: 2"),
        ),
    ),
)
